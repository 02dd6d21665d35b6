from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icestream.config.units import format_duration, format_size, parse_duration, parse_size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10s", 10),
        ("5m", 300),
        ("1h30m", 5400),
        ("1h 30min", 5400),
        ("100ms", 0.1),
        ("1.5h", 5400),
        (".5s", 0.5),
        ("1m0.5s", 60.5),
        ("2days", 172800),
        ("1week", 604800),
        ("250us", 0.00025),
        ("250µs", 0.00025),
        ("168h", 604800),
        ("0s", 0),
        ("PT5M", 300),
        ("PT0.1S", 0.1),
        ("P1DT2H", 93600),
        ("P2W", 1209600),
        ("pt10s", 10),
        ("  10s  ", 10),
    ],
)
def test_durations_are_read_in_every_spelling(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "10",
        "s",
        "10 parsecs",
        "-5s",
        "1h-5m",
        "ten seconds",
        "P",
        "PT",
        "P1Y",
        "PT5",
        "P5M",
        "1e3s",
        "10s5",
        "1M",
    ],
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a duration.*10s"):
        parse_duration(text)


def test_a_duration_no_timer_can_wait_for_is_refused() -> None:
    with pytest.raises(ValueError, match="100 years"):
        parse_duration("999999999h")


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("64mb", 64 * 1024**2),
        ("64MB", 64 * 1024**2),
        ("64MiB", 64 * 1024**2),
        ("64 mib", 64 * 1024**2),
        ("64m", 64 * 1024**2),
        ("512kb", 512 * 1024),
        ("1.5gb", 1536 * 1024**2),
        ("67108864", 67108864),
        ("10b", 10),
        ("0", 0),
        ("2t", 2 * 1024**4),
    ],
)
def test_sizes_count_by_1024_in_every_spelling(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "mb", "-1", "-64mb", "64 megabytes", "64mbit", "1e6", "6 4mb", "0x10"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a size.*64mb"):
        parse_size(text)


@given(st.integers(min_value=0, max_value=10**9))
def test_a_formatted_duration_reads_as_itself(milliseconds: int) -> None:
    assert parse_duration(format_duration(milliseconds / 1000)) == milliseconds / 1000


@given(st.integers(min_value=0, max_value=2**50))
def test_a_formatted_size_reads_as_itself(size: int) -> None:
    assert parse_size(format_size(size)) == size


@pytest.mark.parametrize(("seconds", "text"), [(10.0, "10s"), (5400.0, "1h30m"), (0.1, "100ms"), (604800.0, "168h")])
def test_durations_are_shown_as_people_write_them(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
