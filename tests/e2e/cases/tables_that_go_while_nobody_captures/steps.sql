INSERT INTO beside VALUES (2, 'y');
-- DOWN
DROP TABLE dropped;
DROP TABLE made_again;
CREATE TABLE made_again (id int PRIMARY KEY, v text);
INSERT INTO made_again VALUES (7, 'another table');
ALTER TABLE renamed RENAME TO renamed_now;
INSERT INTO renamed_now VALUES (2, 'y');
CREATE SCHEMA elsewhere;
ALTER TABLE moved SET SCHEMA elsewhere;
UPDATE elsewhere.moved SET v = 'moved' WHERE id = 1;
INSERT INTO beside VALUES (3, 'z');
-- DOWN
INSERT INTO renamed_now VALUES (3, 'z');
INSERT INTO elsewhere.moved VALUES (2, 'y');
INSERT INTO beside VALUES (4, 'z');
