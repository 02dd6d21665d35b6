-- The ranges of first copies that are under way: planned together, each noted with its files when it is written.
DELETE FROM {schema}.snapshot_progress;
ALTER TABLE {schema}.snapshot_progress
    DROP CONSTRAINT snapshot_progress_pkey,
    DROP COLUMN last_pk_key,
    DROP COLUMN updated_at,
    ADD COLUMN group_name   text NOT NULL,
    ADD COLUMN position     bigint NOT NULL, -- of the snapshot
    ADD COLUMN range_number int NOT NULL,
    ADD COLUMN relation_oid bigint NOT NULL,
    ADD COLUMN start_page   bigint NOT NULL,
    ADD COLUMN end_page     bigint, -- null: all that are left
    ADD COLUMN pages        bigint NOT NULL,
    ADD COLUMN planned_at   timestamptz NOT NULL DEFAULT now(),
    ADD COLUMN done_at      timestamptz, -- null: not written yet
    ADD COLUMN row_count    bigint NOT NULL DEFAULT 0,
    ADD COLUMN byte_size    bigint NOT NULL DEFAULT 0,
    ADD COLUMN files        jsonb,
    ADD PRIMARY KEY (pipeline, group_name, table_name, position, range_number);
