"""Every case in `cases/` (see `support.cases`): its tables are what it expects, whoever reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from icestream.lake.session import Lake
from support.case_runs import CaseRuns, Variant
from support.cases import Case, Expected, all_cases, as_tsv
from support.postgres import PostgresServer
from support.postgres_versions import RELEASES, running
from support.readers import Readers

DEFAULT = Variant("plain")
# Representative ones: whatever depends on how rows are staged.
JSON = Variant("json", settings={"sink.staging_format": "json"})
AS_JSON = (
    "columns_that_are_renamed",
    "keys_that_change",
    "odd_names",
    "rows_that_come_back",
    "source_partitioned_in_levels",
    "swapped_keys",
    "texts_and_documents",
    "toast_of_two_columns",
    "toast_that_moves",
    "toast_under_a_full_identity",
    "truncates_between_rows",
)

pytestmark = pytest.mark.timeout(1200)  # the first case that is asked for runs all of its group


def _asked() -> Iterator[ParameterSet]:
    """Each case once, some as JSON, and all against the older servers that know what they need."""
    for name in all_cases():
        yield pytest.param(name, DEFAULT, id=name)
    for name in AS_JSON:
        yield pytest.param(name, JSON, id=f"{name}-json")
    for version in RELEASES:
        variant = Variant(f"on_{version}", version)
        for name in all_cases():
            if Case.named(name).oldest_server <= version:
                yield pytest.param(name, variant, id=f"{name}-{variant.name}", marks=pytest.mark.long)


@pytest.fixture(scope="session")
def case_runs(lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> CaseRuns:
    return CaseRuns(lake, tmp_path_factory.mktemp("cases"))


@pytest.fixture(scope="session")
def readers(lake: Lake, warehouse: Path) -> Readers:
    return Readers(lake, warehouse)


@pytest.fixture(scope="session")
def servers(postgres: PostgresServer) -> Iterator[Callable[[int], PostgresServer]]:
    """Servers by version: the embedded one, and older ones that are started when they are asked for."""
    started = {18: postgres}
    with ExitStack() as stack:

        def server(version: int) -> PostgresServer:
            if version not in started:
                started[version] = stack.enter_context(running(version))
            return started[version]

        yield server


@pytest.mark.parametrize(("name", "variant"), list(_asked()))
def test_case(
    request: pytest.FixtureRequest,
    name: str,
    variant: Variant,
    case_runs: CaseRuns,
    readers: Readers,
    servers: Callable[[int], PostgresServer],
) -> None:
    case = Case.named(name)
    group = case_runs.group_of(case, variant, _wanted(request, variant), servers(variant.server))
    for expected in case.expected():
        end = group.end_of(case, expected.table)
        assert (end.state, expected.words in end.reason) == (expected.state, True), f"{expected.table}: {end}"
        if expected.rows is not None:
            _assert_read_alike(readers, variant.schema(case), expected)


def _assert_read_alike(readers: Readers, namespace: str, expected: Expected) -> None:
    found = readers.by_spark(namespace, expected.table)
    assert found.texts == expected.rows, f"table {expected.table} is\n{as_tsv(found.texts)}"
    if found.documents is not None:
        assert readers.by_duckdb(namespace, expected.table) == found.documents
    else:
        assert readers.by_pyiceberg(namespace, expected.table) == found.rows


def _wanted(request: pytest.FixtureRequest, variant: Variant) -> Iterator[Case]:
    """The cases that this run of pytest will ask for, in the same variant."""
    for item in request.session.items:
        asked = getattr(item, "callspec", None)
        if asked is not None and asked.params.get("variant") == variant:
            yield Case.named(asked.params["name"])
