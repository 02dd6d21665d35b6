-- One value has one key, by whichever road it comes.
CREATE TYPE size AS ENUM ('s', 'm', 'l');
CREATE TABLE small (k smallint PRIMARY KEY, v text);
CREATE TABLE exact (k numeric(20, 4) PRIMARY KEY, v text);
CREATE TABLE loose (k numeric PRIMARY KEY, v text);
CREATE TABLE moments (k timestamptz PRIMARY KEY, v text);
CREATE TABLE many (b boolean, d date, t timestamp, y bytea, u uuid, e size, i inet, f double precision, c char(4), v text,
    PRIMARY KEY (b, d, t, y, u, e, i, f, c));
INSERT INTO small VALUES (-32768, 'a'), (7, 'a');
INSERT INTO exact VALUES (1.5, 'a'), (-0.0001, 'a'), (1234567890123456.7891, 'a');
INSERT INTO loose VALUES (1.50, 'a'), (0, 'a'), (12345678901234567890.5, 'a');
INSERT INTO moments VALUES ('2026-01-01 01:00+01', 'a'), ('1969-12-31 23:59:59.999999+00', 'a');
INSERT INTO many VALUES
    (true, '2026-01-01', '2026-01-01 00:00:00.000001', '\x00ff', '8f14e45f-ceea-467f-a8c1-9f0c1a2b3c4d', 'm', '10.0.0.1/8', 0.1, 'ab', 'a'),
    (false, '0001-01-01', '9999-12-31 23:59:59.999999', '', 'ffffffff-ffff-ffff-ffff-ffffffffffff', 's', '::1', '-0', '', 'a');
