ALTER TYPE mood ADD VALUE 'so so' BEFORE 'happy';
INSERT INTO t VALUES (2, 'so so', '{"so so"}');
-- WAIT
ALTER TYPE mood RENAME VALUE 'sad' TO 'blue';
INSERT INTO t VALUES (3, 'blue', NULL);
UPDATE t SET m = 'happy' WHERE id = 1;
