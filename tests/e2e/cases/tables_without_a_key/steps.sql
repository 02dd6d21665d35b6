INSERT INTO keyless VALUES (2, 'y');
INSERT INTO nameless VALUES (2, 'y');
INSERT INTO beside VALUES (2, 'y');
UPDATE beside SET b = 'z' WHERE id = 1;
