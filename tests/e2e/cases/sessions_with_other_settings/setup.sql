-- What a writer's session prefers must not show in the values.
SET DateStyle = 'German, DMY';
SET IntervalStyle = 'sql_standard';
SET TimeZone = 'Asia/Kolkata';
SET bytea_output = 'escape';
SET extra_float_digits = -3;
CREATE TABLE t (id int PRIMARY KEY, d date, z timestamptz, n interval, b bytea, f double precision);
INSERT INTO t VALUES (1, '31.01.2026', '31.01.2026 05:30', '1 02:03:04', '\x41ff', 0.1::float8 + 0.2::float8);
