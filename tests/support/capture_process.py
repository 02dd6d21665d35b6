"""A capture in a process of its own: settings as JSON on stdin, what it took as JSON on stdout.

`UNTIL`: the position at which it may stop. `ICESTREAM_CRASH_AT` works as in any process.
"""

from __future__ import annotations

import json
import resource
import sys
import threading
import time

from icestream.capture.capture import Capture
from icestream.config import load
from icestream.model.position import Lsn
from icestream.observe.logs import configure
from icestream.state.database import Database
from icestream.state.log_index import LogIndex


def main() -> None:
    configure()
    environ = json.load(sys.stdin)
    until = Lsn.parse(environ.pop("UNTIL"))
    settings = load(None, environ, {}).settings
    db = Database(settings.state_conninfo(), settings.state.coordinator_schema)
    index, stop = LogIndex(db, settings.pipeline), threading.Event()
    before = _peak_mb()
    thread = threading.Thread(target=_stop_at, args=(index, until, stop), daemon=True)
    thread.start()
    Capture(settings, db=db).run(stop)
    json.dump({"grown_mb": _peak_mb() - before}, sys.stdout)


def _stop_at(index: LogIndex, until: Lsn, stop: threading.Event) -> None:
    while not (stored := index.flushed()) or stored.position < until:
        time.sleep(0.05)
    stop.set()


def _peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    main()
