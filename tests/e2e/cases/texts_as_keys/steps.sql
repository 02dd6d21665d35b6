UPDATE words SET n = n + 100;
-- WAIT
DELETE FROM words WHERE w IN ('a', 'ä', '', '\', '𝄞');
UPDATE words SET w = w || ' ' WHERE w = 'A';
INSERT INTO words VALUES ('a', 1000);
