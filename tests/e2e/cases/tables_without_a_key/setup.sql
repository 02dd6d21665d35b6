CREATE TABLE keyless (a int, b text);
CREATE TABLE nameless (id int PRIMARY KEY, b text);
ALTER TABLE nameless REPLICA IDENTITY NOTHING;
CREATE TABLE beside (id int PRIMARY KEY, b text);
INSERT INTO keyless VALUES (1, 'x');
INSERT INTO nameless VALUES (1, 'x');
INSERT INTO beside VALUES (1, 'x');
