-- A deferrable key lets two rows have one key for a moment; PostgreSQL then asks for the full identity.
CREATE TABLE seats (seat int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, guest text, note text);
ALTER TABLE seats REPLICA IDENTITY FULL;
INSERT INTO seats VALUES (1, 'Ada', 'x'), (2, 'Bob', 'x'), (3, 'Cleo', 'x'), (4, 'Dan', 'x');
