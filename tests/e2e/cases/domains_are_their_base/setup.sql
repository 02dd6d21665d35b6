CREATE DOMAIN count AS int CHECK (value >= 0);
CREATE DOMAIN price AS numeric(10, 2);
CREATE DOMAIN dear_price AS price CHECK (value > 100);
CREATE DOMAIN moment AS timestamptz NOT NULL;
CREATE DOMAIN scores AS int[];
CREATE DOMAIN label AS text;
CREATE TABLE goods (id count PRIMARY KEY, plain price, dear dear_price, at moment, marks scores, prices price[], labels label[]);
INSERT INTO goods VALUES (1, 1.5, 100.01, '2026-01-31 12:00+02', '{1,2}', '{1.5,NULL}', '{a,"b c"}');
