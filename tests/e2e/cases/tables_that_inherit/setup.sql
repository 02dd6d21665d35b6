CREATE TABLE animals (id int PRIMARY KEY, name text);
CREATE TABLE birds (wings int, PRIMARY KEY (id)) INHERITS (animals);
INSERT INTO animals VALUES (1, 'cat'), (2, 'dog');
INSERT INTO birds VALUES (1, 'owl', 2), (3, 'tit', 2);
