UPDATE t SET i = 0, l = 0, n = 0, s = 'zz', b = '\x02' WHERE id = 1;
UPDATE t SET i = 10 WHERE id = 2;
-- WAIT
UPDATE t SET s = 'äöx', b = NULL WHERE id = 1;
UPDATE t SET i = 1, l = 1, n = 1, s = 'a', b = '\x01' WHERE id = 3;
DELETE FROM t WHERE id = 2;
