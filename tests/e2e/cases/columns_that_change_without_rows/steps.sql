ALTER TABLE t ADD COLUMN c text DEFAULT 'new';
ALTER TABLE t RENAME COLUMN a TO z;
-- WAIT
-- several at once, rows before them in the same batch
UPDATE t SET b = 'bb';
ALTER TABLE t ALTER n TYPE numeric(9,2), DROP COLUMN b, ADD COLUMN d int;
-- WAIT
-- names that change hands
ALTER TABLE t RENAME COLUMN z TO x;
ALTER TABLE t RENAME COLUMN c TO z;
ALTER TABLE t RENAME COLUMN x TO c;
