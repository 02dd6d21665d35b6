CREATE TABLE t (id int PRIMARY KEY, a text, b text);
INSERT INTO t SELECT g, 'old', 'b' FROM generate_series(1, 4) g;
