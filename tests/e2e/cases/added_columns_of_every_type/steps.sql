INSERT INTO t VALUES (2);
ALTER TABLE t ADD COLUMN i smallint DEFAULT 7, ADD COLUMN l bigint DEFAULT 4000000000, ADD COLUMN r real DEFAULT 0.1, ADD COLUMN f double precision DEFAULT -1e300,
    ADD COLUMN n numeric(10,3) DEFAULT 1.5, ADD COLUMN any_n numeric DEFAULT 0.1, ADD COLUMN ok boolean DEFAULT false, ADD COLUMN d date DEFAULT '2026-01-31',
    ADD COLUMN t timestamp DEFAULT '2026-01-31 12:00:00.5', ADD COLUMN z timestamptz DEFAULT '2026-01-31 12:00+02', ADD COLUMN s text DEFAULT E'tab\t ''quote''',
    ADD COLUMN b bytea DEFAULT '\x00ff', ADD COLUMN u uuid DEFAULT '8f14e45f-ceea-467f-a8c1-9f0c1a2b3c4d', ADD COLUMN j jsonb DEFAULT '{"a": 1}',
    ADD COLUMN v interval DEFAULT '1 day', ADD COLUMN o time DEFAULT '12:00';
UPDATE t SET s = 'S' WHERE id = 1;
-- WAIT
INSERT INTO t (id, i) VALUES (3, 3);
