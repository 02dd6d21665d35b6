"""`spark`: the Spark session."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

from icestream.config.scalars import Named, Properties, Text, TextList, refuse
from icestream.config.section import Section, key

JARS = "spark.jars"
PACKAGES = "spark.jars.packages"
_MASTER = re.compile(
    r"local(\[(\*|[1-9][0-9]*)(\s*,\s*[0-9]+)?\])?|local-cluster\[[0-9]+\s*,\s*[0-9]+\s*,\s*[0-9]+\]"
    r"|spark://[^\s/:]+:[0-9]+(,[^\s/:]+:[0-9]+)*|yarn|k8s://\S+"
)
_PACKAGE = re.compile(r"[^:/\s]+[:/][^:/\s]+:[^:/\s]+")

# Values are read and keys are compared by these; with others, rows would be wrong.
FIXED_CONF = {
    # Columns `id` and "Id" are two columns in PostgreSQL.
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    # A key such as `${env:HOME}` is a key.
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    # Of two fields of the same name in a document the last one counts, as in jsonb.
    "spark.sql.variant.allowDuplicateKeys": "true",
}


def not_blank(value: str) -> str:
    if not value.strip():
        raise refuse("must not be empty")
    return value


def _list_or_commas(value: Any) -> Any:
    """Spark itself takes packages and jars as one text with commas."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


def _master(value: str) -> str:
    if not _MASTER.fullmatch(not_blank(value)):
        raise refuse("is no Spark master; write local[*], local[4], spark://host:port, yarn or k8s://https://host:port")
    return value


def _packages(value: tuple[str, ...]) -> tuple[str, ...]:
    wrong = [package for package in value if not _PACKAGE.fullmatch(package)]
    if wrong:
        raise refuse(f"{', '.join(wrong)}: a package is written group:artifact:version")
    return value


def _conf(value: dict[str, str]) -> dict[str, str]:
    for name in value:
        if value[name].lower() != FIXED_CONF.get(name, value[name]).lower():
            raise refuse(f"sets {name} to another value than {FIXED_CONF[name]}, with which rows would be read wrongly")
    _packages(tuple(_list_or_commas(value.get(PACKAGES, ""))))
    return value


CommaList = Annotated[TextList, Named("list of texts, or one text with commas"), BeforeValidator(_list_or_commas)]


class SparkSettings(Section):
    master: Annotated[Text, AfterValidator(_master)] = key(
        "local[*]", "Spark master: `local[N]`, `local[*]`, `spark://host:port`, `yarn` or `k8s://…`."
    )
    packages: Annotated[CommaList, AfterValidator(_packages)] = key(
        (), "More Maven packages, as `group:artifact:version`."
    )
    jars: CommaList = key((), "More jars, as files or URIs.")
    conf: Annotated[Properties, AfterValidator(_conf)] = key(
        {},
        "Any Spark setting; wins over Icestream's own, except for those that decide how values are read. Jars and "
        "packages add to Icestream's.",
        show=False,
    )

    @property
    def all_jars(self) -> tuple[str, ...]:
        """With those that `conf` names."""
        return (*self.jars, *_list_or_commas(self.conf.get(JARS, "")))

    @property
    def all_packages(self) -> tuple[str, ...]:
        """With those that `conf` names."""
        return (*self.packages, *_list_or_commas(self.conf.get(PACKAGES, "")))

    @property
    def brings_libraries(self) -> bool:
        """Whether Spark gets more than Icestream's own jars; what they are good for is not known."""
        return bool(self.all_packages or self.all_jars)
