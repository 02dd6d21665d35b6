CREATE TABLE people (id int PRIMARY KEY, name text);
INSERT INTO people VALUES (1, 'Ada'), (2, 'Bob'), (3, 'Cleo'), (4, 'Dan');
