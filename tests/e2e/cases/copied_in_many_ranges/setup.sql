-- Never analyzed, a few rows to a page, with pages in between that are empty.
CREATE TABLE pages (id int PRIMARY KEY, kind text, filler text) WITH (autovacuum_enabled = off);
ALTER TABLE pages ALTER filler SET STORAGE PLAIN;
INSERT INTO pages SELECT g, 'first', repeat('x', 3500) FROM generate_series(1, 60) g;
DELETE FROM pages WHERE id BETWEEN 5 AND 54;
UPDATE pages SET kind = 'moved behind the others' WHERE id = 1;
CREATE TABLE nothing (id int PRIMARY KEY) WITH (autovacuum_enabled = off);
CREATE TABLE parts (id int PRIMARY KEY, filler text) PARTITION BY RANGE (id);
CREATE TABLE parts_low PARTITION OF parts FOR VALUES FROM (0) TO (10);
CREATE TABLE parts_high PARTITION OF parts FOR VALUES FROM (10) TO (20);
INSERT INTO parts SELECT g, repeat('y', 1500) FROM generate_series(6, 13) g;
