CREATE TABLE t (id int PRIMARY KEY, a text, b text);
INSERT INTO t VALUES (1, 'a1', 'b1'), (2, 'a2', 'b2');
