UPDATE counters SET n = n * 10 WHERE id % 2 = 0;
UPDATE counters SET id = id + 100 WHERE id <= 3;
-- WAIT
DELETE FROM counters WHERE id IN (4, 101);
INSERT INTO counters VALUES (4, 44);
