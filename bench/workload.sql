-- The tables that are measured, and what fills and changes them. Everything runs in the server, so that the clients'
-- speed does not matter; and it is always the same: values come from the row's number, the choice of rows from a seed.
CREATE SCHEMA bench;

CREATE TABLE bench.orders (
    id          bigint PRIMARY KEY,
    customer_id int NOT NULL,
    status      text NOT NULL,
    amount      numeric(12, 2) NOT NULL,
    paid        boolean NOT NULL,
    rating      double precision,
    note        text,
    attributes  jsonb,
    placed_on   date NOT NULL,
    updated_at  timestamptz NOT NULL
);

-- For warming up, and for changes that only move the position on.
CREATE TABLE bench.side (LIKE bench.orders INCLUDING ALL);

CREATE FUNCTION bench.rows(first bigint, last bigint) RETURNS SETOF bench.orders
LANGUAGE sql STABLE AS $$
    SELECT n, (n * 7919 % 100000)::int, (ARRAY['new', 'packed', 'shipped', 'returned'])[1 + n % 4],
           (n * 104729 % 1000000)::numeric / 100, n % 3 = 0, CASE WHEN n % 5 > 0 THEN sqrt(n) END,
           CASE WHEN n % 7 > 0 THEN md5(n::text) || ' – please ring twice' END,
           jsonb_build_object('source', 'web', 'visit', n % 1000, 'tags', jsonb_build_array('a', n % 10)),
           date '2024-01-01' + (n % 700)::int, timestamptz '2025-01-01 00:00:00.123456+00' + n * interval '1 second'
    FROM generate_series(first, last) n
$$;

-- `changes` changes, 1,000 per transaction: always seven inserts, two updates and a delete, the rows chosen among all
-- that are there. `inside` becomes a position within the last transaction.
CREATE PROCEDURE bench.change(changes bigint, newest bigint, INOUT inside pg_lsn)
LANGUAGE plpgsql AS $$
DECLARE
    done bigint := 0;
    updated int;
    chosen bigint;
BEGIN
    PERFORM setseed(0.42);
    WHILE done < changes LOOP
        INSERT INTO bench.orders SELECT * FROM bench.rows(newest + 1, newest + 7);
        newest := newest + 7;
        updated := 0;
        WHILE updated < 2 LOOP
            chosen := 1 + floor(random() * newest);
            UPDATE bench.orders SET amount = amount + 1, status = 'changed', updated_at = now() WHERE id = chosen;
            updated := updated + FOUND::int;
        END LOOP;
        LOOP
            chosen := 1 + floor(random() * newest);
            DELETE FROM bench.orders WHERE id = chosen;
            EXIT WHEN FOUND;
        END LOOP;
        done := done + 10;
        IF done % 1000 = 0 THEN
            inside := pg_current_wal_insert_lsn();
            COMMIT;
        END IF;
    END LOOP;
END
$$;
