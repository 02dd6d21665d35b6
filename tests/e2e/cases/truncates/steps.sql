BEGIN;
INSERT INTO heap VALUES (11, 'in vain');
TRUNCATE heap, beside;
INSERT INTO heap VALUES (1, 'after'), (2, 'after');
COMMIT;
UPDATE heap SET note = 'after all' WHERE id = 2;
-- WAIT
BEGIN;
TRUNCATE heap CASCADE;
ROLLBACK;
INSERT INTO heap VALUES (3, 'kept');
-- WAIT
TRUNCATE heap CASCADE;
INSERT INTO heap VALUES (9, 'last');
