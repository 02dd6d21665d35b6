INSERT INTO t VALUES (3, '3', 'c');
ALTER TABLE t ALTER n TYPE int USING n::int * 10;
INSERT INTO t VALUES (4, 4, 'd');
INSERT INTO other VALUES (1);
-- WAIT
ALTER TABLE t ADD COLUMN r double precision DEFAULT random();
UPDATE t SET r = id;
INSERT INTO other VALUES (2);
