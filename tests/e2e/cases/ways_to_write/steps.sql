MERGE INTO stock s USING news n ON s.item = n.item WHEN MATCHED THEN UPDATE SET n = s.n + n.n WHEN NOT MATCHED THEN INSERT VALUES (n.item, n.n);
INSERT INTO stock VALUES ('a', 5), ('e', 5) ON CONFLICT (item) DO UPDATE SET n = stock.n + EXCLUDED.n;
INSERT INTO stock VALUES ('a', 9) ON CONFLICT DO NOTHING;
COPY news FROM STDIN;
x	1
y	2
\.
-- WAIT
WITH gone AS (DELETE FROM stock WHERE item IN ('c', 'd') RETURNING *) INSERT INTO news SELECT item || '!', n FROM gone;
UPDATE news SET n = s.n FROM stock s WHERE s.item = 'b' AND news.item = 'b';
DELETE FROM news USING stock s WHERE news.item = 'x' AND s.item = 'a';
