UPDATE papers SET shelf = 's9' WHERE id = 1;
UPDATE papers SET n = 1 WHERE id = 1;
UPDATE papers SET shelf = 's8', id = 20 WHERE id = 2;
-- WAIT
UPDATE papers SET shelf = 's7' WHERE id = 20;
UPDATE papers SET shelf = 's0' WHERE id = 1;
UPDATE papers SET shelf = 's1' WHERE id = 1;
DELETE FROM papers WHERE id = 3;
UPDATE papers SET shelf = NULL WHERE id = 4;
