CREATE FUNCTION long(seed text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT seed || repeat('-', 3000) $$;
CREATE FUNCTION many(seed int) RETURNS int[] LANGUAGE sql IMMUTABLE AS $$ SELECT array_fill(seed, ARRAY[1000]) $$;
CREATE TABLE papers (id int PRIMARY KEY, title text, big text, marks int[]);
ALTER TABLE papers ALTER big SET STORAGE EXTERNAL, ALTER marks SET STORAGE EXTERNAL;
INSERT INTO papers SELECT g, 'first', long('a' || g), many(g) FROM generate_series(1, 6) g;
