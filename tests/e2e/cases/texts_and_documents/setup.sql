CREATE TYPE mood AS ENUM ('sad', 'happy');
CREATE TABLE documents (
    id uuid PRIMARY KEY,
    plain text,
    short varchar(10),
    padded char(5),
    doc json,
    docb jsonb,
    bytes bytea,
    tags text[],
    span interval,
    address inet,
    feeling mood,
    clock time
);
INSERT INTO documents VALUES
    ('00000000-0000-0000-0000-000000000001', E'tab\there', 'ä€𝄞', 'ab', '{"a":  1}', '{"b": [1, null], "a":  1}',
     '\x00ff', '{a,"b c",NULL}', '1 year 2 days 03:04:05', '10.0.0.1/8', 'happy', '12:34:56.789'),
    ('00000000-0000-0000-0000-000000000002', '', '', '', '{}', 'null', '', '{}', '0', '::1', 'sad', '24:00:00'),
    ('00000000-0000-0000-0000-000000000003', 'goes', '', '', '{}', 'null', '', '{}', '0', '::1', 'sad', '0:00'),
    ('ffffffff-ffff-ffff-ffff-ffffffffffff', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
