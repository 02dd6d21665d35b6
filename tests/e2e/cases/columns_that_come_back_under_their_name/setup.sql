CREATE TABLE t (id int PRIMARY KEY, a text);
INSERT INTO t VALUES (1, 'old'), (2, 'old');
