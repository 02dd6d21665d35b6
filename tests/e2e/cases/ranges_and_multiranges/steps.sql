INSERT INTO spans SELECT id + 10, i, l, n, d, t, z, m, dm FROM spans;
-- WAIT
UPDATE spans SET i = '[2,2]', m = m + '{[2,5)}' WHERE id = 1;
