CREATE TABLE t (id int PRIMARY KEY, a text NOT NULL, b int);
INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2);
