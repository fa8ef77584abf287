"""Idle nodes by hour and weekday, with clocks that change, against numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from bfreplay.datasets import EventsMetadata, NodeEvents
from bfreplay.datasets.idleness import characterise
from bfreplay.datasets.times import parse_time_us
from bfreplay.errors import InputError
from tests.datasets.small_logs import BUSY, IDLE

HOUR = 3_600_000_000
MONDAY, THURSDAY, SATURDAY, SUNDAY = 0, 3, 5, 6


def week_of(start, end, rows=(), initial=(BUSY, BUSY), zone=None, **metadata):
    """Return the week of a log of nodes a and b; rows are (UTC time, node, state)."""
    times, nodes, states = zip(*rows, strict=True) if rows else ((), (), ())
    events = NodeEvents.from_arrays(
        ["a", "b"],
        initial,
        np.array([parse_time_us(time) for time in times], np.int64),
        ["ab".index(name) for name in nodes],
        states,
        parse_time_us(start),
        parse_time_us(end),
        EventsMetadata(**metadata),
    )
    return characterise(events, zone).week


def cells(table):
    """``{(weekday, hour): value}`` of the cells that are not zero."""
    return {(day, hour): table[day][hour] for day in range(7) for hour in range(24) if table[day][hour]}


def test_a_cell_weighs_as_much_as_the_window_covers_of_it():
    rows = [("2024-07-01T08:45:00Z", "a", IDLE), ("2024-07-01T10:00:00Z", "b", IDLE)]
    week = week_of("2024-07-01T08:30:00Z", "2024-07-01T10:15:00Z", rows)
    assert week.time_zone == "UTC"
    assert cells(week.covered_us) == {(MONDAY, 8): HOUR // 2, (MONDAY, 9): HOUR, (MONDAY, 10): HOUR // 4}
    assert cells(week.node_us) == {(MONDAY, 8): HOUR // 4, (MONDAY, 9): HOUR, (MONDAY, 10): HOUR // 2}
    assert week.mean[MONDAY][8:12] == (0.5, 1.0, 2.0, None)
    assert week.by_hour[8:12] == (0.5, 1.0, 2.0, None)
    assert week.by_weekday == (1.0, None, None, None, None, None, None)  # 1.75 node-hours in 1.75 h


def test_the_same_hour_of_several_days_is_weighted_by_covered_time():
    # two Mondays: 10:00-11:00 idle on the first, 10:00-10:30 busy on the second, where the window ends
    week = week_of(
        "2024-07-01T10:00:00Z", "2024-07-08T10:30:00Z", [("2024-07-01T11:00:00Z", "a", BUSY)], initial=(IDLE, BUSY)
    )
    assert week.covered_us[MONDAY][10] == HOUR + HOUR // 2
    assert week.mean[MONDAY][10] == pytest.approx(1 / 1.5)
    assert week.by_hour[10] == pytest.approx(1 / 7.5)
    assert week.by_weekday[MONDAY] == pytest.approx(1 / (14 + 10.5))


def test_when_clocks_go_forward_an_hour_of_the_day_is_not_there():
    # Paris, Sunday 2024-03-31: 01:59:59 (UTC+1) is followed by 03:00:00 (UTC+2), at 01:00 UTC
    week = week_of("2024-03-31T00:00:00Z", "2024-03-31T02:30:00Z", initial=(IDLE, IDLE), zone="Europe/Paris")
    assert cells(week.covered_us) == {(SUNDAY, 1): HOUR, (SUNDAY, 3): HOUR, (SUNDAY, 4): HOUR // 2}
    assert week.mean[SUNDAY][1:5] == (2.0, None, 2.0, 2.0)


def test_when_clocks_go_back_an_hour_of_the_day_comes_twice():
    # Paris, Sunday 2024-10-27: 02:59:59 (UTC+2) is followed by 02:00:00 (UTC+1), at 01:00 UTC
    rows = [("2024-10-27T01:00:00Z", "a", IDLE), ("2024-10-27T02:00:00Z", "a", BUSY)]
    week = week_of("2024-10-26T22:00:00Z", "2024-10-27T23:00:00Z", rows, zone="Europe/Paris")
    assert sum(map(sum, week.covered_us)) == 25 * HOUR
    assert cells(week.covered_us) == {(SUNDAY, h): (2 if h == 2 else 1) * HOUR for h in range(24)}
    assert cells(week.node_us) == {(SUNDAY, 2): HOUR}  # the second of the two
    assert week.mean[SUNDAY][2] == 0.5
    assert week.by_weekday[SUNDAY] == 1 / 25


def test_a_change_of_the_clocks_by_half_an_hour_within_an_hour_is_followed():
    # Lord Howe, Sunday 2024-04-07: 01:59:59 (UTC+11) is followed by 01:30:00 (UTC+10:30), at 15:00 UTC the day before
    week = week_of("2024-04-06T14:00:00Z", "2024-04-06T16:00:00Z", initial=(IDLE, BUSY), zone="Australia/Lord_Howe")
    assert cells(week.covered_us) == {(SUNDAY, 1): HOUR + HOUR // 2, (SUNDAY, 2): HOUR // 2}
    assert week.node_us == week.covered_us


def test_hours_of_a_zone_that_is_off_by_half_an_hour_begin_there():
    # Kolkata is UTC+5:30: 20:00 UTC on Saturday is 01:30 on Sunday
    week = week_of("2024-06-29T18:15:00Z", "2024-06-29T20:00:00Z", zone="Asia/Kolkata")
    assert cells(week.covered_us) == {(SATURDAY, 23): HOUR // 4, (SUNDAY, 0): HOUR, (SUNDAY, 1): HOUR // 2}


def test_times_before_1970_have_their_weekday():
    week = week_of("1969-12-31T23:00:00Z", "1970-01-01T01:00:00Z")
    assert cells(week.covered_us) == {(2, 23): HOUR, (THURSDAY, 0): HOUR}


def test_the_zone_of_the_logs_source_is_the_default_where_it_is_known():
    paris = week_of("2024-07-01", "2024-07-02", source_timezone="Europe/Paris")
    assert (paris.time_zone, paris.unknown_zone) == ("Europe/Paris", None)
    assert paris.covered_us[1][0] == paris.covered_us[1][1] == HOUR
    assert paris.covered_us[1][2] == 0  # until 02:00 on Tuesday
    other = week_of("2024-07-01", "2024-07-02", source_timezone="Europe/Paris", zone="America/New_York")
    assert (other.time_zone, other.covered_us[SUNDAY][20]) == ("America/New_York", HOUR)


@pytest.mark.parametrize("name", ["local time of the site", "Europe", "../UTC", "", "/etc/localtime"])
def test_where_the_zone_of_the_source_is_not_known_it_is_utc_and_that_is_said(name):
    week = week_of("2024-07-01", "2024-07-02", source_timezone=name)
    assert (week.time_zone, week.unknown_zone) == ("UTC", name)
    assert week.to_dict()["unknown_time_zone"] == name
    with pytest.raises(InputError, match="unknown time zone") as refusal:
        week_of("2024-07-01", "2024-07-02", zone=name)
    assert "Europe/Paris" in str(refusal.value)


def test_a_log_with_relative_times_has_no_hour_of_the_day():
    assert week_of("1970-01-01", "1970-01-03", time_origin="relative", source_timezone="Europe/Paris") is None
    with pytest.raises(InputError, match="relative: it has no hour of the day"):
        week_of("1970-01-01", "1970-01-03", time_origin="relative", zone="Europe/Paris")


def test_as_json_what_is_not_covered_is_null():
    week = week_of("2024-07-01T08:30:00Z", "2024-07-01T10:00:00Z", initial=(IDLE, BUSY)).to_dict()
    assert week["weekdays"][0] == "Mon"
    assert week["mean_idle_nodes"][0][7:11] == [None, 1.0, 1.0, None]
    assert week["covered_h"][0][7:11] == [0.0, 0.5, 1.0, 0.0]
    assert week["by_hour"][7:10] == [None, 1.0, 1.0]
    assert week["by_weekday"] == [1.0, *[None] * 6]
