UPDATE papers SET n = 1 WHERE id = 1;
ALTER TABLE papers RENAME big TO large;
UPDATE papers SET n = 2 WHERE id = 1;
ALTER TABLE papers ADD COLUMN more text DEFAULT 'more';
UPDATE papers SET n = 1 WHERE id = 2;
-- WAIT
BEGIN;
UPDATE papers SET n = 3 WHERE id = 3;
ALTER TABLE papers RENAME large TO big;
UPDATE papers SET id = 30 WHERE id = 3;
COMMIT;
