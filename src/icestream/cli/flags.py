"""The settings that can also be given on the command line. Each flag stands for the environment variable it names."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Flag:
    variable: str  # the environment variable with the same meaning
    help: str
    is_switch: bool = False

    @property
    def option(self) -> str:
        return "--" + self.variable.lower().replace("_", "-")

    @property
    def parameter(self) -> str:
        return "flag_" + self.variable.lower()


FLAGS = (
    Flag("POSTGRES_URL", "The source database, as postgresql://user:password@host:port/database."),
    Flag("TABLES", "Tables to replicate, separated by commas: public.orders,public.customers."),
    Flag("WAREHOUSE", "Where the Iceberg tables lie: a local folder or a URI."),
    Flag("NAMESPACE", "The Iceberg namespace; without it the PostgreSQL schema is used."),
    Flag("MODE", "How changes are read: logical."),
    Flag("SLOT_NAME", "The replication slot; also the name of the pipeline."),
    Flag("PUBLICATION_NAME", "The publication."),
    Flag("ICEBERG_CATALOG_URL", "A REST catalog; without it an embedded catalog beside the warehouse is used."),
    Flag("CATALOG_AUTH", "How to log in to the REST catalog."),
    Flag("CATALOG_TOKEN", "The bearer token of the REST catalog."),
    Flag("CREDENTIAL_MODE", "Where storage credentials come from: static, iam or vended."),
    Flag("S3_ENDPOINT", "The S3 endpoint."),
    Flag("S3_ACCESS_KEY", "The S3 access key."),
    Flag("S3_SECRET_KEY", "The S3 secret key."),
    Flag("S3_REGION", "The S3 region."),
    Flag("STATE_POSTGRES_URL", "Where the coordination state lives, if not in the source database."),
    Flag("METRICS_ADDR", "Serve /metrics, /live and /ready here, e.g. :9090."),
    Flag("SNAPSHOT_ONLY", "Only make the first copy, then end.", is_switch=True),
)


def taken_from(values: dict[str, object]) -> dict[str, str]:
    """The flags that were given, by option. Takes all of them out of `values`."""
    given: dict[str, str] = {}
    for flag in FLAGS:
        value = values.pop(flag.parameter)
        if value is not None and value is not False:
            given[flag.option] = "true" if value is True else str(value)
    return given
