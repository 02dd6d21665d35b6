CREATE TABLE people (id int, land text, name text, PRIMARY KEY (id, land)) PARTITION BY LIST (land);
CREATE TABLE people_de PARTITION OF people FOR VALUES IN ('de', 'at');
CREATE TABLE people_fr PARTITION OF people FOR VALUES IN ('fr');
CREATE TABLE people_others PARTITION OF people DEFAULT;
INSERT INTO people VALUES (1, 'de', 'Ada'), (2, 'fr', 'Bea'), (3, 'xx', 'Cleo'), (4, 'at', 'Dan');
