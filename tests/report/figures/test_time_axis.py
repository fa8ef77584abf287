"""Ticks of an axis of times, against calendars and clocks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bfreplay.datasets.times import EPOCH, MICROSECOND
from bfreplay.report.figures.time_axis import calendar_ticks

US = 1_000_000


def ticks(start, end, zone="UTC"):
    edges = [(datetime.fromisoformat(text).replace(tzinfo=UTC) - EPOCH) // MICROSECOND for text in (start, end)]
    return calendar_ticks(*edges, ZoneInfo(zone))


@pytest.mark.parametrize(
    ("start", "end", "labels"),
    [
        ("2024-10-01T04:00:48", "2024-11-10T11:30:51", "7 Oct/2024, 14 Oct, 21 Oct, 28 Oct, 4 Nov"),
        ("2024-06-01", "2024-09-09", "10 Jun/2024, 24 Jun, 8 Jul, 22 Jul, 5 Aug, 19 Aug, 2 Sep"),
        ("2024-12-20", "2025-01-04", "21 Dec/2024, 23 Dec, 25 Dec, 27 Dec, 29 Dec, 31 Dec, 2 Jan/2025, 4 Jan"),
        ("2024-02-27", "2024-03-06", "27 Feb/2024, 28 Feb, 29 Feb, 1 Mar, 2 Mar, 3 Mar, 4 Mar, 5 Mar, 6 Mar"),
        ("2024-08-15", "2025-03-02", "Sep/2024, Oct, Nov, Dec, Jan/2025, Feb, Mar"),
        ("2022-06-01", "2025-12-01", "Jul/2022, Jan/2023, Jul, Jan/2024, Jul, Jan/2025, Jul"),
        ("1990-06-01", "2026-01-01", "1995, 2000, 2005, 2010, 2015, 2020, 2025"),
        ("2024-12-31T20:10", "2025-01-01T02:10", "21:00/31 Dec 2024, 22:00, 23:00, 00:00/1 Jan 2025, 01:00, 02:00"),
        ("2024-06-01T10:00", "2024-06-01T10:09", ", ".join(["10:00/1 Jun 2024", *(f"10:0{m}" for m in range(1, 10))])),
        ("2024-06-01T10:00:00", "2024-06-01T10:00:30", "10:00:00/1 Jun 2024, 10:00:10, 10:00:20, 10:00:30"),
        ("2024-06-01T10:00:00", "2024-06-01T10:00:00.7", "10:00:00/1 Jun 2024, 10:00:00.2, 10:00:00.4, 10:00:00.6"),
    ],
)
def test_steps_are_even_and_labels_say_what_the_ones_before_do_not(start, end, labels):
    assert [label.replace("\n", "/") for label in ticks(start, end).labels] == labels.split(", ")


def test_weeks_begin_on_mondays_and_only_they_are_said_to():
    weeks = ticks("2024-10-01", "2024-11-10", "America/New_York")
    assert weeks.mondays
    for time_us in weeks.time_us:
        at = datetime.fromtimestamp(time_us / US, ZoneInfo("America/New_York"))
        assert (at.weekday(), at.hour) == (0, 0)
    assert not ticks("2024-10-01", "2024-10-08").mondays


def test_clocks_that_are_put_back_or_forward_keep_their_whole_hours():
    back = ticks("2024-10-26T23:00", "2024-10-27T04:00", "Europe/Paris")  # 03:00 is followed by 02:00
    assert [label[:5] for label in back.labels] == ["01:00", "02:00", "02:00", "03:00", "04:00", "05:00"]
    forward = ticks("2024-03-30T12:00", "2024-04-01T00:00", "Europe/Paris")
    assert [label[:5] for label in forward.labels] == ["18:00", "00:00", "06:00", "12:00", "18:00", "00:00"]


@given(
    start_s=st.integers(-2_000_000_000, 4_000_000_000),
    length_us=st.one_of(
        st.integers(1, US), st.integers(1, 86_400 * US), st.integers(1, 10**14), st.integers(1, 3 * 10**16)
    ),
    zone=st.sampled_from(["UTC", "Europe/Paris", "Asia/Kolkata", "Australia/Lord_Howe", "America/Sao_Paulo"]),
)
def test_whatever_the_window_there_are_few_ticks_inside_it_in_order_and_about_even(start_s, length_us, zone):
    start_us = start_s * US
    found = calendar_ticks(start_us, start_us + length_us, ZoneInfo(zone))
    assert len(found.labels) == len(found.time_us) <= 10
    assert all(start_us <= time_us <= start_us + length_us for time_us in found.time_us)
    steps = [after - before for before, after in pairwise(found.time_us)]
    assert all(step > 0 for step in steps)
    # months differ by three days, and clocks are changed by an hour
    allowed_us = max(min(steps) / 9, 3_600 * US) if steps else 0
    if min(steps, default=0) > 3_600 * US:
        assert max(steps) - min(steps) <= allowed_us
    if length_us > 10:
        assert found.labels
        first = found.labels[0].split("\n")[-1]
        year = (EPOCH + timedelta(microseconds=found.time_us[0])).astimezone(ZoneInfo(zone)).year
        assert first.endswith(str(year))
