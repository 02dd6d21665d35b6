CREATE TABLE t (id int PRIMARY KEY, land text, n int, ok boolean, d date, price numeric(8,2), at timestamptz, b bytea, v text);
INSERT INTO t VALUES
    (1, 'de', 1, true, '2026-01-01', 1.5, '2026-01-01 00:00+00', '\x00', 'a'),
    (2, 'a/b c=%', 1, false, '1969-12-31', -1.5, '1969-12-31 23:59:59.999999+00', '\xff', 'a'),
    (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'a'),
    (4, '', 0, true, '2026-01-01', 0, '2026-01-01 00:00+00', '', 'a');
