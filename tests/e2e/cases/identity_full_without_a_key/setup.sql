-- No primary key: the settings name the columns that tell rows apart.
CREATE TABLE readings (sensor int, at timestamptz, value real, note text);
ALTER TABLE readings REPLICA IDENTITY FULL;
INSERT INTO readings VALUES (1, '2026-01-01 00:00+00', 1.5, NULL), (1, '2026-01-01 00:01+00', 'NaN', 'x'), (2, '2026-01-01 00:00+00', NULL, NULL);
