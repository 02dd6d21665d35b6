UPDATE t SET i = i + 1, s = s || '!' WHERE id <= 2;
DELETE FROM t WHERE id = 5;
-- WAIT
UPDATE t SET i = NULL, l = NULL, n = NULL, d = NULL, ts = NULL, z = NULL, s = NULL, b = NULL, u = NULL WHERE id = 3;
UPDATE t SET id = 6 WHERE id = 4;
