SET DateStyle = 'SQL, DMY';
SET IntervalStyle = 'postgres_verbose';
SET TimeZone = 'America/New_York';
SET bytea_output = 'escape';
SET extra_float_digits = -15;
INSERT INTO t VALUES (2, '31/01/2026', '31/01/2026 05:30', '1 day 2 hours', '\x41ff', 0.1::float8 + 0.2::float8);
UPDATE t SET n = n + '1 month' WHERE id = 1;
