-- rows that come with a partition, and rows that go with one
CREATE TABLE ranged_2 (LIKE ranged INCLUDING ALL);
INSERT INTO ranged_2 VALUES (21, 'twenty-one'), (22, 'twenty-two');
ALTER TABLE ranged ATTACH PARTITION ranged_2 FOR VALUES FROM (20) TO (30);
ALTER TABLE listed DETACH PARTITION listed_b;
UPDATE listed_b SET v = 'elsewhere';
-- WAIT
UPDATE ranged SET v = 'changed' WHERE id = 21;
DELETE FROM ranged WHERE id = 22;
UPDATE listed SET v = 'changed' WHERE id = 1;
DROP TABLE ranged_0;
-- WAIT
ALTER TABLE listed ATTACH PARTITION listed_b FOR VALUES IN ('b');
CREATE TABLE ranged_3 PARTITION OF ranged FOR VALUES FROM (30) TO (40);
INSERT INTO ranged VALUES (31, 'thirty-one');
TRUNCATE ranged_1;
