CREATE TABLE t (id int PRIMARY KEY, code text NOT NULL UNIQUE, v text);
INSERT INTO t VALUES (1, 'a', 'x'), (2, 'b', 'y');
