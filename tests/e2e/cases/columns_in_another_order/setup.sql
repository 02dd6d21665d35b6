CREATE TABLE t (a int, b text, id int PRIMARY KEY, c text);
INSERT INTO t VALUES (1, 'b1', 1, 'c1');
