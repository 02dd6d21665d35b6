CREATE FUNCTION long(word text) RETURNS text LANGUAGE sql AS $$ SELECT repeat(word, 1000) $$;

CREATE TABLE papers (id int PRIMARY KEY, shelf text, n int, big text);
ALTER TABLE papers ALTER big SET STORAGE EXTERNAL;
INSERT INTO papers SELECT g, 's' || g % 2, 0, long('old' || g) FROM generate_series(1, 4) g;
