-- between partitions: a delete in one and an insert in the other
UPDATE readings SET day = '2026-05-01' WHERE sensor = 0;
UPDATE readings SET value = 2 WHERE sensor IN (1, 2);
DELETE FROM readings WHERE sensor = 3;
-- WAIT
CREATE TABLE readings_2027 PARTITION OF readings FOR VALUES FROM ('2027-01-01') TO ('2028-01-01');
INSERT INTO readings VALUES ('2027-06-01', 9, 9);
UPDATE readings SET sensor = 10 WHERE sensor = 1;
