CREATE TABLE lines (doc text, line int, amount int, PRIMARY KEY (doc, line));
INSERT INTO lines VALUES ('a', 1, 10), ('a', 2, 20), ('b', 1, 30), ('b', 2, 40);
