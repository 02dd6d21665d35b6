-- The tables of the copies beside other tools. Values come from the row's number, as in workload.sql.
CREATE TABLE bench.narrow (
    id          bigint PRIMARY KEY,
    customer_id int NOT NULL,
    status      text NOT NULL,
    paid        boolean NOT NULL,
    rating      double precision,
    updated_at  timestamptz NOT NULL
);

CREATE TABLE bench.wide (
    id            bigint PRIMARY KEY,
    customer_id   int NOT NULL,
    region        smallint NOT NULL,
    reference     uuid NOT NULL,
    status        text NOT NULL,
    currency      text NOT NULL,
    email         text NOT NULL,
    city          text,
    note          text,
    attributes    jsonb,
    paid          boolean NOT NULL,
    gift          boolean NOT NULL,
    returned      boolean,
    price         numeric(12, 2) NOT NULL,
    tax           numeric(12, 2) NOT NULL,
    shipping      numeric(12, 2) NOT NULL,
    discount      numeric(12, 2),
    total         numeric(14, 2) NOT NULL,
    exchange_rate numeric(18, 8) NOT NULL,
    weight        numeric(10, 3) NOT NULL,
    fee           numeric NOT NULL,
    tip           numeric,
    surcharge     numeric,
    rebate        numeric,
    rating        double precision,
    placed_on     date NOT NULL,
    due_at        timestamp,
    created_at    timestamptz NOT NULL,
    updated_at    timestamptz NOT NULL
);

CREATE FUNCTION bench.narrow_rows(first bigint, last bigint) RETURNS SETOF bench.narrow
LANGUAGE sql STABLE AS $$
    SELECT n, (n * 7919 % 100000)::int, (ARRAY['new', 'packed', 'shipped', 'returned'])[1 + n % 4], n % 3 = 0,
           CASE WHEN n % 5 > 0 THEN sqrt(n) END,
           timestamptz '2025-01-01 00:00:00.123456+00' + n * interval '1 second'
    FROM generate_series(first, last) n
$$;

-- Of the numerics without a precision, one is rarely there and one never, as it is in real tables of that width.
CREATE FUNCTION bench.wide_rows(first bigint, last bigint) RETURNS SETOF bench.wide
LANGUAGE sql STABLE AS $$
    SELECT n, (n * 7919 % 100000)::int, (n % 40)::smallint, md5(n::text)::uuid,
           (ARRAY['new', 'packed', 'shipped', 'returned'])[1 + n % 4], (ARRAY['EUR', 'USD', 'JPY'])[1 + n % 3],
           'customer' || n * 7919 % 100000 || '@example.org', 'city ' || n % 5000,
           CASE WHEN n % 7 > 0 THEN md5(n::text) || ' – please ring twice' END,
           jsonb_build_object('source', 'web', 'visit', n % 1000, 'tags', jsonb_build_array('a', n % 10)),
           n % 3 = 0, n % 11 = 0, CASE WHEN n % 13 > 0 THEN n % 17 = 0 END,
           cents / 100, cents / 500, (n % 20)::numeric / 2, CASE WHEN n % 4 = 0 THEN cents / 1000 END, cents / 80,
           1 + (n * 31 % 100000000)::numeric / 100000000, (n * 13 % 100000)::numeric / 1000,
           (n % 997)::numeric / 8, CASE WHEN n % 3 > 0 THEN (n % 500)::numeric / 100 END,
           CASE WHEN n % 50 = 0 THEN (n % 300)::numeric / 4 END, NULL::numeric,
           CASE WHEN n % 5 > 0 THEN sqrt(n) END, date '2024-01-01' + (n % 700)::int,
           timestamp '2025-03-01 12:00:00' + n * interval '1 minute',
           timestamptz '2025-01-01 00:00:00+00' + n * interval '1 second',
           timestamptz '2025-01-01 00:00:00.123456+00' + n * interval '1 second'
    FROM generate_series(first, last) n, LATERAL (SELECT (n * 104729 % 1000000)::numeric) AS amount (cents)
$$;
