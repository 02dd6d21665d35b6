"""The only room that talks to Iceberg and to Py4J: session, catalog, schema, stage, publish, history."""
