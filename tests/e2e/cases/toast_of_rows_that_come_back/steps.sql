-- the value of the row that went is not the value of the row that came
DELETE FROM papers WHERE id = 1;
INSERT INTO papers VALUES (1, 1, long('again1'));
UPDATE papers SET n = 2 WHERE id = 1;
UPDATE papers SET n = 1 WHERE id = 2;
DELETE FROM papers WHERE id = 2;
INSERT INTO papers VALUES (2, 1, NULL);
UPDATE papers SET n = 2 WHERE id = 2;
-- WAIT
DELETE FROM papers WHERE id = 3;
-- WAIT
INSERT INTO papers VALUES (3, 3, long('again3'));
UPDATE papers SET n = 4 WHERE id = 3;
BEGIN;
DELETE FROM papers WHERE id = 4;
INSERT INTO papers VALUES (4, 4, long('again4'));
UPDATE papers SET id = 5 WHERE id = 4;
UPDATE papers SET n = 5 WHERE id = 5;
COMMIT;
