INSERT INTO t VALUES (2, 'b');
ALTER TABLE t RENAME TO things;
INSERT INTO things VALUES (3, 'c');
-- WAIT
ALTER TABLE things SET SCHEMA shop;
INSERT INTO shop.things VALUES (4, 'd');
ALTER TABLE shop.things ADD COLUMN w int DEFAULT 7;
INSERT INTO other VALUES (1);
-- WAIT
-- followed also where only the rewrite tells
ALTER TABLE shop.things ALTER w TYPE int USING w + id;
