CREATE TABLE spans (id int PRIMARY KEY, span interval, spans interval[], clock time, zoned timetz, period tstzrange);
INSERT INTO spans VALUES
    (1, '1 year 2 mons 3 days 04:05:06.789', '{1 day,"-1 hour"}', '24:00:00', '12:34:56.789+02', '[2026-01-01 00:00+02,infinity)'),
    (2, '0', '{}', '00:00:00.000001', '00:00:00-11:30', 'empty');
