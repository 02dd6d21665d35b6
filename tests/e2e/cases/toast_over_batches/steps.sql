-- several updates of a row in one batch, none of which sends the value
UPDATE papers SET n = 1 WHERE id = 1;
UPDATE papers SET n = 2 WHERE id = 1;
UPDATE papers SET n = 3 WHERE id = 1;
-- sent once, not sent afterwards
UPDATE papers SET big = long('new2') WHERE id = 2;
UPDATE papers SET n = 2 WHERE id = 2;
-- WAIT
UPDATE papers SET n = 4 WHERE id = 1;
UPDATE papers SET n = 5 WHERE id = 2;
BEGIN;
UPDATE papers SET n = 1 WHERE id = 3;
UPDATE papers SET big = 'short' WHERE id = 3;
UPDATE papers SET n = 2 WHERE id = 3;
COMMIT;
-- WAIT
UPDATE papers SET n = 6 WHERE id = 1;
UPDATE papers SET n = 6 WHERE id = 4;
UPDATE papers SET big = NULL WHERE id = 4;
UPDATE papers SET n = 7 WHERE id = 4;
