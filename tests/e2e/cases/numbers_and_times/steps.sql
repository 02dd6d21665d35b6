INSERT INTO measures VALUES
    (4, 0, 0, 1e-40, 5e-324, 0.01, 12345678901234567890.123456789012345678, true,
     '9999-12-31', '9999-12-31 23:59:59.999999', '1969-12-31 23:59:59.999999+00'),
    (5, 1, 1, 3.4028235e38, 'NaN', 1, 1e30, NULL, '0044-03-15 BC', '0044-03-15 12:00 BC', '0044-03-15 12:00+00 BC');
-- WAIT
UPDATE measures SET price = 'NaN', any_numeric = 'NaN', day = '-infinity', instant = '-infinity' WHERE id = 3;
UPDATE measures SET price = 7, day = '2026-02-28', local = '2026-02-28 08:00', r = 0.1, d = 0.1 WHERE id = 5;
