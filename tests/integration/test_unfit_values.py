"""A value that Iceberg can't hold: it is kept somewhere, or its table stops; never both roads differently."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from icestream.errors import TableParked
from icestream.lake.session import Lake
from icestream.state.dead_letters import DeadLetter
from support.pipeline import Pipeline

_TABLE = "CREATE TABLE orders (id int PRIMARY KEY, price numeric(10,2), day date)"
_UNFIT = "INSERT INTO orders VALUES ({}, 'NaN', '2026-01-31'), ({} + 1, 1, NULL)"


@pytest.fixture
def make(lake: Lake, database: str, tmp_path: Path, namespace: str) -> Iterator[Callable[..., Pipeline]]:
    made: list[Pipeline] = []

    def pipeline(**settings: Any) -> Pipeline:
        made.append(Pipeline(lake, database, tmp_path, namespace=namespace, **settings))
        return made[0]

    yield pipeline
    made[0].close()


def prices(pipeline: Pipeline) -> list[tuple[object, ...]]:
    return pipeline.query(f"SELECT id, price FROM {pipeline.settings.sink.namespace}.orders ORDER BY id")


def seen(letter: DeadLetter) -> tuple[object, ...]:
    return dict(letter.key), letter.column, letter.value, letter.reason


def test_a_value_that_does_not_fit_is_a_letter_by_either_road(make: Callable[..., Pipeline]) -> None:
    pipeline = make()
    pipeline.execute(_TABLE, _UNFIT.format(1, 1))
    with pipeline.capturing():
        pipeline.bring_forward()
        (copied,) = pipeline.letters.newest()
        pipeline.execute(_UNFIT.format(3, 3))
        pipeline.wait_until_captured()
        pipeline.bring_forward()
    streamed = pipeline.letters.newest()[0]
    reason = "the Iceberg column can't hold this value"
    assert seen(copied) == ({"id": "1"}, "price", "NaN", reason)
    assert seen(streamed) == ({"id": "3"}, "price", "NaN", reason)
    assert copied.offset == -1
    assert streamed.offset == 0
    assert streamed.position > copied.position
    assert [(key, price if price is None else str(price)) for key, price in prices(pipeline)] == [
        (1, None),
        (2, "1.00"),
        (3, None),
        (4, "1.00"),
    ]


def test_a_table_whose_values_must_fit_stops_and_the_others_go_on(make: Callable[..., Pipeline]) -> None:
    pipeline = make(**{"types.unfit": "fail"})
    pipeline.execute(_TABLE, "CREATE TABLE others (id int PRIMARY KEY)")
    with pipeline.capturing():
        pipeline.bring_forward()
        pipeline.execute(_UNFIT.format(1, 1), "INSERT INTO others VALUES (7)")
        pipeline.wait_until_captured()
        with pytest.raises(TableParked, match=r"orders: column 'price' can't hold a value of the source"):
            pipeline.bring_forward()
        orders, others = pipeline.tables.all()
        pipeline.tables.park(orders.key, "as the worker does", None, seen=orders)
        pipeline.bring_forward()
    assert prices(pipeline) == []
    assert pipeline.query(f"SELECT id FROM {others.key}") == [(7,)]
    assert [seen(letter)[:3] for letter in pipeline.letters.newest()] == [({"id": "1"}, "price", "NaN")]


def test_a_first_copy_whose_values_must_fit_is_not_published(make: Callable[..., Pipeline]) -> None:
    pipeline = make(**{"types.unfit": "fail"})
    pipeline.execute(_TABLE, _UNFIT.format(1, 1))
    with pipeline.capturing(), pytest.raises(TableParked, match=r"orders: column 'price' can't hold a value"):
        pipeline.bring_forward()
    assert prices(pipeline) == []


def test_a_row_whose_key_does_not_fit_is_a_letter_under_every_policy(make: Callable[..., Pipeline]) -> None:
    pipeline = make(**{"types.unfit": "string"})
    pipeline.execute("CREATE TABLE orders (id numeric PRIMARY KEY, price int)", "INSERT INTO orders VALUES ('NaN', 1)")
    with pipeline.capturing():
        pipeline.bring_forward()
        pipeline.execute("INSERT INTO orders VALUES ('Infinity', 2), (1, 3)")
        pipeline.wait_until_captured()
        pipeline.bring_forward()
    assert [price for _, price in prices(pipeline)] == [3]
    assert {letter.value for letter in pipeline.letters.newest()} == {"NaN", "Infinity"}


def test_rows_that_no_key_tells_apart_are_letters_of_their_own(make: Callable[..., Pipeline]) -> None:
    pipeline = make(**{"sink.write_mode": "append"})
    pipeline.execute(
        "CREATE TABLE orders (id int, price numeric(10,2)) PARTITION BY LIST (id)",
        "CREATE TABLE orders_1 PARTITION OF orders FOR VALUES IN (1)",
        "CREATE TABLE orders_2 PARTITION OF orders FOR VALUES IN (2)",
        "INSERT INTO orders VALUES (1, 'NaN'), (1, 'NaN'), (2, 'NaN'), (2, 0)",
    )
    with pipeline.capturing():
        pipeline.bring_forward()
    assert [seen(letter)[:3] for letter in pipeline.letters.newest()] == [({}, "price", "NaN")] * 3


def test_another_copy_notes_what_does_not_fit_now(make: Callable[..., Pipeline]) -> None:
    pipeline = make()
    pipeline.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, price numeric, day date)", "INSERT INTO orders VALUES (1, 'NaN')"
    )
    with pipeline.capturing():
        pipeline.bring_forward()
        pipeline.execute("ALTER TABLE orders REPLICA IDENTITY FULL")
        pipeline.execute("UPDATE orders SET price = 'Infinity'")
        pipeline.tables.request_copy(pipeline.tables.all()[0].key, reason="asked for")
        pipeline.bring_forward()
    copied = [letter.value for letter in pipeline.letters.newest() if letter.offset == -1]
    assert copied == ["Infinity", "NaN"]


@pytest.mark.parametrize("sink", [{}, {"sort_order": ["id"]}], ids=["by tasks", "by spark"])
def test_letters_of_a_copy_come_part_by_part(make: Callable[..., Pipeline], sink: dict[str, Any]) -> None:
    pipeline = make(tables=[{"name": "public.orders", "iceberg": sink}])
    pipeline.copying = replace(pipeline.copying, most_unfit=3)
    pipeline.execute(
        _TABLE,
        "INSERT INTO orders SELECT g, 'NaN', 'infinity' FROM generate_series(1, 10) g",
        "INSERT INTO orders SELECT g, g, NULL FROM generate_series(11, 500) g",
        "INSERT INTO orders VALUES (501, 'NaN', NULL)",
    )
    with pipeline.capturing():
        pipeline.bring_forward()
    found = sorted((int(letter.key["id"] or 0), letter.column) for letter in pipeline.letters.newest())
    assert found == sorted([(n, column) for n in range(1, 11) for column in ("day", "price")] + [(501, "price")])
