-- Such a row can't be in the table; it is a dead letter, and never taken for another one.
CREATE TABLE t (k numeric PRIMARY KEY, v text);
INSERT INTO t VALUES ('NaN', 'copied'), ('Infinity', 'copied'), (1, 'copied');
