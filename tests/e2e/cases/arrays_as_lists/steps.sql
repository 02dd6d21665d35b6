INSERT INTO lists VALUES
    (11, '{1,NULL,-2147483648}', '{a,"",NULL,"NULL"}', '{1.5,NULL}', '{0001-01-01}', '{"\\x00ff","\\x"}', '{sad,"so so"}', '{t,f}'),
    (12, '{}', '{}', '{}', '{}', '{}', '{}', '{}'),
    (13, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (14, '{{1,2},{3,4}}', '[0:1]={a,b}', '{1,NaN}', '{infinity}', NULL, NULL, NULL);
-- WAIT
INSERT INTO lists (id, words) VALUES (20, ARRAY['a,b', '{c}', 'd"e', 'f\g', ' ', 'ä€𝄞', E'h\ti']);
UPDATE lists SET words = ARRAY['only'], numbers[2] = 7 WHERE id = 1;
