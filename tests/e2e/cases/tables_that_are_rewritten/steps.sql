-- no row is sent for any of this
ALTER TABLE t ALTER n TYPE int USING n * 10;
INSERT INTO other VALUES (2, 2);
-- WAIT
UPDATE t SET n = n + 1 WHERE id = 1;
ALTER TYPE mood RENAME VALUE 'sad' TO 'low';
-- WAIT
-- moved, not changed: nothing to do
VACUUM FULL t;
UPDATE t SET n = n + 1 WHERE id = 2;
DELETE FROM t WHERE id = 3;
