"""Random values of every type, as the text that PostgreSQL's input functions read."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from random import Random

_LETTERS = ["a", "B", " ", ",", "{", "}", '"', "\\", "'", "\n", "\t", "ä", "€", "𝄞", "NULL", "$1", "(", ")", "x" * 300]
_ALPHABET = "abcXYZ ,.'\"\\{}()[]äß€𝄞"

Maker = Callable[[Random], str]


def declarations() -> list[str]:
    return [
        "CREATE TYPE mood AS ENUM ('sad', 'so so', 'a,b', 'null')",
        'CREATE TYPE pair AS (a int, "b c" text)',
        "CREATE DOMAIN price AS numeric(10, 2)",
        "CREATE DOMAIN dear_price AS price CHECK (value IS NULL OR value <> 13)",
        "CREATE DOMAIN label AS text",
        "CREATE DOMAIN numbers AS int[]",
        "CREATE EXTENSION IF NOT EXISTS hstore",
    ]


def random_rows(rng: Random, count: int) -> list[list[str | None]]:
    return [[_maybe_null(rng, make) for make in TYPES.values()] for _ in range(count)]


def _maybe_null(rng: Random, make: Maker) -> str | None:
    return None if rng.random() < 0.1 else make(rng)


def _text(rng: Random) -> str:
    return "".join(rng.choices(_LETTERS, k=rng.randrange(6)))


def _short(rng: Random) -> str:
    return "".join(rng.choices(_ALPHABET, k=rng.randrange(4)))


def _integer(bits: int) -> Maker:
    return lambda rng: str(rng.choice([0, -1, -(2**bits), 2**bits - 1, rng.randrange(-(2**bits), 2**bits)]))


def _digits(rng: Random, most: int) -> str:
    return "".join(rng.choices("0123456789", k=rng.randrange(1, most + 1)))


def _numeric(whole: int, fraction: int, *odd: str) -> Maker:
    def make(rng: Random) -> str:
        if odd and rng.random() < 0.2:
            return rng.choice(odd)
        return rng.choice(["", "-"]) + _digits(rng, whole) + (f".{_digits(rng, fraction)}" if fraction else "")

    return make


def _float(largest: float) -> Maker:
    def make(rng: Random) -> str:
        odd = ["NaN", "Infinity", "-Infinity", "-0", "0", "1e-40"]
        return rng.choice([*odd, repr(rng.uniform(-1, 1)), repr(rng.uniform(-largest, largest))])

    return make


def _date(rng: Random) -> str:
    odd = ["infinity", "-infinity", "0044-03-15 BC", "10000-01-01", "0001-01-01", "9999-12-31", "1582-10-10"]
    if rng.random() < 0.4:
        return rng.choice(odd)
    return f"{rng.randrange(1, 10000):04}-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}"


def _clock(rng: Random) -> str:
    fraction = rng.choice(["", f".{rng.randrange(10**6):06}", ".5"])
    return f"{rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}{fraction}"


def _timestamp(rng: Random) -> str:
    day = _date(rng)
    if "infinity" in day:
        return day
    return day.replace(" BC", f" {_clock(rng)} BC") if "BC" in day else f"{day} {_clock(rng)}"


def _zoned(make: Maker) -> Maker:
    def zoned(rng: Random) -> str:
        text = make(rng)
        zone = rng.choice(["+00", "+02", "-11:30"])
        return text if "infinity" in text else text.replace(" BC", f"{zone} BC") if "BC" in text else text + zone

    return zoned


def _interval(rng: Random) -> str:
    parts = [f"{rng.randrange(-9, 10)} {unit}" for unit in ("year", "month", "day", "hour", "minute")]
    return " ".join(rng.sample(parts, rng.randrange(1, 5))) + f" {rng.uniform(-60, 60):.6f} seconds"


def _document(rng: Random, depth: int = 0) -> object:
    leaves = [None, True, rng.randrange(-(10**12), 10**12), round(rng.uniform(-9, 9), 3), _text(rng)]
    if depth > 2 or rng.random() < 0.5:
        return rng.choice(leaves)
    if rng.random() < 0.5:
        return [_document(rng, depth + 1) for _ in range(rng.randrange(3))]
    return {_short(rng) + str(n): _document(rng, depth + 1) for n in range(rng.randrange(3))}


def _json(rng: Random) -> str:
    odd = ["null", "{}", '{"a":  1, "a": 2}', "1" * 40, "[1e10]"]
    return rng.choice(odd) if rng.random() < 0.2 else json.dumps(_document(rng), ensure_ascii=rng.random() < 0.5)


def _one_of(*texts: str) -> Maker:
    return lambda rng: rng.choice(texts)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _array(make: Maker, *, separator: str = ",") -> Maker:
    def flat(rng: Random, size: int) -> str:
        elements = ["NULL" if rng.random() < 0.15 else _quoted(make(rng)) for _ in range(size)]
        return "{" + separator.join(elements) + "}"

    def array(rng: Random) -> str:
        kind, lower = rng.random(), rng.choice([-1, 0, 2])
        if kind < 0.1:
            return f"{{{flat(rng, 2)}{separator}{flat(rng, 2)}}}"
        return f"[{lower}:{lower + 1}]={flat(rng, 2)}" if kind < 0.2 else flat(rng, rng.randrange(5))

    return array


def _bits(rng: Random) -> str:
    return "".join(rng.choices("01", k=rng.randrange(12)))


# Without xml: the embedded server is built without it.
TYPES: dict[str, Maker] = {
    "bool": _one_of("t", "f"),
    "int2": _integer(15),
    "int4": _integer(31),
    "int8": _integer(63),
    "oid": _one_of("0", "2147483648", "4294967295"),
    "float4": _float(3e38),
    "float8": _float(1e308),
    "numeric": _numeric(25, 22, "NaN", "Infinity", "-Infinity", "1e100", "0.10000000000000000000000"),
    "numeric(10,2)": _numeric(8, 4, "NaN"),
    "numeric(38,0)": _numeric(38, 0, "NaN"),
    "numeric(38,38)": lambda rng: f"{rng.choice(['', '-'])}0.{_digits(rng, 38)}",
    "numeric(60,20)": _numeric(40, 25, "NaN"),
    "numeric(3,-2)": _numeric(4, 0, "NaN", "-99949"),
    "text": _text,
    "varchar(700)": _text,
    "char(5)": _short,
    "name": _short,
    '"char"': _one_of("a", "", "\\", " "),
    "bytea": lambda rng: "\\x" + rng.randbytes(rng.randrange(6)).hex(),
    "date": _date,
    "time": _one_of("00:00", "24:00:00", "12:34:56.789"),
    "timetz": _zoned(_clock),
    "timestamp": _timestamp,
    "timestamptz": _zoned(_timestamp),
    "interval": _interval,
    "uuid": lambda rng: str(uuid.UUID(bytes=rng.randbytes(16))),
    "json": _json,
    "jsonb": _json,
    "inet": _one_of("10.0.0.1", "10.0.0.1/8", "::1", "fe80::/10"),
    "cidr": _one_of("10.0.0.0/8", "::/0"),
    "macaddr": _one_of("08:00:2b:01:02:03"),
    "macaddr8": _one_of("08:00:2b:01:02:03:04:05"),
    "bit(3)": _one_of("101", "000"),
    "varbit": _bits,
    "money": _one_of("-1234.56", "0", "92233720368547758.07"),
    "mood": _one_of("sad", "so so", "a,b", "null"),
    "pair": _one_of("(,)", "(1,)", '(2,"a ""b"", c")', '(,"")'),
    "price": _numeric(8, 2, "NaN"),
    "dear_price": _numeric(8, 2, "NaN"),
    "label": _text,
    "numbers": _array(_integer(31)),
    "int4range": _one_of("empty", "[1,5)", "(,)", "[,3]"),
    "tstzrange": _one_of("empty", "[2026-01-01 00:00+02,infinity)"),
    "int4multirange": _one_of("{}", "{[1,3),[7,9)}"),
    "hstore": _one_of("", '"a"=>NULL, "b c"=>"d\\"e"'),
    "tsvector": _one_of("", "fat:2 cat:3A", "'a b':1"),
    "tsquery": _one_of("fat & (cat | !rat)"),
    "point": _one_of("(1,2)", "(0.1,-1e300)", "(NaN,Infinity)"),
    "box": _one_of("(2,2),(1,1)"),
    "polygon": _one_of("((0,0),(1,1),(2,0))"),
    "circle": _one_of("<(1,2),3>"),
    "pg_lsn": _one_of("0/0", "16/B374D848"),
    "regclass": _one_of("pg_class", "1234567"),
    "int2vector": _one_of("1 2 3", ""),
    "bool[]": _array(_one_of("t", "f")),
    "int2[]": _array(_integer(15)),
    "oid[]": _array(_one_of("0", "4294967295")),
    "int8[]": _array(_integer(63)),
    "float4[]": _array(_float(3e38)),
    "float8[]": _array(_float(1e308)),
    "numeric[]": _array(_numeric(20, 18, "NaN", "1e30")),
    "numeric(10,2)[]": _array(_numeric(8, 2, "NaN")),
    "numeric(50,2)[]": _array(_numeric(48, 2)),
    "text[]": _array(_text),
    "varchar[]": _array(_text),
    "char(5)[]": _array(_short),
    "name[]": _array(_short),
    "bytea[]": _array(lambda rng: "\\x" + rng.randbytes(rng.randrange(6)).hex()),
    "date[]": _array(_one_of("2026-01-31", "0001-01-01", "infinity")),
    "timestamp[]": _array(_one_of("2026-01-31 23:59:59.000001", "1900-01-01", "0001-01-01 BC")),
    "timestamptz[]": _array(_one_of("2026-01-31 23:59:59+02", "9999-12-31 23:59:59.999999+00", "infinity")),
    "interval[]": _array(_interval),
    "uuid[]": _array(lambda rng: str(uuid.UUID(bytes=rng.randbytes(16)))),
    "jsonb[]": _array(_json),
    "inet[]": _array(_one_of("10.0.0.1", "::1/64")),
    "mood[]": _array(_one_of("sad", "so so", "a,b", "null")),
    "pair[]": _array(_one_of("(,)", "(1,)", '(2,"a ""b"", c")')),
    "price[]": _array(_numeric(8, 2, "NaN")),
    "label[]": _array(_text),
    "int4range[]": _array(_one_of("empty", "[1,5)")),
    "hstore[]": _array(_one_of("", '"a"=>NULL, "b c"=>"d\\"e"')),
    "box[]": _array(_one_of("(2,2),(1,1)"), separator=";"),
}
