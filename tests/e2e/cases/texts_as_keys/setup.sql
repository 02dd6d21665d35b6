CREATE TABLE words (w text PRIMARY KEY, n int);
INSERT INTO words VALUES ('', 0), (' ', 1), ('a', 2), ('A', 3), ('ä', 4), (U&'a\0308', 5), ('\', 6), ('''', 7), ('a b', 8), (E'a\tb', 9), ('𝄞', 10), ('%s', 11);
