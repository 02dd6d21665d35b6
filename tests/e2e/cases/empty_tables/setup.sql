CREATE TABLE never_filled (id int PRIMARY KEY, note text);
CREATE TABLE filled_later (id int PRIMARY KEY, note text);
CREATE TABLE emptied (id int PRIMARY KEY, note text);
INSERT INTO emptied VALUES (1, 'here'), (2, 'today');
