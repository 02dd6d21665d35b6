-- Dead letters that every group has in Iceberg are gone from here: how many, and up to where. What comes again from
-- there, by a worker that was paused, is not noted a second time.
CREATE TABLE {schema}.moved_letters (
    pipeline    text NOT NULL,
    table_name  text NOT NULL,
    epoch       uuid NOT NULL,
    letters     bigint NOT NULL,
    last_offset bigint NOT NULL, -- in the log; -1: none
    last_copy   bigint NOT NULL, -- position of a copy; -1: none
    PRIMARY KEY (pipeline, table_name, epoch)
);

-- By letter, as they go with it. A group has a move at a time for each namespace.
ALTER TABLE {schema}.letter_move
    DROP CONSTRAINT letter_move_pkey,
    ADD PRIMARY KEY (pipeline, letter_id, group_name);
DROP INDEX {schema}.letter_move_open;
CREATE INDEX letter_move_open ON {schema}.letter_move (pipeline, group_name, namespace, move_id) WHERE moved_at IS NULL;
