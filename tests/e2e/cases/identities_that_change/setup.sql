CREATE TABLE t (id int PRIMARY KEY, code text NOT NULL, v int);
CREATE UNIQUE INDEX by_code ON t (code);
INSERT INTO t VALUES (1, 'a', 0), (2, 'b', 0), (3, 'c', 0);
