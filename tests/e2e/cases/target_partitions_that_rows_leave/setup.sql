-- No row may stay behind in the partition that it left.
CREATE TABLE orders (id int PRIMARY KEY, status text, day date, total int);
INSERT INTO orders SELECT g, 'new', '2026-01-01'::date + g % 3, g FROM generate_series(1, 9) g;
