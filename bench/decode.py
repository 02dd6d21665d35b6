"""How fast row messages become Arrow arrays and staged files, on one core.

python bench/decode.py [--rows 50000] [--repeat 5]
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from icestream.log.format import encode, staged_table
from icestream.model.table import Column, Relation
from icestream.sources.postgres.columnar import decode_rows
from icestream.sources.postgres.pgoutput import UNCHANGED, Value
from support import pgoutput_messages as raw

XLOG_HEADER = b"w" + bytes(24)
TYPES = {
    "id": 20,
    "name": 25,
    "created": 1184,
    "active": 16,
    "amount": 1700,
    "note": 25,
    "payload": 3802,
    "counter": 20,
    "day": 1082,
    "text": 25,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    pa.set_cpu_count(1)
    batches = {
        "inserts": (relation("d"), [insert] * 10),
        "70/20/10": (relation("d"), [insert] * 7 + [update] * 2 + [delete]),
        "rekeyed, toast": (relation("d"), [insert, update_key, update_unchanged, delete]),
        "identity full": (relation("f"), [insert, update_full, update_full, delete_full]),
    }
    for name, (shape, makers) in batches.items():
        report(name, shape, messages(makers, options.rows), options.repeat)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def report(name: str, shape: Relation, rows: list[bytes], repeat: int) -> None:
    size = sum(map(len, rows))
    allocated = pa.total_allocated_bytes()
    batch = decode_rows(shape, rows, skip=len(XLOG_HEADER))
    arrow = pa.total_allocated_bytes() - allocated
    stamps = np.arange(len(rows), dtype=np.int64)
    table = staged_table(batch, shape, lsn=stamps, ts=stamps, xid=stamps)
    file = encode(table)
    decoding = best(lambda: decode_rows(shape, rows, skip=len(XLOG_HEADER)), repeat)
    encoding = best(lambda: encode(table), repeat)
    print(
        f"{name:15} {size / len(rows):5.0f} B/row"
        f"   decode {len(rows) / decoding:10,.0f} rows/s   encode {len(rows) / encoding:10,.0f} rows/s"
        f"   both {len(rows) / (decoding + encoding):10,.0f} rows/s"
        f"   arrow {arrow / len(rows):4.0f} B/row   file {file.size / len(rows):4.0f} B/row"
    )


def best(run: Callable[[], object], repeat: int) -> float:
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def relation(identity: str) -> Relation:
    columns = tuple(Column(name, oid, -1, name == "id" or identity == "f") for name, oid in TYPES.items())
    return Relation(16385, "public", "orders", identity, columns)


def messages(makers: list[Callable[[random.Random, int], bytes]], count: int) -> list[bytes]:
    chance = random.Random(7)
    return [XLOG_HEADER + chance.choice(makers)(chance, number) for number in range(count)]


def values(chance: random.Random, number: int) -> list[Value]:
    return [
        str(number),
        f"name {chance.randrange(10**6)}",
        f"2024-05-{number % 28 + 1:02} 10:00:{number % 60:02}.{chance.randrange(10**6):06}+00",
        chance.choice("tf"),
        f"{chance.random() * 1e4:.2f}",
        None if number % 5 == 0 else "x" * chance.randrange(40),
        f'{{"a": {number}, "b": [1, 2, "{chance.randrange(1000)}"]}}',
        str(chance.getrandbits(40)),
        f"2024-02-{number % 28 + 1:02}",
        f"Zeichenkette – longer than the rest, number {number}",
    ]


def key(number: int) -> list[Value]:
    return [str(number), *[None] * (len(TYPES) - 1)]


def insert(chance: random.Random, number: int) -> bytes:
    return raw.insert(16385, values(chance, number))


def update(chance: random.Random, number: int) -> bytes:
    return raw.update(16385, values(chance, number))


def update_key(chance: random.Random, number: int) -> bytes:
    return raw.update(16385, values(chance, number), key(number + 1))


def update_unchanged(chance: random.Random, number: int) -> bytes:
    return raw.update(16385, [*values(chance, number)[:-1], UNCHANGED])


def update_full(chance: random.Random, number: int) -> bytes:
    row = values(chance, number)
    return raw.update(16385, [*row[:-1], UNCHANGED], row, "O")


def delete(chance: random.Random, number: int) -> bytes:
    return raw.delete(16385, key(number))


def delete_full(chance: random.Random, number: int) -> bytes:
    return raw.delete(16385, values(chance, number), "O")


if __name__ == "__main__":
    main()
