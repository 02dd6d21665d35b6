CREATE TABLE typed (id uuid PRIMARY KEY, doc json, docb jsonb, ids uuid[], n numeric);
INSERT INTO typed VALUES
    ('8f14e45f-ceea-467f-a8c1-9f0c1a2b3c4d', '{"b": 1, "a":  [true, null]}', '{"b": 1.50}', '{00000000-0000-0000-0000-000000000001,NULL}', 1.500),
    ('ffffffff-ffff-ffff-ffff-ffffffffffff', 'null', NULL, '{}', 'NaN'),
    ('00000000-0000-0000-0000-000000000000', '"text"', '[]', NULL, 1e30);
