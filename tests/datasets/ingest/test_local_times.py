from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bfreplay.datasets.ingest.local_times import LocalClock, possible_pairs, wall_clock_us, zone_of_name
from bfreplay.errors import InputError

S = 10**6
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ZONES = ["UTC", "Europe/Paris", "America/Chicago", "Australia/Lord_Howe", "Asia/Kathmandu"]


def utc_us(text):
    return (datetime.fromisoformat(text).replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)


def test_a_time_in_summer_is_an_hour_earlier_in_utc():
    paris = LocalClock(zone_of_name("Europe/Paris"))
    assert paris.utc_us(wall_clock_us("2024-07-01T12:00:00")) == (utc_us("2024-07-01T10:00:00"),)
    assert paris.utc_us(wall_clock_us("2024-01-01T12:00:00")) == (utc_us("2024-01-01T11:00:00"),)


def test_the_repeated_hour_has_two_meanings_and_the_skipped_one_none():
    paris = LocalClock(zone_of_name("Europe/Paris"))
    assert paris.utc_us(wall_clock_us("2024-10-27T02:30:00")) == (
        utc_us("2024-10-27T00:30:00"),
        utc_us("2024-10-27T01:30:00"),
    )
    assert paris.utc_us(wall_clock_us("2024-10-27T03:00:00")) == (utc_us("2024-10-27T02:00:00"),)
    assert paris.utc_us(wall_clock_us("2024-03-31T02:00:00")) == ()
    assert paris.utc_us(wall_clock_us("2024-03-31T03:00:00")) == (utc_us("2024-03-31T01:00:00"),)


@given(st.integers(utc_us("1990-01-01T00:00:00") // S, utc_us("2030-01-01T00:00:00") // S), st.sampled_from(ZONES))
def test_what_a_clock_showed_is_read_back(time_s, zone):
    shown = datetime.fromtimestamp(time_s, ZoneInfo(zone)).strftime("%Y-%m-%dT%H:%M:%S")
    assert time_s * S in LocalClock(zone_of_name(zone)).utc_us(wall_clock_us(shown))


@pytest.mark.parametrize(
    "text",
    [
        "2024-13-01T00:00:00",
        "2024-02-30T00:00:00",
        "2024-01-01",
        "2024-01-01T24:00:00",
        "",
        "Unknown",
        "2024-01-01T00:00:00Z",
        " 2024-01-01T00:00:00",
        "0000-01-01T00:00:00",
        "２024-01-01T00:00:00",
    ],
)
def test_what_is_no_time_is_none(text):
    assert wall_clock_us(text) is None


def test_fractions_are_kept_to_the_microsecond():
    assert wall_clock_us("1970-01-01 00:00:01.25") == 1_250_000
    assert wall_clock_us("1970-01-01 00:00:00.000001") == 1


def test_the_running_time_settles_the_repeated_hour():
    paris = LocalClock(zone_of_name("Europe/Paris"))
    start = paris.utc_us(wall_clock_us("2024-10-27T01:30:00"))
    end = paris.utc_us(wall_clock_us("2024-10-27T02:30:00"))
    assert possible_pairs(start, end, 3_600 * S) == [(start[0], end[0])]
    assert possible_pairs(start, end, 7_200 * S) == [(start[0], end[1])]
    assert len(possible_pairs(start, end, None)) == 2
    assert possible_pairs(start, end, 5_000 * S) == []
    # both in the hour: either meaning fits a job of half an hour, only one a job of 90 minutes
    begin = paris.utc_us(wall_clock_us("2024-10-27T02:10:00"))
    assert len(possible_pairs(begin, end, 1_200 * S)) == 2
    assert possible_pairs(begin, end, 4_800 * S) == [(begin[0], end[1])]


def test_an_unknown_zone_is_refused_by_name():
    for name in ("Paris", "CEST", "", "../etc/passwd", "Europe/"):
        with pytest.raises(InputError, match="unknown time zone"):
            zone_of_name(name)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "UTC"])
def test_times_of_hours_without_a_change_are_converted_at_once(zone):
    clock = LocalClock(zone_of_name(zone))
    wall_us = np.arange(wall_clock_us("2024-03-01T00:10:00"), wall_clock_us("2024-11-05T00:00:00"), 1_800 * S)
    time_us, is_plain = clock.plain_utc_us(wall_us)
    one_by_one = [clock.utc_us(each) for each in wall_us.tolist()]
    assert [(each,) for each in time_us[is_plain].tolist()] == [
        each for each, is_one in zip(one_by_one, is_plain, strict=True) if is_one
    ]
    assert all(is_plain[i] for i, each in enumerate(one_by_one) if zone == "UTC")
    assert not any(is_plain[i] for i, each in enumerate(one_by_one) if len(each) != 1)
    assert np.count_nonzero(~is_plain) <= 8
