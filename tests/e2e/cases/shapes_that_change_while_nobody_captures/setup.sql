CREATE TABLE t (id int PRIMARY KEY, a text, b int, gone text NOT NULL);
INSERT INTO t VALUES (1, 'one', 1, 'g');
