CREATE TABLE spans (id int PRIMARY KEY, i int4range, l int8range, n numrange, d daterange, t tsrange, z tstzrange, m int8multirange, dm datemultirange);
INSERT INTO spans VALUES
    (1, '[1,5)', '(,10]', '(1.5,2.50]', '[2026-01-01,2026-02-01)', '[2026-01-01 00:00,)', '[2026-01-01 00:00+01,2026-01-02 00:00+00]', '{[1,2),[5,9)}', '{}'),
    (2, 'empty', '(,)', 'empty', '(,infinity)', NULL, NULL, NULL, '{[2026-01-01,2026-02-01),(2027-01-01,)}');
