INSERT INTO wide (id, c6) VALUES (2, 6);
INSERT INTO long VALUES (2, repeat(E'\001\x7f', 500000), '');
-- WAIT
UPDATE wide SET c2 = 2 WHERE id = 1;
UPDATE long SET b = '\x01' WHERE id = 1;
