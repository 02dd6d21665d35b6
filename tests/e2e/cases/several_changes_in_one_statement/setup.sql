CREATE TABLE t (id int PRIMARY KEY, a int, b text, c real, d numeric(4,1));
INSERT INTO t VALUES (1, 1, 'b1', 0.5, 1.5), (2, 2, 'b2', 1.5, 2.5);
