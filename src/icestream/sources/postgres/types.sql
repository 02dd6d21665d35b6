-- What types are made of: a domain taken down to its base, a true array to its elements and these to their base; one
-- row per type. An array whose elements are parted by something else than a comma (box, geometry) counts as none.
WITH RECURSIVE chain AS (
    SELECT t.oid AS asked, t.oid, t.typtype, t.typbasetype, t.typtypmod AS typmod, 0 AS depth
      FROM pg_type t
     WHERE t.oid = ANY (%s)
     UNION ALL
    SELECT chain.asked, base.oid, base.typtype, base.typbasetype,
           CASE WHEN chain.typmod <> -1 THEN chain.typmod ELSE base.typtypmod END, chain.depth + 1
      FROM chain
      JOIN pg_type base ON base.oid = chain.typbasetype
     WHERE chain.typtype = 'd'
), based AS (
    SELECT DISTINCT ON (asked) asked, oid, typmod FROM chain ORDER BY asked, depth DESC
), elements AS (
    SELECT based.asked, element.oid, element.typtype, element.typbasetype, element.typtypmod AS typmod, 0 AS depth
      FROM based
      JOIN pg_type element ON element.typarray = based.oid AND element.typdelim = ','
     UNION ALL
    SELECT elements.asked, base.oid, base.typtype, base.typbasetype,
           CASE WHEN elements.typmod <> -1 THEN elements.typmod ELSE base.typtypmod END, elements.depth + 1
      FROM elements
      JOIN pg_type base ON base.oid = elements.typbasetype
     WHERE elements.typtype = 'd'
), element_bases AS (
    SELECT DISTINCT ON (asked) asked, oid, typmod FROM elements ORDER BY asked, depth DESC
)
SELECT based.asked::bigint AS oid, based.oid::bigint AS base_oid,
       CASE WHEN based.typmod <> -1 THEN based.typmod ELSE coalesce(element_bases.typmod, -1) END AS base_typmod,
       coalesce(element_bases.oid, 0)::bigint AS element_oid
  FROM based
  LEFT JOIN element_bases USING (asked)
