UPDATE papers SET n = 1 WHERE id = 1;
UPDATE papers SET n = 2 WHERE id = 1;
UPDATE papers SET other = 'short' WHERE id = 2;
UPDATE papers SET id = 20 WHERE id = 2;
-- WAIT
UPDATE papers SET id = 30 WHERE id = 3;
UPDATE papers SET n = 3 WHERE id = 30;
DELETE FROM papers WHERE id = 4;
INSERT INTO papers VALUES (4, 4, long('new4'), NULL);
UPDATE papers SET n = 5 WHERE id = 4;
