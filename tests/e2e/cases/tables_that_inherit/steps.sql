-- touches the rows of both tables
UPDATE animals SET name = upper(name) WHERE id = 1;
INSERT INTO birds VALUES (4, 'emu', 2);
-- WAIT
DELETE FROM animals WHERE id = 3;
ALTER TABLE animals ADD COLUMN legs int DEFAULT 4;
INSERT INTO animals VALUES (5, 'ant', 6);
INSERT INTO birds (id, name, wings) VALUES (6, 'jay', 2);
