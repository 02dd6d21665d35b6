UPDATE people SET land = 'fr' WHERE id = 1;
UPDATE people SET name = 'Béa' WHERE id = 2;
UPDATE people SET land = 'de' WHERE id = 4;
INSERT INTO people VALUES (5, 'yy', 'Eve');
-- WAIT
DELETE FROM people WHERE land = 'xx';
UPDATE people SET land = 'zz', id = 20 WHERE id = 2;
INSERT INTO people_de VALUES (6, 'de', 'straight into a partition');
