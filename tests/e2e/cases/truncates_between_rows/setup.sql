CREATE TABLE t (id serial PRIMARY KEY, v text);
INSERT INTO t (v) SELECT 'copied' FROM generate_series(1, 3);
