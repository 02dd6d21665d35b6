UPDATE t SET z = z + interval '1 second', h = h + interval '1 second' WHERE id = 1;
UPDATE t SET m = m + 1 WHERE id = 2;
-- WAIT
UPDATE t SET d = '2026-02-01', y = '2027-01-01' WHERE id = 1;
UPDATE t SET v = 'b' WHERE id = 2;
DELETE FROM t WHERE id = 3;
INSERT INTO t VALUES (3, '9999-12-31', '0001-01-01', '0001-01-01', '9999-12-31 23:59:59', '2026-01-01 00:00+00', 'new');
