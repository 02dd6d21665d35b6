UPDATE t SET v = 'before' WHERE id = 1;
ALTER TABLE t DROP CONSTRAINT t_pkey;
ALTER TABLE t ADD PRIMARY KEY (code);
UPDATE t SET v = 'after' WHERE code = 'b';
UPDATE t SET id = 1 WHERE code = 'b';
DELETE FROM t WHERE code = 'a';
INSERT INTO t VALUES (1, 'c', 'z');
-- WAIT
ALTER TABLE t REPLICA IDENTITY FULL;
UPDATE t SET v = 'full' WHERE code = 'c';
