CREATE TABLE t (id int PRIMARY KEY, a text, b text, c text);
INSERT INTO t VALUES (1, 'a1', 'b1', 'c1');
