DELETE FROM emptied;
INSERT INTO filled_later VALUES (1, 'gone by the end of the batch');
DELETE FROM filled_later;
-- WAIT
INSERT INTO filled_later VALUES (1, 'at last');
