from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bfreplay.datasets.times import FIRST_TIME_US, LAST_TIME_US, iso_utc, parse_time_us, seconds_to_us


@given(st.integers(FIRST_TIME_US, LAST_TIME_US))
def test_every_microsecond_of_the_calendar_reads_back(time_us):
    assert parse_time_us(iso_utc(time_us)) == time_us


@pytest.mark.parametrize(
    ("value", "time_us"),
    [
        ("1970-01-01", 0),
        ("1970-01-01T00:01", 60_000_000),
        ("1970-01-01 01:00:00+01:00", 0),
        ("1970-01-01 01:00:00.5 +0100", 500_000),
        ("1970-01-01T00:00:00z", 0),
        (" 1.5 ", 1_500_000),
        ("1e3", 1_000_000_000),
        (0.1, 100_000),
        (-1, -1_000_000),
        (datetime(1970, 1, 1, 0, 0, 1), 1_000_000),
        (datetime(1970, 1, 1, tzinfo=timezone(timedelta(hours=1))), -3_600_000_000),
        (datetime(1970, 1, 2, tzinfo=UTC), 86_400_000_000),
    ],
)
def test_texts_numbers_and_datetimes_are_times(value, time_us):
    assert parse_time_us(value) == time_us


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("", "not a time"),
        ("noon", "not a time"),
        (None, "not a time"),
        (True, "a truth value"),
        ("nan", "not a number"),
        ("2021-02-30", "day"),
        ("inf", "not a finite number"),
        ("1e40", "not a finite number"),
        ("0.0000001", "finer than a microsecond"),
        ("1970-01-01T00:00:00.0000001Z", "finer than a microsecond"),
        ("1970-01-01T00:01.5", "a fraction without seconds"),
        ("1970-01-01.5", "a fraction without seconds"),
    ],
)
def test_what_is_no_time_is_refused(value, says):
    with pytest.raises(ValueError, match=says):
        parse_time_us(value)


def test_durations_may_be_rounded_to_microseconds():
    assert seconds_to_us("0.0000015", exact=False) == 2
    assert seconds_to_us(1 / 3, exact=False) == 333_333
