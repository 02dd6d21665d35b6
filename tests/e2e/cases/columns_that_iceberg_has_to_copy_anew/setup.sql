CREATE TABLE t (id int PRIMARY KEY, n text, keep text);
CREATE TABLE other (id int PRIMARY KEY);
INSERT INTO t VALUES (1, '1', 'a'), (2, '2', 'b');
