CREATE FUNCTION long(word text) RETURNS text LANGUAGE sql AS $$ SELECT repeat(word, 1000) $$;

CREATE TABLE papers (id int PRIMARY KEY, n int, big text, other text);
ALTER TABLE papers REPLICA IDENTITY FULL;
ALTER TABLE papers ALTER big SET STORAGE EXTERNAL, ALTER other SET STORAGE EXTERNAL;
INSERT INTO papers SELECT g, 0, long('old' || g), long('other') FROM generate_series(1, 4) g;
