UPDATE t SET v = 'updated' WHERE id <= 2;
DELETE FROM t WHERE id = 3;
-- WAIT
UPDATE t SET v = 'again', part = 'p9' WHERE id = 1;
UPDATE t SET id = 40 WHERE id = 4;
INSERT INTO t VALUES (3, 'back', 'p0');
