CREATE TABLE odd (id int PRIMARY KEY, ln line, seg lseg, b box, open path, closed path, poly polygon, c circle, q tsquery, p jsonpath, x xid, rel regtype, m8 macaddr8);
INSERT INTO odd VALUES
    (1, '{1,-1,0.5}', '[(0,0),(1,1)]', '(2,2),(0,0)', '[(0,0),(1,1)]', '((0,0),(1,1))', '((0,0),(0,1),(1,1))', '<(0,0),1.5>', 'fat & !rat', '$.a[*] ? (@ > 1)', '7', 'integer', '08:00:2b:01:02:03:04:05'),
    (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '', '$', '0', NULL, NULL);
