CREATE FUNCTION long(word text) RETURNS text LANGUAGE sql AS $$ SELECT repeat(word, 1000) $$;

CREATE TABLE papers (id int PRIMARY KEY, n int, big text, gone text);
ALTER TABLE papers ALTER big SET STORAGE EXTERNAL, ALTER gone SET STORAGE EXTERNAL;
INSERT INTO papers SELECT g, 0, long('old' || g), long('gone') FROM generate_series(1, 3) g;
