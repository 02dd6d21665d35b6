CREATE TABLE t (id int PRIMARY KEY, n int, f real, d numeric(6,2), v varchar(3));
INSERT INTO t VALUES (1, 1, 0.5, 1.25, 'abc'), (2, 2, 1.5, 2.25, 'def');
