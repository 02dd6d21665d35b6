CREATE TABLE t (a int NOT NULL, b text NOT NULL, c int, v text);
CREATE UNIQUE INDEX by_both ON t (b, a);
ALTER TABLE t REPLICA IDENTITY USING INDEX by_both;
INSERT INTO t VALUES (1, 'x', NULL, 'one'), (1, 'y', NULL, 'two'), (2, 'x', 5, 'three');
