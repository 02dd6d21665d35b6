INSERT INTO t VALUES (1e-19, 'too fine'), (2, 'streamed');
UPDATE t SET v = 'updated';
-- WAIT
UPDATE t SET k = 3 WHERE k = 'NaN';
UPDATE t SET k = 'NaN' WHERE k = 2;
DELETE FROM t WHERE k = 'Infinity';
