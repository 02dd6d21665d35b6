UPDATE lines SET amount = 21 WHERE doc = 'a' AND line = 2;
DELETE FROM lines WHERE doc = 'b' AND line = 1;
INSERT INTO lines VALUES ('a', 3, 50);
-- WAIT
UPDATE lines SET line = line + 10 WHERE doc = 'a';
UPDATE lines SET doc = 'a' WHERE doc = 'b';
INSERT INTO lines VALUES ('b', 2, 60);
