-- Event triggers that tell Icestream of changes of shape. They write nothing but small messages to the WAL and a row
-- for each table that is rewritten. One installation serves every pipeline of the database; `icestream ddl-trigger
-- remove` takes it away.
CREATE SCHEMA IF NOT EXISTS icestream_ddl;
GRANT USAGE ON SCHEMA icestream_ddl TO PUBLIC;

CREATE TABLE IF NOT EXISTS icestream_ddl.rewrite (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    relation    oid NOT NULL,
    is_plain    boolean NOT NULL, -- the type of columns changed, and no expression made their new values
    happened_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
GRANT SELECT ON icestream_ddl.rewrite TO PUBLIC;

-- The columns of every table that was altered, at this very place in the stream. Nothing is caught here: that would be
-- a subtransaction, and its messages may come after rows that were written later.
CREATE OR REPLACE FUNCTION icestream_ddl.tell_columns() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    PERFORM pg_logical_emit_message(true, 'icestream', json_build_object('oid', altered.oid::bigint, 'numbers', (
                SELECT coalesce(json_object_agg(a.attname, a.attnum), '{}')
                  FROM pg_attribute a
                 WHERE a.attrelid = altered.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''))::text)
       FROM (SELECT DISTINCT c.oid
               FROM pg_event_trigger_ddl_commands() command
               JOIN pg_class c ON c.oid = command.objid
              WHERE command.classid = 'pg_class'::regclass AND c.relkind IN ('r', 'p') AND c.relpersistence = 'p'
            ) altered;
END
$body$;

CREATE OR REPLACE FUNCTION icestream_ddl.tell_drops() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    IF EXISTS (SELECT FROM pg_event_trigger_dropped_objects() WHERE object_type = 'table' AND NOT is_temporary) THEN
        PERFORM pg_logical_emit_message(true, 'icestream', '{}');
    END IF;
END
$body$;

-- Reason 4: a column got another type. A statement that is hidden in a function may have an expression for it. A row
-- that is missing here leaves the doubt that there would be without the triggers.
CREATE OR REPLACE FUNCTION icestream_ddl.note_rewrite() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    INSERT INTO icestream_ddl.rewrite (relation, is_plain)
    VALUES (pg_event_trigger_table_rewrite_oid(),
            pg_event_trigger_table_rewrite_reason() = 4
            AND current_query() ~* '^\s*alter\s+table\M' AND current_query() !~* 'using');
EXCEPTION WHEN OTHERS THEN
    RAISE WARNING 'icestream was not told of a rewritten table: %', SQLERRM;
END
$body$;

DROP EVENT TRIGGER IF EXISTS icestream_ddl_columns;
CREATE EVENT TRIGGER icestream_ddl_columns ON ddl_command_end EXECUTE FUNCTION icestream_ddl.tell_columns();
ALTER EVENT TRIGGER icestream_ddl_columns ENABLE ALWAYS;
DROP EVENT TRIGGER IF EXISTS icestream_ddl_drops;
CREATE EVENT TRIGGER icestream_ddl_drops ON sql_drop EXECUTE FUNCTION icestream_ddl.tell_drops();
ALTER EVENT TRIGGER icestream_ddl_drops ENABLE ALWAYS;
DROP EVENT TRIGGER IF EXISTS icestream_ddl_rewrites;
CREATE EVENT TRIGGER icestream_ddl_rewrites ON table_rewrite EXECUTE FUNCTION icestream_ddl.note_rewrite();
ALTER EVENT TRIGGER icestream_ddl_rewrites ENABLE ALWAYS;
