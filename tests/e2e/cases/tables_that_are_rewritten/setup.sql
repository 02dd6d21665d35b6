CREATE TYPE mood AS ENUM ('sad', 'fine');
CREATE TABLE t (id int PRIMARY KEY, n int, m mood);
CREATE TABLE other (id int PRIMARY KEY, n int);
INSERT INTO t VALUES (1, 1, 'sad'), (2, 2, 'fine'), (3, 3, NULL);
INSERT INTO other VALUES (1, 1);
