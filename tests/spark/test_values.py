"""Text to typed values: exact, or NULL and unfit; never something close."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest
from pyspark.sql import functions as F

from icestream.lake.session import Lake
from icestream.materialize.values import typed, unfit
from icestream.model.types import Kind, TargetType

UNCONSTRAINED = TargetType(Kind.DECIMAL, 38, 18)
TWO_DECIMALS = TargetType(Kind.DECIMAL, 10, 2)


def list_of(kind: Kind, *digits: int) -> TargetType:
    return TargetType(Kind.LIST, element=TargetType(kind, *digits))


TEXTS = list_of(Kind.STRING)

FITS = [
    (TargetType(Kind.BOOLEAN), "t", True),
    (TargetType(Kind.BOOLEAN), "f", False),
    (TargetType(Kind.INT), "-2147483648", -2147483648),
    (TargetType(Kind.LONG), "9223372036854775807", 9223372036854775807),
    (TargetType(Kind.DOUBLE), "-Infinity", float("-inf")),
    (TargetType(Kind.DOUBLE), "1.7976931348623157e+308", 1.7976931348623157e308),
    (TargetType(Kind.STRING), "", ""),
    (TargetType(Kind.STRING), " keeps spaces ", " keeps spaces "),
    (TargetType(Kind.BINARY), r"\x00ff", bytearray(b"\x00\xff")),
    (TargetType(Kind.BINARY), r"\x", bytearray(b"")),
    (TargetType(Kind.DATE), "0001-01-01", datetime.date(1, 1, 1)),
    (TargetType(Kind.DATE), "9999-12-31", datetime.date(9999, 12, 31)),
    (TargetType(Kind.TIMESTAMP), "2026-01-31 23:59:59.000001", datetime.datetime(2026, 1, 31, 23, 59, 59, 1)),
    (TargetType(Kind.TIMESTAMP), "1900-01-01 00:00:00", datetime.datetime(1900, 1, 1)),
    (TWO_DECIMALS, "-99999999.99", Decimal("-99999999.99")),
    (UNCONSTRAINED, "0.000000000000000001", Decimal("0.000000000000000001")),
    (UNCONSTRAINED, "1.10000000000000000000000", Decimal("1.1").quantize(Decimal(10) ** -18)),
    (UNCONSTRAINED, "12345678901234567890", Decimal("12345678901234567890.000000000000000000")),
    (TargetType(Kind.UUID), "8f14e45f-ceea-467f-a8c1-9f0c1a2b3c4d", "8f14e45f-ceea-467f-a8c1-9f0c1a2b3c4d"),
    (TEXTS, "{}", []),
    (TEXTS, "{NULL}", [None]),
    (TEXTS, '{"NULL"}', ["NULL"]),
    (TEXTS, '{"",a,"b c",NULL,"null"}', ["", "a", "b c", None, "null"]),
    (TEXTS, r'{"a,b","{c}","d\"e","\\f\\"}', ["a,b", "{c}", 'd"e', "\\f\\"]),
    (TEXTS, '{ä€𝄞,"\n","\t$1"}', ["ä€𝄞", "\n", "\t$1"]),
    (TEXTS, '{"{{a}}"}', ["{{a}}"]),
    (TEXTS, '{"' + "x" * 100_000 + '"}', ["x" * 100_000]),
    (TEXTS, '{"' + r"\"" * 50_000 + '"}', ['"' * 50_000]),
    (list_of(Kind.INT), "{1,NULL,-2147483648}", [1, None, -2147483648]),
    (list_of(Kind.BOOLEAN), "{t,f,NULL}", [True, False, None]),
    (list_of(Kind.DOUBLE), "{Infinity,-0,1e-300}", [float("inf"), -0.0, 1e-300]),
    (list_of(Kind.BINARY), r'{"\\x00ff","\\x"}', [bytearray(b"\x00\xff"), bytearray(b"")]),
    (list_of(Kind.DATE), "{0001-01-01,NULL}", [datetime.date(1, 1, 1), None]),
    (list_of(Kind.TIMESTAMP), '{"2026-01-31 23:59:59.5"}', [datetime.datetime(2026, 1, 31, 23, 59, 59, 500000)]),
    (list_of(Kind.DECIMAL, 4, 1), "{1.5,NULL,-999.9}", [Decimal("1.5"), None, Decimal("-999.9")]),
]
UNFIT = [
    (TargetType(Kind.DATE), "infinity"),
    (TargetType(Kind.DATE), "-infinity"),
    (TargetType(Kind.DATE), "0044-03-15 BC"),
    (TargetType(Kind.DATE), "10000-01-01"),
    (TargetType(Kind.TIMESTAMP), "infinity"),
    (TargetType(Kind.TIMESTAMP), "-infinity"),
    (TargetType(Kind.TIMESTAMP), "0044-03-15 00:00:00 BC"),
    (TargetType(Kind.TIMESTAMP), "10000-01-01 00:00:00"),
    (TargetType(Kind.TIMESTAMPTZ), "infinity"),
    (TargetType(Kind.TIMESTAMPTZ), "0044-03-15 00:00:00+00 BC"),
    (TargetType(Kind.TIMESTAMPTZ), "294276-12-31 23:59:59+00"),
    (TWO_DECIMALS, "NaN"),
    (UNCONSTRAINED, "Infinity"),
    (UNCONSTRAINED, "-Infinity"),
    (UNCONSTRAINED, "123456789012345678901"),
    (TWO_DECIMALS, "Infinity"),
    (TWO_DECIMALS, "-Infinity"),
    (TWO_DECIMALS, "123456789"),
    (TWO_DECIMALS, "0.001"),
    (UNCONSTRAINED, "0.0000000000000000019"),
    (TEXTS, "{{a,b},{c,d}}"),
    (TEXTS, "[0:1]={a,b}"),
    (TEXTS, "[1:1][-2:-1]={{a,b}}"),
    (list_of(Kind.DATE), "{2026-01-01,infinity}"),
    (list_of(Kind.DECIMAL, 4, 1), "{1.5,NaN}"),
    (TargetType(Kind.VARIANT), '{"a": 123456789012345678901234567890123456789}'),
    (TargetType(Kind.VARIANT), "[1e400]"),
]


@pytest.mark.parametrize(("type_", "text", "expected"), FITS)
def test_what_fits_is_exact(lake: Lake, type_: TargetType, text: str, expected: object) -> None:
    frame = lake.spark.createDataFrame([(text,)], "raw string")
    value = typed(F.col("raw"), type_)
    row = frame.select(value.alias("value"), unfit(F.col("raw"), value, type_).alias("unfit")).collect()[0]
    assert (row["value"], row["unfit"]) == (expected, False)


@pytest.mark.parametrize(("type_", "text"), UNFIT)
def test_what_does_not_fit_is_null_and_said_to_be_unfit(lake: Lake, type_: TargetType, text: str) -> None:
    frame = lake.spark.createDataFrame([(text,)], "raw string")
    value = typed(F.col("raw"), type_)
    row = frame.select(value.alias("value"), unfit(F.col("raw"), value, type_).alias("unfit")).collect()[0]
    assert (row["value"], row["unfit"]) == (None, True)
    assert type_.can_be_unfit


def test_a_timestamp_with_time_zone_is_an_instant(lake: Lake) -> None:
    frame = lake.spark.createDataFrame([("2026-07-01 12:00:00.25+00",)], "raw string")
    value = typed(F.col("raw"), TargetType(Kind.TIMESTAMPTZ))
    micros = frame.select(F.unix_micros(value)).collect()[0][0]
    expected = datetime.datetime(2026, 7, 1, 12, 0, 0, 250000, tzinfo=datetime.UTC)
    assert micros == int(expected.timestamp() * 1_000_000)


def test_null_is_null_and_not_unfit(lake: Lake) -> None:
    frame = lake.spark.createDataFrame([(None,)], "raw string")
    scalars = [TargetType(kind, 10, 2) for kind in Kind if kind is not Kind.LIST]
    for type_ in [*scalars, TEXTS, list_of(Kind.DATE)]:
        value = typed(F.col("raw"), type_)
        row = frame.select(value.alias("value"), unfit(F.col("raw"), value, type_).alias("unfit")).collect()[0]
        assert (row["value"], row["unfit"]) == (None, False), type_


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"b": [1, null, 1.50], "a": "x"}', '{"a":"x","b":[1,null,1.5]}'),
        ("null", "null"),
        ('"12345678901234567890123456789012345678901e999"', '"12345678901234567890123456789012345678901e999"'),
        ("12345678901234567890123456789012345678", "12345678901234567890123456789012345678"),
        ('{"a": 1, "a": 2}', '{"a":2}'),
        pytest.param("[" * 2000 + "]" * 2000, '"' + "[" * 2000 + "]" * 2000 + '"', id="nested too deeply"),
    ],
)
def test_a_document_becomes_a_variant(lake: Lake, text: str, expected: str) -> None:
    frame = lake.spark.createDataFrame([(text,)], "raw string")
    type_ = TargetType(Kind.VARIANT)
    value = typed(F.col("raw"), type_)
    row = frame.select(F.to_json(value).alias("value"), unfit(F.col("raw"), value, type_).alias("unfit")).collect()[0]
    assert (row["value"], row["unfit"]) == (expected, False)
