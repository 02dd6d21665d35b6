CREATE TABLE t (id int PRIMARY KEY, d date, m date, y timestamp, h timestamp, z timestamptz, v text);
INSERT INTO t VALUES
    (1, '2026-01-31', '2026-01-31', '2026-01-31 00:00', '2026-01-31 23:59:59', '2026-01-31 23:59:59+00', 'a'),
    (2, '1969-12-31', '1969-12-31', '1969-12-31 23:00', '1969-12-31 23:59:59.999999', '1969-12-31 23:59:59+00', 'a'),
    (3, NULL, NULL, NULL, NULL, NULL, 'a');
