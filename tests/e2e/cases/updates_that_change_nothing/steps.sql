UPDATE t SET v = v;
UPDATE t SET id = id;
BEGIN;
COMMIT;
BEGIN;
INSERT INTO t VALUES (3, 'never');
DELETE FROM t WHERE id = 3;
COMMIT;
-- WAIT
UPDATE t SET v = 'b' WHERE id = 99;
SELECT pg_logical_emit_message(true, 'somebody', 'else''s message');
UPDATE t SET v = 'b' WHERE id = 1;
UPDATE t SET v = 'a' WHERE id = 1;
