-- POSTGRES 15
CREATE TABLE stock (item text PRIMARY KEY, n int);
CREATE TABLE news (item text PRIMARY KEY, n int);
INSERT INTO stock VALUES ('a', 1), ('b', 2), ('c', 3);
INSERT INTO news VALUES ('b', 20), ('d', 40);
