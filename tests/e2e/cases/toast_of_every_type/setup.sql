CREATE TABLE papers (id int PRIMARY KEY, n int, doc jsonb, plain json, bytes bytea, words text[], digits numeric, spans int4multirange);
ALTER TABLE papers ALTER doc SET STORAGE EXTERNAL, ALTER plain SET STORAGE EXTERNAL, ALTER bytes SET STORAGE EXTERNAL, ALTER words SET STORAGE EXTERNAL, ALTER spans SET STORAGE EXTERNAL;
INSERT INTO papers SELECT 1, 0, jsonb_build_object('a', repeat('x', 3000)), json_build_object('b', repeat('y', 3000)), decode(repeat('0aff', 1500), 'hex'),
    array_fill('word'::text, ARRAY[600]), 1.5, (SELECT range_agg(int4range(2 * g, 2 * g + 1)) FROM generate_series(1, 400) g);
