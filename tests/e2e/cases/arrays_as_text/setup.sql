CREATE TABLE texts (id int PRIMARY KEY, numbers int[], words text[], boxes box[]);
INSERT INTO texts VALUES (1, '{{1,2},{3,4}}', '[0:1]={a,"b c"}', '{(1,1),(0,0);(2,2),(1,1)}'), (2, NULL, '{NULL,""}', '{}');
