UPDATE seats SET seat = 3 - seat WHERE seat IN (1, 2);
-- WAIT
BEGIN;
UPDATE seats SET seat = seat % 4 + 1;
UPDATE seats SET note = 'moved' WHERE guest = 'Dan';
COMMIT;
BEGIN;
INSERT INTO seats VALUES (2, 'Eve', 'late');
DELETE FROM seats WHERE seat = 2 AND guest <> 'Eve';
COMMIT;
