CREATE TABLE t (id int PRIMARY KEY, v varchar(5) NOT NULL, n numeric(6,2), c char(3) DEFAULT 'x');
INSERT INTO t VALUES (1, 'one', 1.5, 'abc');
