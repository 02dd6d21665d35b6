CREATE TABLE t (id int PRIMARY KEY, v text);
CREATE TABLE beside (id int PRIMARY KEY);
INSERT INTO t VALUES (1, 'a');
