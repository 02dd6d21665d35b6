CREATE TABLE stock (item text PRIMARY KEY, pieces int);
CREATE TABLE sales (id int PRIMARY KEY, item text, pieces int);
INSERT INTO stock VALUES ('apple', 10), ('pear', 5);
