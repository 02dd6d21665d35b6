UPDATE small SET v = 'b';
UPDATE exact SET v = 'b' WHERE k <> -0.0001;
UPDATE loose SET v = 'b' WHERE k > 0;
UPDATE moments SET v = 'b';
UPDATE many SET v = 'b';
DELETE FROM exact WHERE k = -0.0001;
DELETE FROM loose WHERE k = 0.000;
-- WAIT
UPDATE small SET k = k + 1 WHERE k = 7;
UPDATE exact SET k = 1.5000, v = 'c' WHERE k = 1.5;
UPDATE loose SET k = 1.500, v = 'c' WHERE k = 1.5;
UPDATE moments SET k = k + interval '1 microsecond';
DELETE FROM many WHERE b;
