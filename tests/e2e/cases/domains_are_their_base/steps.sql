INSERT INTO goods VALUES (2, 1.5, 100.01, '2026-01-31 12:00+02', '{1,2}', '{1.5,NULL}', '{a,"b c"}');
UPDATE goods SET id = 3, plain = 'NaN' WHERE id = 1;
