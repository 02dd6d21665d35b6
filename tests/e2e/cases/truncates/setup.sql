CREATE TABLE heap (id int PRIMARY KEY, note text);
CREATE TABLE beside (id int PRIMARY KEY, heap_id int REFERENCES heap);
INSERT INTO heap SELECT g, 'before' FROM generate_series(1, 10) g;
INSERT INTO beside VALUES (1, 1);
