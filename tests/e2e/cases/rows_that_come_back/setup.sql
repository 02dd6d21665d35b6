CREATE TABLE visits (id int PRIMARY KEY, note text);
INSERT INTO visits VALUES (1, 'old'), (2, 'old'), (3, 'old');
