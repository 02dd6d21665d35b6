ALTER TABLE serials ADD COLUMN n serial;
ALTER TABLE lists ADD COLUMN tags int[] DEFAULT '{1,2}';
ALTER TABLE unfits ADD COLUMN d date DEFAULT 'infinity';
ALTER TABLE floats ADD COLUMN r real DEFAULT 'NaN', ADD COLUMN d double precision DEFAULT '-Infinity';
INSERT INTO floats VALUES (2);
INSERT INTO serials VALUES (30);
INSERT INTO lists VALUES (2);
INSERT INTO unfits VALUES (2), (3);
-- WAIT
UPDATE unfits SET d = '2026-01-01' WHERE id = 3;
INSERT INTO lists VALUES (3, '{}');
