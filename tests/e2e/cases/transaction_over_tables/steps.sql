BEGIN;
INSERT INTO sales VALUES (1, 'apple', 3);
UPDATE stock SET pieces = pieces - 3 WHERE item = 'apple';
COMMIT;
BEGIN;
INSERT INTO sales VALUES (2, 'pear', 5);
UPDATE stock SET pieces = pieces - 5 WHERE item = 'pear';
DELETE FROM stock WHERE pieces = 0;
COMMIT;
-- WAIT
BEGIN;
DELETE FROM sales WHERE id = 1;
UPDATE stock SET pieces = pieces + 3 WHERE item = 'apple';
COMMIT;
