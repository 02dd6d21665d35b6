DELETE FROM pages WHERE id = 2;
INSERT INTO pages VALUES (61, 'streamed', NULL);
UPDATE parts SET id = 19, filler = NULL WHERE id = 6;
