CREATE TYPE mood AS ENUM ('sad', 'so so');
CREATE TABLE lists (
    id int PRIMARY KEY,
    numbers int[],
    words text[],
    prices numeric(6, 2)[],
    days date[],
    bytes bytea[],
    moods mood[],
    bools bool[]
);
INSERT INTO lists VALUES
    (1, '{1,NULL,-2147483648}', '{a,"",NULL,"NULL"}', '{1.5,NULL}', '{0001-01-01}', '{"\\x00ff","\\x"}', '{sad,"so so"}', '{t,f}'),
    (2, '{}', '{}', '{}', '{}', '{}', '{}', '{}'),
    (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (4, '{{1,2},{3,4}}', '[0:1]={a,b}', '{1,NaN}', '{infinity}', NULL, NULL, NULL);
