UPDATE papers SET title = 'changed' WHERE id = 1;
UPDATE papers SET id = 20 WHERE id = 2;
UPDATE papers SET id = 30 WHERE id = 3;
UPDATE papers SET id = 31, title = 'moved twice' WHERE id = 30;
INSERT INTO papers VALUES (6, 'new', long('new6'));
UPDATE papers SET id = 60 WHERE id = 6;
-- WAIT
UPDATE papers SET big = long('fresh') WHERE id = 20;
UPDATE papers SET id = 21 WHERE id = 20;
DELETE FROM papers WHERE id = 4;
INSERT INTO papers VALUES (4, 'again', long('other4'));
UPDATE papers SET id = 40 WHERE id = 4;
UPDATE papers SET title = 'only the title' WHERE id = 5;
UPDATE papers SET id = 50 WHERE id = 5;
