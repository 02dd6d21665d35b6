-- What was last seen of the source's tables beside their rows: what the stream does not tell is found by comparing.
CREATE TABLE {schema}.sighting (
    pipeline   text NOT NULL,
    table_name text NOT NULL,
    pg_oid     bigint NOT NULL,
    number     bigint NOT NULL DEFAULT 1, -- counts its versions
    footprint  jsonb NOT NULL, -- where the rows lie
    relation   jsonb, -- the columns; null: not fit to be followed yet
    shape_lsn  bigint NOT NULL, -- where the source was after those columns were seen
    earlier    jsonb, -- the columns before those, as long as the log has not come so far
    PRIMARY KEY (pipeline, table_name)
);

-- The last look at the source.
CREATE TABLE {schema}.watch (
    pipeline  text PRIMARY KEY,
    lsn       bigint NOT NULL, -- where the source was after it
    looked_at timestamptz NOT NULL DEFAULT now()
);

-- Up to where the columns that were seen are in the Iceberg table, also without rows.
ALTER TABLE {schema}.mat_cursor ADD COLUMN shape_lsn bigint NOT NULL DEFAULT 0;
