UPDATE t SET v = 'ONE', c = 1 WHERE a = 1 AND b = 'x';
UPDATE t SET a = 3 WHERE a = 2;
-- WAIT
DELETE FROM t WHERE b = 'y';
INSERT INTO t VALUES (1, 'y', 7, 'again');
UPDATE t SET b = 'z' WHERE a = 3;
