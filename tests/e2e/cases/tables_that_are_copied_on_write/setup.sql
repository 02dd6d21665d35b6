CREATE TABLE t (id int PRIMARY KEY, v text, part text);
INSERT INTO t SELECT g, 'copied', 'p' || g % 2 FROM generate_series(1, 6) g;
