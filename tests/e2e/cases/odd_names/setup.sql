CREATE TABLE "Order Lines" (
    "Id" int,
    id int,
    "a ""quoted"" name" text,
    "select" text,
    "größe €" text,
    "dots.in.it" text,
    "back`tick" text,
    "percent %s {x}" text,
    PRIMARY KEY ("Id", "größe €")
);
INSERT INTO "Order Lines" VALUES (1, 10, 'q', 's', 'g', 'd', 'b', 'p'), (2, 20, 'q', 's', 'g', 'd', 'b', 'p');
