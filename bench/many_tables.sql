-- Many small tables, and a small transaction for one of them.
CREATE PROCEDURE bench.create_many(tables text[], filled int)
LANGUAGE plpgsql AS $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY tables LOOP
        EXECUTE format('CREATE TABLE bench.%I (LIKE bench.orders INCLUDING ALL)', name);
        EXECUTE format('INSERT INTO bench.%I SELECT * FROM bench.rows(1, $1)', name) USING filled;
    END LOOP;
END
$$;

-- Three inserts, an update and a delete, the rows chosen among all that are there; gives a position before the commit.
CREATE FUNCTION bench.touch(name text, newest bigint) RETURNS pg_lsn
LANGUAGE plpgsql AS $$
DECLARE
    hit text := format('(SELECT id FROM bench.%I WHERE id >= $1 ORDER BY id LIMIT 1)', name);
BEGIN
    EXECUTE format('INSERT INTO bench.%I SELECT * FROM bench.rows($1 + 1, $1 + 3)', name) USING newest;
    EXECUTE format('UPDATE bench.%I SET amount = amount + 1, updated_at = now() WHERE id = ', name) || hit
        USING 1 + floor(random() * newest)::bigint;
    EXECUTE format('DELETE FROM bench.%I WHERE id = ', name) || hit USING 1 + floor(random() * newest)::bigint;
    RETURN pg_current_wal_insert_lsn();
END
$$;
