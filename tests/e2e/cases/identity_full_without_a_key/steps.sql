UPDATE readings SET value = 2 WHERE sensor = 1 AND note IS NULL;
DELETE FROM readings WHERE sensor = 2;
INSERT INTO readings VALUES (3, '2026-01-01 00:00+00', 3, NULL);
-- WAIT
UPDATE readings SET sensor = 4 WHERE sensor = 3;
UPDATE readings SET note = 'not a number' WHERE value = 'NaN';
