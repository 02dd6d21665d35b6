CREATE TABLE beside (id int PRIMARY KEY, price numeric(10, 2), day date, at timestamptz, tags int[], note text);
ALTER TABLE beside ALTER tags SET STORAGE EXTERNAL;
INSERT INTO beside VALUES
    (1, 'NaN', 'infinity', '0044-03-15 12:00+00 BC', '{{1},{2}}', 'copied'),
    (2, 1.5, '2026-01-31', '2026-01-31 12:00+00', '{1,2}', 'copied'),
    (3, 1, '10000-01-01', NULL, array_fill(7, ARRAY[2, 2000]), 'large');
