UPDATE orders SET status = 'paid' WHERE id <= 3;
UPDATE orders SET status = 'sent', day = day + 1 WHERE id <= 2;
UPDATE orders SET total = 0 WHERE id = 9;
-- WAIT
UPDATE orders SET status = 'new' WHERE id = 1;
DELETE FROM orders WHERE id IN (2, 4);
BEGIN;
UPDATE orders SET status = 'x' WHERE id = 5;
UPDATE orders SET status = 'y' WHERE id = 5;
UPDATE orders SET status = 'new' WHERE id = 5;
COMMIT;
-- WAIT
BEGIN;
DELETE FROM orders WHERE id = 6;
INSERT INTO orders VALUES (6, 'again', '2026-02-01', 6);
COMMIT;
UPDATE orders SET id = 70, status = 'moved' WHERE id = 7;
TRUNCATE orders;
INSERT INTO orders VALUES (8, 'last', '2026-01-03', 8);
-- WAIT
UPDATE orders SET day = NULL WHERE id = 8;
INSERT INTO orders VALUES (1, 'new', '2026-01-02', 1);
