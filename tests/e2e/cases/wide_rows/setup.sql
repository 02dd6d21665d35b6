DO $$ BEGIN
    EXECUTE 'CREATE TABLE wide (id int PRIMARY KEY, ' || (SELECT string_agg('c' || g || ' int', ', ') FROM generate_series(1, 12) g) || ')';
END $$;
INSERT INTO wide (id, c1, c12) VALUES (1, 1, 12);
CREATE TABLE long (id int PRIMARY KEY, t text, b bytea);
INSERT INTO long VALUES (1, repeat('ä', 500000), decode(repeat('00ff', 100000), 'hex'));
