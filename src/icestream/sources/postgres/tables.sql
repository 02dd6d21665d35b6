-- What the preflight, the publication and the first copy want to know about tables: one row per table.
SELECT c.oid::bigint                      AS oid,
       n.nspname                          AS schema,
       c.relname                          AS name,
       c.relkind::text                    AS kind,
       c.relpersistence::text             AS persistence,
       c.relreplident::text               AS identity,
       c.relispartition                   AS is_partition,
       has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
           AND coalesce(leaves.can_select, true) AS can_select,
       pg_has_role(c.relowner, 'USAGE')   AS is_owner,
       row_security_active(c.oid)         AS row_security,
       coalesce(attributes.list, '[]')    AS columns,
       coalesce(primary_index.columns, '[]')       AS primary_key,
       coalesce(primary_index.deferrable, false)   AS primary_key_deferrable,
       coalesce(identity_index.columns, '[]')      AS identity_index,
       coalesce(leaves.identities, '{}')           AS leaf_identities
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN LATERAL (
       SELECT json_agg(json_build_object('name', a.attname, 'type_oid', a.atttypid::bigint, 'typmod', a.atttypmod,
                                         'number', a.attnum, 'not_null', a.attnotnull,
                                         'type_name', format_type(a.atttypid, a.atttypmod),
                                         'is_generated', a.attgenerated <> '', 'has_default', a.atthasdef,
                                         'missing', (a.attmissingval::text::text[])[1])
                       ORDER BY a.attnum) AS list
         FROM pg_attribute a
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  ) attributes ON true
  LEFT JOIN LATERAL (
       SELECT json_agg(a.attname ORDER BY k.position) AS columns, NOT bool_and(i.indimmediate) AS deferrable
         FROM pg_index i
        CROSS JOIN unnest(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, position)
         JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum
        WHERE i.indrelid = c.oid AND i.indisprimary AND k.position <= i.indnkeyatts
  ) primary_index ON true
  LEFT JOIN LATERAL (
       SELECT json_agg(a.attname ORDER BY k.position) AS columns
         FROM pg_index i
        CROSS JOIN unnest(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, position)
         JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum
        WHERE i.indrelid = c.oid AND i.indisreplident AND k.position <= i.indnkeyatts
  ) identity_index ON true
  -- By hand: pg_partition_tree locks every partition, and so waits behind an ALTER TABLE.
  LEFT JOIN LATERAL (
       WITH RECURSIVE tree AS (
           SELECT c.oid AS oid WHERE c.relkind = 'p'
            UNION ALL
           SELECT i.inhrelid FROM tree JOIN pg_inherits i ON i.inhparent = tree.oid)
       SELECT array_agg(DISTINCT leaf.relreplident::text) AS identities,
              bool_and(has_schema_privilege(leaf.relnamespace, 'USAGE') AND has_table_privilege(leaf.oid, 'SELECT'))
                  AS can_select
         FROM tree
         JOIN pg_class leaf ON leaf.oid = tree.oid AND leaf.relkind <> 'p'
  ) leaves ON true
 WHERE c.oid = ANY (%s)
 ORDER BY n.nspname, c.relname
