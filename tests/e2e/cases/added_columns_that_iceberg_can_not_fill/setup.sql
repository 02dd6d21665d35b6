-- Defaults that are no constant that Iceberg could keep: the table is copied anew.
CREATE TABLE serials (id int PRIMARY KEY);
CREATE TABLE lists (id int PRIMARY KEY);
CREATE TABLE unfits (id int PRIMARY KEY);
CREATE TABLE floats (id int PRIMARY KEY);
INSERT INTO floats VALUES (1);
INSERT INTO serials VALUES (10), (20);
INSERT INTO lists VALUES (1);
INSERT INTO unfits VALUES (1);
