CREATE TABLE t (id int PRIMARY KEY, a text);
INSERT INTO t VALUES (1, 'one'), (2, 'two');
