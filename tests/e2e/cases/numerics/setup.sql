-- POSTGRES 15
CREATE TABLE numbers (id int PRIMARY KEY, full_scale numeric(38, 38), widest numeric(38, 0), wider numeric(39, 1), coarse numeric(3, -2), small numeric(2, 4), any_numeric numeric);
INSERT INTO numbers VALUES
    (1, 0.99999999999999999999999999999999999999, -99999999999999999999999999999999999999, 12345678901234567890123456789012345678.9, 12345, 0.0012, 1e-18),
    (2, 'NaN', 'NaN', 'NaN', 'NaN', 'NaN', '-Infinity');
