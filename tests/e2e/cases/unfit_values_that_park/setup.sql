CREATE TABLE strict (id int PRIMARY KEY, price numeric(8,2));
CREATE TABLE partly (id int PRIMARY KEY, price numeric(8,2), cost numeric(8,2));
CREATE TABLE beside (id int PRIMARY KEY, price numeric(8,2));
INSERT INTO strict VALUES (1, 1);
INSERT INTO partly VALUES (1, 1, 1), (2, 'NaN', 2);
INSERT INTO beside VALUES (1, 1);
