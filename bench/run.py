"""Speed and memory of Icestream on this box, beside what PostgreSQL's own tools, DuckDB and ingestr reach on it.

python bench/run.py [--scale 1000000] [--only capture,e2e,big-transaction,latency,copy,copies] [--markdown]
python bench/run.py --only copies,many-tables,huge-transaction [--copy-rows 10000000] [--tables 50,200] [--minutes 10]
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from backlog import measure_backlog
from bench_run import BenchRun
from big_transaction import measure_big_transaction
from box import look_at_box
from copies import measure_copies
from first_copy import measure_first_copy
from latency import measure_latency
from many_tables import measure_many_tables
from report import Figure, Report
from source import Server

SHORT = ("capture", "e2e", "big-transaction", "latency", "copy", "copies")
LONG = ("many-tables", "huge-transaction")
SCENARIOS = (*SHORT, *LONG)
LARGER = 10  # how much, where one size is not enough
OUT = Path(__file__).parent / "out"


def main() -> None:
    options = _options()
    signal.signal(signal.SIGTERM, lambda signum, frame: sys.exit(128 + signum))  # as Ctrl-C: stop what was started
    load = os.getloadavg()[0]
    with _work_folder(keep=options.keep) as folder:
        server = Server(folder / "postgres", unix=options.socket == "unix")
        with server.running():
            box = look_at_box(server.version, load)
            figures, notes = measure(BenchRun(server, folder, options.scale), options)
    described: dict[str, object] = {"scale": f"{options.scale:,}", "connections": options.socket}
    report = Report(box, described, figures, notes)
    print(f"\n{report.markdown() if options.markdown else report.table()}\n")
    print(f"written to {report.write_json(OUT)}")


def measure(run: BenchRun, options: argparse.Namespace) -> tuple[list[Figure], list[str]]:
    only: set[str] = options.only
    figures: list[Figure] = []
    notes: list[str] = []
    if only & {"capture", "e2e"}:
        figures += measure_backlog(run, alone="capture" in only, to_iceberg="e2e" in only)
    if "big-transaction" in only:
        figures += measure_big_transaction(run, "big transaction", run.scale)
    if "latency" in only:
        figures += measure_latency(run)
    if "copy" in only:
        found, said = measure_first_copy(run)
        figures, notes = figures + found, notes + said
    if "copies" in only:
        found, said = measure_copies(run, options.copy_rows)
        figures, notes = figures + found, notes + said
    if "many-tables" in only:
        figures += measure_many_tables(run, options.tables, options.minutes)
    if "huge-transaction" in only:
        figures += measure_big_transaction(run, "huge transaction", run.scale * LARGER)
    return figures, notes


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=_scale, default=1_000_000, help="rows and changes; a multiple of 1,000")
    parser.add_argument("--only", type=_scenarios, help=f"some of: {','.join(SCENARIOS)}; by default the first six")
    parser.add_argument("--copy-rows", type=_numbers, help="sizes of `copies`; by default the scale, and ten times it")
    parser.add_argument("--tables", type=_numbers, default=[50, 200], help="how many, for `many-tables`")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long `many-tables` changes them")
    parser.add_argument("--socket", choices=("tcp", "unix"), default="tcp", help="how everyone connects to PostgreSQL")
    parser.add_argument("--markdown", action="store_true", help="print the report as Markdown")
    parser.add_argument("--keep", action="store_true", help="keep the work folder with the logs of all processes")
    options = parser.parse_args()
    if options.copy_rows is None:
        # The larger copies take many minutes: only for who asks for them.
        options.copy_rows = [options.scale, options.scale * LARGER] if options.only else [options.scale]
    options.only = options.only or set(SHORT)
    return options


def _numbers(text: str) -> list[int]:
    numbers = [int(number.replace("_", "")) for number in text.split(",")]
    if min(numbers) <= 0:
        raise argparse.ArgumentTypeError("must be numbers greater than 0")
    return numbers


def _scale(text: str) -> int:
    scale = int(text.replace("_", ""))
    if scale <= 0 or scale % 1000:
        raise argparse.ArgumentTypeError("must be a multiple of 1,000")
    return scale


def _scenarios(text: str) -> set[str]:
    chosen = set(text.split(","))
    if unknown := chosen - set(SCENARIOS):
        raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))} is none of {', '.join(SCENARIOS)}")
    return chosen


@contextmanager
def _work_folder(*, keep: bool) -> Iterator[Path]:
    """Not below the project: the server's OS user has to be able to enter it. After a failure its logs are saved."""
    folder = Path(tempfile.mkdtemp(prefix="icestream-bench-"))
    folder.chmod(0o755)
    try:
        yield folder
    except Exception:
        print(f"\nthe logs are in {_save_logs(folder)}", file=sys.stderr)
        raise
    finally:
        if keep:
            print(f"kept {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)


def _save_logs(folder: Path) -> Path:
    saved = OUT / f"failed-{os.getpid()}"
    for file in folder.glob("*/*.log"):
        target = saved / file.relative_to(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    return saved


if __name__ == "__main__":
    main()
