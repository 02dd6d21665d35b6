INSERT INTO odd SELECT id + 10, ln, seg, b, open, closed, poly, c, q, p, x, rel, m8 FROM odd;
-- WAIT
UPDATE odd SET c = '<(1,1),2>' WHERE id = 1;
