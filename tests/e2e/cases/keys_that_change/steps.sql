-- a chain, in one transaction and over several
BEGIN;
UPDATE people SET id = 11 WHERE id = 1;
UPDATE people SET id = 12, name = 'Ada L.' WHERE id = 11;
COMMIT;
UPDATE people SET id = 1 WHERE id = 12;
-- the old key is taken by another row
UPDATE people SET id = 22 WHERE id = 2;
INSERT INTO people VALUES (2, 'Bea');
-- moved and deleted
UPDATE people SET id = 33 WHERE id = 3;
DELETE FROM people WHERE id = 33;
-- WAIT
-- two rows change places by way of a third key
BEGIN;
UPDATE people SET id = 99 WHERE id = 2;
UPDATE people SET id = 2 WHERE id = 22;
UPDATE people SET id = 22 WHERE id = 99;
COMMIT;
DELETE FROM people WHERE id = 4;
INSERT INTO people VALUES (4, 'Dora');
UPDATE people SET id = 40 WHERE id = 4;
