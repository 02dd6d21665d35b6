INSERT INTO typed VALUES
    ('7f14e45f-ceea-467f-a8c1-9f0c1a2b3c4d', '{"b": 1, "a":  [true, null]}', '{"b": 1.50}', '{00000000-0000-0000-0000-000000000001,NULL}', 1.500);
-- WAIT
UPDATE typed SET docb = docb || '{"c": "ü"}' WHERE id = '8f14e45f-ceea-467f-a8c1-9f0c1a2b3c4d';
UPDATE typed SET n = 0 WHERE id >= 'f0000000-0000-0000-0000-000000000000';
DELETE FROM typed WHERE id = '00000000-0000-0000-0000-000000000000';
