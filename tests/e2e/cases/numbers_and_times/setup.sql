CREATE TABLE measures (
    id int PRIMARY KEY,
    small smallint,
    big bigint,
    r real,
    d double precision,
    price numeric(10, 2),
    any_numeric numeric,
    yes boolean,
    day date,
    local timestamp,
    instant timestamptz
);
INSERT INTO measures VALUES
    (1, -32768, -9223372036854775808, 'NaN', 'Infinity', -99999999.99, 0.000000000000000001, true,
     '0001-01-01', '0001-01-01 00:00:00', '2026-03-29 02:30:00+02'),
    (2, 32767, 9223372036854775807, '-Infinity', '-0', 'NaN', 'Infinity', false,
     'infinity', '-infinity', 'infinity'),
    (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
