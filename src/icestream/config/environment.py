"""Variables and flags that set a key. Precedence: defaults, file, variables, flags."""

from __future__ import annotations

from icestream.config.keys import URL, file_key, secret_paths

KeyPath = tuple[str, ...]

VARIABLES: dict[str, KeyPath] = {
    "POSTGRES_URL": URL,
    "POSTGRES_HOST": ("source", "postgres", "host"),
    "POSTGRES_PORT": ("source", "postgres", "port"),
    "POSTGRES_DATABASE": ("source", "postgres", "database"),
    "POSTGRES_USER": ("source", "postgres", "user"),
    "POSTGRES_PASSWORD": ("source", "postgres", "password"),
    "POSTGRES_SSLMODE": ("source", "postgres", "sslmode"),
    "TABLES": ("tables",),
    "MODE": ("source", "mode"),
    "SLOT_NAME": ("source", "logical", "slot_name"),
    "PUBLICATION_NAME": ("source", "logical", "publication_name"),
    "ICEBERG_CATALOG_URL": ("sink", "catalog_uri"),
    "CATALOG_AUTH": ("sink", "catalog_auth"),
    "CATALOG_TOKEN": ("sink", "catalog_token"),
    "CATALOG_CLIENT_ID": ("sink", "catalog_client_id"),
    "CATALOG_CLIENT_SECRET": ("sink", "catalog_client_secret"),
    "CREDENTIAL_MODE": ("sink", "credential_mode"),
    "WAREHOUSE": ("sink", "warehouse"),
    "NAMESPACE": ("sink", "namespace"),
    "S3_ENDPOINT": ("sink", "s3_endpoint"),
    "S3_ACCESS_KEY": ("sink", "s3_access_key"),
    "S3_SECRET_KEY": ("sink", "s3_secret_key"),
    "S3_REGION": ("sink", "s3_region"),
    "MATERIALIZER_WORKER_ID": ("sink", "materializer_worker_id"),
    "MAINTENANCE_RETENTION": ("sink", "maintenance_retention"),
    "MAINTENANCE_INTERVAL": ("sink", "maintenance_interval"),
    "MAINTENANCE_GRACE": ("sink", "maintenance_grace"),
    "META_ENABLED": ("sink", "meta_enabled"),
    "META_NAMESPACE": ("sink", "meta_namespace"),
    "STATE_POSTGRES_URL": ("state", "postgres_url"),
    "COORDINATOR_SCHEMA": ("state", "coordinator_schema"),
    "METRICS_ADDR": ("metrics_addr",),
    "SNAPSHOT_ONLY": ("snapshot_only",),
}

WITHOUT_EFFECT = {
    "PPROF": "has no effect: it opens a profiler of the Go runtime, which Icestream does not have",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "has no effect: traces are not part of this version; see `metrics_addr`",
}

# Of every command that reads settings; a worker's own --worker-id is none of them.
FLAGS: dict[str, KeyPath] = {
    "--postgres-url": URL,
    "--tables": ("tables",),
    "--mode": ("source", "mode"),
    "--slot-name": ("source", "logical", "slot_name"),
    "--publication-name": ("source", "logical", "publication_name"),
    "--iceberg-catalog-url": ("sink", "catalog_uri"),
    "--catalog-auth": ("sink", "catalog_auth"),
    "--catalog-token": ("sink", "catalog_token"),
    "--credential-mode": ("sink", "credential_mode"),
    "--warehouse": ("sink", "warehouse"),
    "--namespace": ("sink", "namespace"),
    "--s3-endpoint": ("sink", "s3_endpoint"),
    "--s3-access-key": ("sink", "s3_access_key"),
    "--s3-secret-key": ("sink", "s3_secret_key"),
    "--s3-region": ("sink", "s3_region"),
    "--snapshot-only": ("snapshot_only",),
    "--state-postgres-url": ("state", "postgres_url"),
    "--metrics-addr": ("metrics_addr",),
}


def all_variables() -> dict[str, KeyPath]:
    """With the `…_FILE` form of every variable that holds a secret."""
    files = {f"{name}_FILE": file_key(path) for name, path in VARIABLES.items() if path in secret_paths()}
    return {**VARIABLES, **files}


def flag_of(path: KeyPath) -> str:
    return next((flag for flag, known in FLAGS.items() if known == path), "command line")
