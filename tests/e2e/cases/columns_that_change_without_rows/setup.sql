CREATE TABLE t (id int PRIMARY KEY, a text, b text, n numeric(5,2));
INSERT INTO t VALUES (1, 'a', 'b', 1);
