UPDATE t SET a = 'updated' WHERE id = 1;
DELETE FROM t WHERE id = 2;
INSERT INTO t VALUES (5, 'new', 'b');
-- DOWN
UPDATE t SET a = 'again' WHERE id IN (1, 3, 5);
