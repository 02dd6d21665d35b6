INSERT INTO documents VALUES
    ('8f14e45f-ceea-467f-a8c1-9f0c1a2b3c4d', E'back\\slash\nand newline', 'ä€𝄞', 'ab', '{"a":  1}',
     '{"b": [1, null], "a":  1}', '\x00ff', '{a,"b c",NULL}', '1 year 2 days 03:04:05', '10.0.0.1/8', 'happy',
     '12:34:56.789');
-- WAIT
UPDATE documents SET bytes = '\xdeadbeef', docb = docb || '{"c": "ü"}', feeling = 'sad'
WHERE id = '00000000-0000-0000-0000-000000000001';
DELETE FROM documents WHERE id = '00000000-0000-0000-0000-000000000003';
UPDATE documents SET plain = 'the last uuid' WHERE id = 'ffffffff-ffff-ffff-ffff-ffffffffffff';
