INSERT INTO "Order Lines" VALUES (3, 30, 'q3', 's3', 'g3', 'd3', 'b3', 'p3');
UPDATE "Order Lines" SET "a ""quoted"" name" = 'Q', "dots.in.it" = 'D', "back`tick" = 'B' WHERE "Id" = 1;
UPDATE "Order Lines" SET "größe €" = 'G', "select" = 'S' WHERE "Id" = 2;
-- WAIT
DELETE FROM "Order Lines" WHERE "Id" = 1;
UPDATE "Order Lines" SET id = 31, "percent %s {x}" = '%s' WHERE "Id" = 3;
