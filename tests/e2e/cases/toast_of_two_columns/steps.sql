UPDATE papers SET big = long('b1') WHERE id = 1;
UPDATE papers SET marks = many(12) WHERE id = 1;
UPDATE papers SET title = 'neither' WHERE id = 2;
UPDATE papers SET marks = many(13) WHERE id = 3;
UPDATE papers SET title = 'twice' WHERE id = 3;
-- WAIT
UPDATE papers SET title = 'later' WHERE id = 1;
UPDATE papers SET id = 40, big = long('b4') WHERE id = 4;
UPDATE papers SET title = 'moved' WHERE id = 40;
DELETE FROM papers WHERE id = 5;
INSERT INTO papers VALUES (5, 'again', long('b5'), NULL);
UPDATE papers SET title = 'again and again' WHERE id = 5;
UPDATE papers SET big = NULL WHERE id = 6;
UPDATE papers SET title = 'no big' WHERE id = 6;
-- WAIT
UPDATE papers SET id = 41 WHERE id = 40;
UPDATE papers SET marks = NULL, title = 'no marks' WHERE id = 2;
