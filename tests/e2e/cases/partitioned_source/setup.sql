CREATE TABLE readings (day date, sensor int, value int, PRIMARY KEY (day, sensor)) PARTITION BY RANGE (day);
CREATE TABLE readings_january PARTITION OF readings FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');
CREATE TABLE readings_later PARTITION OF readings DEFAULT PARTITION BY HASH (sensor);
CREATE TABLE readings_later_0 PARTITION OF readings_later FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE readings_later_1 PARTITION OF readings_later FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO readings SELECT '2026-01-31'::date + g, g, 1 FROM generate_series(0, 3) g;
