CREATE TABLE accounts (id int PRIMARY KEY, mail text NOT NULL, owner text);
CREATE UNIQUE INDEX by_mail ON accounts (mail);
ALTER TABLE accounts REPLICA IDENTITY USING INDEX by_mail;
INSERT INTO accounts VALUES (1, 'a@x', 'Ada'), (2, 'b@x', 'Bob'), (3, 'c@x', 'Cleo');
