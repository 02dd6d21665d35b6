CREATE TABLE t (id int PRIMARY KEY, i int, l bigint, n numeric(10,2), d date, ts timestamp, z timestamptz, s text, b bytea, u uuid);
INSERT INTO t SELECT g, g, g * 10000000000, g + 0.25, '2026-01-01'::date + g, '2026-01-01'::timestamp + g * interval '1 hour',
    '2026-01-01 00:00+00'::timestamptz + g * interval '1 day', 'word ' || g, decode(lpad(to_hex(g), 2, '0'), 'hex'), ('00000000-0000-0000-0000-00000000000' || g)::uuid
    FROM generate_series(1, 5) g;
