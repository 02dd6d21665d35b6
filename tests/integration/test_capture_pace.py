"""When a flush is made: not in crumbs while there is a backlog, at once when a single change comes."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

from icestream.capture.options import CaptureOptions, FlushLimits
from icestream.state.log_entries import LogEntries
from support.capturing import CaptureBench
from support.waiting import wait_for

ITEMS = "CREATE TABLE items (id int PRIMARY KEY, v text)"
_FILL = "DO $$ BEGIN FOR n IN 1..{0} LOOP INSERT INTO items VALUES (n); COMMIT; END LOOP; END $$"


def claims(bench: CaptureBench) -> list[int]:
    """The number of changes in each claim."""
    entries = LogEntries(bench.db, bench.slot).after("public.items", 0, max_rows=2**62, max_bytes=2**62)
    return [sum(entry.record_count for entry in group) for _, group in groupby(entries, lambda entry: entry.claim_id)]


def patient(bench: CaptureBench) -> CaptureOptions:
    """Longer than any test waits."""
    return replace(bench.options, flush=FlushLimits(interval_s=600, rows=1000, size=2**30))


def test_a_backlog_is_flushed_in_whole_batches(bench: CaptureBench) -> None:
    bench.execute(ITEMS)
    with bench.running() as running:
        bench.catch_up(running)
    bench.execute(_FILL.format(3500))
    with bench.running(options=patient(bench)) as running:
        wait_for(lambda: sum(claims(bench)) >= 2000, what="the whole batches")
        running.check()
    first, *others = claims(bench)  # a server that is slow to send may seem to have caught up at first
    assert first + sum(others) == 3500
    assert all(count >= 1000 for count in others[:-1]), (first, others)


def test_the_first_change_is_flushed_at_once(bench: CaptureBench) -> None:
    bench.execute(ITEMS)
    with bench.running(options=patient(bench)) as running:
        wait_for(bench.last_reply, what="the stream")
        bench.execute("INSERT INTO items VALUES (1)")
        wait_for(lambda: claims(bench) == [1], what="the change in the log")
        running.check()


def test_a_small_backlog_is_flushed_when_nothing_more_comes(bench: CaptureBench) -> None:
    bench.execute(ITEMS)
    with bench.running() as running:
        bench.catch_up(running)
    bench.execute(_FILL.format(300))
    with bench.running(options=patient(bench)) as running:
        wait_for(lambda: claims(bench) == [300], what="the changes in one claim")
        running.check()
