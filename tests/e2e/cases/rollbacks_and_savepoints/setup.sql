CREATE TABLE ledger (id int PRIMARY KEY, amount int);
INSERT INTO ledger VALUES (1, 100), (2, 200);
