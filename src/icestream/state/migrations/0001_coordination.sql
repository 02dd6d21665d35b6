-- What is remembered between steps. Every row belongs to one pipeline, so that several can share a schema.
-- Positions (LSNs) are stored as bigint with the same 64 bits; offsets count the rows of one table's log, end exclusive.

-- Which cluster, slot and epoch the pipeline's positions and offsets belong to.
CREATE TABLE {schema}.pipeline_meta (
    pipeline          text PRIMARY KEY,
    epoch             uuid NOT NULL,
    system_identifier numeric(20) NOT NULL, -- unsigned 64 bits
    timeline          int NOT NULL,
    slot_name         text NOT NULL,
    publication_name  text NOT NULL,
    publication_oid   bigint NOT NULL,
    created_at        timestamptz NOT NULL DEFAULT now(),
    updated_at        timestamptz NOT NULL DEFAULT now()
);

-- A slot that capture is about to create: after a crash it is known to be ours, and not somebody else's.
CREATE TABLE {schema}.slot_intent (
    pipeline          text PRIMARY KEY,
    slot_name         text NOT NULL,
    system_identifier numeric(20) NOT NULL,
    created_at        timestamptz NOT NULL DEFAULT now()
);

-- Everything up to `lsn` is in the log. Claims serialize on this row.
CREATE TABLE {schema}.flushed_lsn (
    pipeline   text PRIMARY KEY,
    epoch      uuid NOT NULL,
    lsn        bigint NOT NULL,
    claim_id   uuid, -- the claim that moved it here; settles a commit whose answer was lost
    updated_at timestamptz NOT NULL DEFAULT now()
);

-- Files whose upload was announced and that are not claimed yet.
CREATE TABLE {schema}.staged_intent (
    path       text PRIMARY KEY,
    pipeline   text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX staged_intent_age ON {schema}.staged_intent (pipeline, created_at);

-- Files that nothing refers to any more; the row goes after the file.
CREATE TABLE {schema}.garbage (
    path     text PRIMARY KEY,
    pipeline text NOT NULL,
    since    timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX garbage_age ON {schema}.garbage (pipeline, since);

-- The end of each table's log: next offset, bytes so far, newest shape.
CREATE TABLE {schema}.log_seq (
    pipeline         text NOT NULL,
    table_name       text NOT NULL,
    next_offset      bigint NOT NULL DEFAULT 0,
    next_byte        bigint NOT NULL DEFAULT 0,
    relation_version text NOT NULL,
    PRIMARY KEY (pipeline, table_name)
);

-- One row per claimed file. `claim_end` is where the claim's part of this table ends: batches are cut only there.
CREATE TABLE {schema}.log_index (
    pipeline         text NOT NULL,
    table_name       text NOT NULL,
    end_offset       bigint NOT NULL,
    start_offset     bigint NOT NULL,
    s3_path          text NOT NULL,
    record_count     int NOT NULL,
    byte_size        bigint NOT NULL,
    start_byte       bigint NOT NULL, -- bytes of the table's log before this file
    flushable_lsn    bigint NOT NULL DEFAULT 0,
    first_commit_at   timestamptz NOT NULL DEFAULT now(), -- when the source committed the oldest change in it
    created_at       timestamptz NOT NULL DEFAULT now(),
    claim_id         uuid NOT NULL,
    claim_end        bigint NOT NULL,
    epoch            uuid NOT NULL,
    relation_version text NOT NULL,
    profile          jsonb NOT NULL,
    PRIMARY KEY (pipeline, table_name, end_offset),
    CHECK (start_offset < end_offset AND end_offset <= claim_end)
);

-- Every shape a table had while its changes were staged.
CREATE TABLE {schema}.relation_version (
    pipeline   text NOT NULL,
    table_name text NOT NULL,
    version    text NOT NULL,
    relation   jsonb NOT NULL,
    first_seen timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (pipeline, table_name, version)
);

-- Groups that read the log; retention waits for all of them.
CREATE TABLE {schema}.log_group (
    pipeline      text NOT NULL,
    group_name    text NOT NULL,
    registered_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (pipeline, group_name)
);

-- How far a group's tables have come: a quick copy of what the Iceberg tables say themselves.
CREATE TABLE {schema}.mat_cursor (
    pipeline       text NOT NULL,
    group_name     text NOT NULL DEFAULT 'default',
    table_name     text NOT NULL,
    epoch          uuid NOT NULL,
    last_offset    bigint NOT NULL DEFAULT -1,
    position       bigint NOT NULL,
    copied         boolean NOT NULL DEFAULT true,
    last_committed timestamptz NOT NULL DEFAULT now(),
    snapshot_id    bigint,
    rows_applied   bigint NOT NULL DEFAULT 0,
    lag_ms         int,
    PRIMARY KEY (pipeline, group_name, table_name)
);

-- Workers; a row counts until expires_at, by this database's clock.
CREATE TABLE {schema}.consumer (
    pipeline   text NOT NULL,
    group_name text NOT NULL,
    worker_id  text NOT NULL,
    instance   uuid NOT NULL,
    expires_at timestamptz NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now(),
    host       text NOT NULL,
    pid        int NOT NULL,
    PRIMARY KEY (pipeline, group_name, worker_id)
);

-- The replicated tables and where each stands in each group.
CREATE TABLE {schema}.tables (
    pipeline          text NOT NULL,
    group_name        text NOT NULL,
    table_name        text NOT NULL, -- in the log; the same for all groups
    configured_schema text NOT NULL, -- the name that the settings have for it
    configured_name   text NOT NULL,
    source_schema     text NOT NULL, -- its name now: a table that is renamed stays the same table
    source_name       text NOT NULL,
    pg_oid            bigint NOT NULL DEFAULT 0,
    members           bigint[], -- the entries of the publication by which it is sent; null: not noted yet
    state             text NOT NULL CHECK (state IN ('pending', 'copying', 'live', 'parked', 'removed')),
    reason            text,
    hint              text,
    resumable_since   timestamptz, -- parked then, and its log is kept for a while; null: only a new copy helps
    target            jsonb NOT NULL,
    target_by         text CHECK (target_by IN ('capture', 'workers')), -- null: not settled yet, nobody works on it
    snapshot_complete boolean NOT NULL DEFAULT false,
    snapshot_lsn      bigint,
    snapshot_name     text,
    requested_lsn     bigint NOT NULL DEFAULT 0, -- copies made up to this position do not count
    copy_rows         bigint,
    completed_at      timestamptz,
    failures          int NOT NULL DEFAULT 0, -- in a row
    last_failure      text,
    updated_at        timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (pipeline, group_name, table_name)
);

-- Values that do not fit into their Iceberg column. The id is made of epoch, table, offset and column.
CREATE TABLE {schema}.dead_letter (
    id          text PRIMARY KEY,
    pipeline    text NOT NULL,
    table_name  text NOT NULL,
    epoch       uuid NOT NULL,
    log_offset  bigint NOT NULL,
    position    bigint NOT NULL,
    column_name text, -- null: the whole row
    key         jsonb NOT NULL,
    value       text,
    reason      text NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX dead_letter_table ON {schema}.dead_letter (pipeline, table_name, created_at);

-- Resuming a copy, polling, and markers.
CREATE TABLE {schema}.snapshot_progress (
    pipeline    text NOT NULL,
    table_name  text NOT NULL,
    last_pk_key text NOT NULL,
    updated_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (pipeline, table_name)
);

CREATE TABLE {schema}.query_watermarks (
    pipeline   text NOT NULL,
    table_name text NOT NULL,
    watermark  jsonb NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (pipeline, table_name)
);

CREATE TABLE {schema}.pending_markers (
    pipeline    text NOT NULL,
    uuid        text NOT NULL,
    commit_lsn  bigint NOT NULL,
    inserted_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (pipeline, uuid)
);

CREATE TABLE {schema}.marker_emissions (
    pipeline        text NOT NULL,
    uuid            text NOT NULL,
    table_namespace text NOT NULL,
    table_name      text NOT NULL,
    emitted_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (pipeline, uuid, table_namespace, table_name)
);
