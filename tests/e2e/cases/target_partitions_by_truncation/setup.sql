CREATE TABLE t (id int PRIMARY KEY, i int, l bigint, n numeric(10,2), s text, b bytea);
INSERT INTO t VALUES (1, -1, -1, -0.01, 'äöü𝄞x', '\x010203'), (2, 19, 199, 19.99, '', ''), (3, NULL, NULL, NULL, NULL, NULL);
