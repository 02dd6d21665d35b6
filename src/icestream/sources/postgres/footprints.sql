-- Where the rows of tables lie: the tables themselves and, below partitioned ones, their partitions; one row each.
WITH RECURSIVE part AS (
    SELECT oid AS root, oid, NULL::oid AS parent, NULL::xid AS linked
      FROM pg_class
     WHERE oid = ANY (%s)
     UNION ALL
    SELECT part.root, i.inhrelid, i.inhparent, i.xmin
      FROM part
      JOIN pg_class c ON c.oid = part.oid AND c.relkind = 'p'
      JOIN pg_inherits i ON i.inhparent = part.oid AND NOT i.inhdetachpending
)
SELECT part.root::bigint,
       c.oid::bigint                           AS oid,
       format('%%s.%%s', n.nspname, c.relname) AS name,
       coalesce(made.xmin::text, '')           AS made,
       c.relfilenode::bigint                   AS file,
       c.reltoastrelid::bigint                 AS toast,
       coalesce(columns.changed, '{}')         AS columns,
       coalesce(part.parent, 0)::bigint        AS parent,
       coalesce(part.linked::text, '')         AS linked
  FROM part
  JOIN pg_class c ON c.oid = part.oid
  JOIN pg_namespace n ON n.oid = c.relnamespace
  -- The column `tableoid`, which is never altered.
  LEFT JOIN pg_attribute made ON made.attrelid = c.oid AND made.attnum = -6
  LEFT JOIN LATERAL (
       SELECT json_object_agg(a.attnum, json_build_array(a.xmin::text, a.atttypid::bigint, a.atttypmod)
                               ORDER BY a.attnum) AS changed
         FROM pg_attribute a
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
  ) columns ON c.relfilenode <> 0
 ORDER BY part.root, c.oid
