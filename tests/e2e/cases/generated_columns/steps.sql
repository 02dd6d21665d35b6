UPDATE boxes SET w = 10 WHERE id = 1;
INSERT INTO boxes (w, h, note) VALUES (1, 1, 'c');
-- WAIT
ALTER TABLE boxes ADD COLUMN double_w int GENERATED ALWAYS AS (w * 2) STORED, ADD COLUMN plain int DEFAULT 7;
UPDATE boxes SET note = 'B' WHERE id = 2;
DELETE FROM boxes WHERE id = 3;
