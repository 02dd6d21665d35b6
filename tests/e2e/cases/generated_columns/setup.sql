CREATE TABLE boxes (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, w int, h int, area int GENERATED ALWAYS AS (w * h) STORED, note text);
INSERT INTO boxes (w, h, note) VALUES (2, 3, 'a'), (4, 5, 'b');
