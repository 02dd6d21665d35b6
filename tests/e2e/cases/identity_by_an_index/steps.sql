UPDATE accounts SET id = 10 WHERE id = 1;
UPDATE accounts SET mail = 'bob@x' WHERE id = 2;
DELETE FROM accounts WHERE id = 3;
-- WAIT
UPDATE accounts SET owner = 'Bob B.' WHERE mail = 'bob@x';
INSERT INTO accounts VALUES (3, 'c@x', 'Cleo again');
