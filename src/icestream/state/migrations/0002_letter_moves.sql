-- Dead letters on their way to the Iceberg tables of a group. A move is one commit, and a group has one at a time.
CREATE TABLE {schema}.letter_move (
    pipeline   text NOT NULL,
    group_name text NOT NULL,
    letter_id  text NOT NULL,
    move_id    uuid NOT NULL,
    namespace  text NOT NULL,
    moved_at   timestamptz, -- null: begun; whether it has arrived, the Iceberg table knows
    PRIMARY KEY (pipeline, group_name, letter_id)
);
CREATE INDEX letter_move_open ON {schema}.letter_move (pipeline, group_name, move_id) WHERE moved_at IS NULL;
