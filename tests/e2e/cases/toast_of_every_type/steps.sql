UPDATE papers SET n = 1;
UPDATE papers SET n = 2, digits = 2.5;
-- WAIT
UPDATE papers SET id = 2;
UPDATE papers SET n = 3;
