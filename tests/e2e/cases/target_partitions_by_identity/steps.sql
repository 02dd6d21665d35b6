-- only the key is sent of the old row
DELETE FROM t WHERE id = 4;
UPDATE t SET land = 'fr' WHERE id = 1;
UPDATE t SET v = 'b' WHERE id IN (2, 3);
-- WAIT
UPDATE t SET land = 'de', d = NULL WHERE id = 1;
UPDATE t SET land = 'de', n = 7, id = 30 WHERE id = 3;
INSERT INTO t VALUES (4, 'de', 1, true, '2026-01-01', 1.5, '2026-01-01 00:00+00', '\x00', 'new');
