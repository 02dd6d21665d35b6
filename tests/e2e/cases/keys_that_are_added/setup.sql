CREATE TABLE t (id int, code text NOT NULL, v text);
CREATE UNIQUE INDEX by_code ON t (code);
ALTER TABLE t REPLICA IDENTITY USING INDEX by_code;
INSERT INTO t VALUES (1, 'a', 'x'), (2, 'b', 'y');
