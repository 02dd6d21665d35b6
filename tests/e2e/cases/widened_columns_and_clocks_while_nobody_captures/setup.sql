CREATE TABLE t (id int PRIMARY KEY, at time NOT NULL, n int NOT NULL, f real, zoned timetz);
INSERT INTO t VALUES (1, '24:00', 1, 0.5, '12:00+02'), (2, '00:00:00.000001', 2, 1.5, NULL);
