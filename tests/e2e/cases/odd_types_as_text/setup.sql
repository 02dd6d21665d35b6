CREATE EXTENSION hstore;
CREATE TYPE pair AS (a int, b text);
CREATE TABLE odd (
    id int PRIMARY KEY, o oid, c "char", n name, net inet, nets cidr, mac macaddr, bits bit(4), more varbit, cash money,
    r int4range, mr int4multirange, h hstore, p pair, pairs pair[], v tsvector, pt point, poly polygon, l pg_lsn
);
INSERT INTO odd VALUES
    (1, 4294967295, 'x', 'Name', '10.0.0.1', '10.0.0.0/8', '08-00-2b-01-02-03', B'0101', B'1', '-1234.5',
     '[1,5]', '{[1,3),[7,9)}', 'a=>1, "b c"=>NULL', ROW(1, 'x, "y"'), ARRAY[ROW(1, NULL)::pair, NULL], 'fat:2 cat:3A',
     '(1,2.5)', '((0,0),(1,1))', '16/B374D848'),
    (2, 0, '', '', '::1/64', '::/0', NULL, NULL, B'', 0, 'empty', '{}', '', ROW(NULL, NULL), '{}', '', NULL, NULL, '0/0');
