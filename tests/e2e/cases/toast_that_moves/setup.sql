-- `big` is stored out of line, so an update that does not touch it does not send it.
CREATE TABLE papers (id int PRIMARY KEY, title text, big text);
ALTER TABLE papers ALTER big SET STORAGE EXTERNAL;
CREATE FUNCTION long(word text) RETURNS text LANGUAGE sql AS $$ SELECT repeat(word, 1000) $$;
INSERT INTO papers SELECT g, 'title ' || g, long('old' || g) FROM generate_series(1, 5) g;
