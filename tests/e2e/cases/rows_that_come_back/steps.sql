DELETE FROM visits WHERE id = 1;
INSERT INTO visits VALUES (1, 'second life');
DELETE FROM visits WHERE id = 1;
INSERT INTO visits VALUES (1, 'third life');
UPDATE visits SET note = 'old and new' WHERE id = 2;
DELETE FROM visits WHERE id = 2;
-- WAIT
INSERT INTO visits VALUES (2, 'back again'), (4, 'short');
DELETE FROM visits WHERE id IN (3, 4);
INSERT INTO visits VALUES (3, 'unlike before') ON CONFLICT (id) DO UPDATE SET note = 'conflict';
INSERT INTO visits VALUES (3, 'x') ON CONFLICT (id) DO UPDATE SET note = 'upserted';
