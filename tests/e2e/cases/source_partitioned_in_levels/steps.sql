UPDATE sales SET day = day + 365 WHERE id = 1;
UPDATE sales SET land = 'it' WHERE id = 2;
UPDATE sales SET amount = amount + 0.5;
-- WAIT
UPDATE sales SET day = '2025-12-31', land = 'de' WHERE id = 4;
DELETE FROM sales WHERE id = 3;
INSERT INTO sales VALUES ('2025-06-01', 'de', 5, 5);
