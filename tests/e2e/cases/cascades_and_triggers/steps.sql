UPDATE parents SET id = 10 WHERE id = 1;
DELETE FROM parents WHERE id = 2;
-- WAIT
INSERT INTO parents VALUES (3, 'c');
DELETE FROM parents WHERE id = 10;
