INSERT INTO beside SELECT id + 10, price, day, at, tags, 'streamed' FROM beside WHERE id < 3;
-- WAIT
UPDATE beside SET price = 2 WHERE id = 1;
UPDATE beside SET price = 'NaN' WHERE id = 2;
UPDATE beside SET note = 'tags were not sent' WHERE id = 3;
-- WAIT
UPDATE beside SET id = 4 WHERE id = 3;
