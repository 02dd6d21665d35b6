UPDATE papers SET n = 1 WHERE id = 1;
UPDATE papers SET id = 20 WHERE id = 2;
-- DOWN
UPDATE papers SET n = 2 WHERE id = 1;
UPDATE papers SET id = 21 WHERE id = 20;
UPDATE papers SET big = long('new3') WHERE id = 3;
-- DOWN
UPDATE papers SET n = 3;
