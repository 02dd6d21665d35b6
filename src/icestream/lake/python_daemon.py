"""What Spark forks its Python workers from, started by it as `python -m icestream.lake.python_daemon`.

Spark puts its own archives on the path, and Python reads the list of contents of each anew for every task, which takes
longer than many a task of ours. With PySpark installed they are not needed. What is slow to import is there before
the fork.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import sys

_SLOW_TO_IMPORT = ("adbc_driver_postgresql.dbapi", "icestream.config", "psycopg", "pyarrow.parquet", "pyspark.worker")
_ARCHIVES = (".jar", "/pyspark.zip", "-src.zip")


def leave_archives(path: list[str]) -> None:
    """Takes Spark's archives off the path, unless they are where PySpark comes from."""
    kept = [entry for entry in path if not entry.endswith(_ARCHIVES)]
    everything, path[:] = list(path), kept
    if importlib.util.find_spec("pyspark") is None:
        path[:] = everything
        return
    for entry in set(everything) - set(kept):
        sys.path_importer_cache.pop(entry, None)


def main() -> None:
    leave_archives(sys.path)

    for name in _SLOW_TO_IMPORT:
        importlib.import_module(name)
    from pyspark import daemon

    gc.freeze()  # workers collect garbage after every task
    daemon.manager()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
