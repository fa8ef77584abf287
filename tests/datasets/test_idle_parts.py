"""Idle time by part: hand-worked, and against a plain computation; the parts add up to the whole, exactly."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest

import bfreplay
from bfreplay import NodeEvents, NodeState
from bfreplay.datasets.idleness.parts import BY, idle_parts
from bfreplay.datasets.idleness.parts_text import part_sentences, part_table
from bfreplay.datasets.log.metadata import EventsMetadata
from bfreplay.errors import InputError

S, HOUR = 1_000_000, 3_600_000_000
IDLE, BUSY, DOWN = NodeState.IDLE, NodeState.BUSY, NodeState.DOWN
PARTITIONS = {"batch": ["n0", "n1"], "gpu": ["n1", "n2"]}
TYPES = {"v100": ["n0", "n3"], "k80": ["n1", "n2"]}


def log_of(rows, start_us=0, end_us=100 * S, nodes=4, initial=BUSY, **metadata):
    """Log of n0, n1, ... with rows (time, node, state)."""
    time_us, node, state = zip(*rows, strict=True) if rows else ((), (), ())
    names = [f"n{number}" for number in range(nodes)]
    given = EventsMetadata(**{"partitions": PARTITIONS, "node_types": TYPES} | metadata)
    return NodeEvents.from_arrays(names, [initial] * nodes, time_us, node, state, start_us, end_us, given)


def small_log():
    """n0 idle 10-30 and 60-100, n1 20-50, n3 down, then idle 40-70: 120 idle node-seconds; n2 always busy."""
    rows = [(0, 3, DOWN), (10, 0, IDLE), (20, 1, IDLE), (30, 0, BUSY), (40, 3, IDLE)]
    rows += [(50, 1, BUSY), (60, 0, IDLE), (70, 3, DOWN)]
    return log_of([(time * S, node, state) for time, node, state in rows])


def test_nodes_are_grouped_by_their_set_of_partitions():
    idle = idle_parts(small_log(), "partition")
    assert [(part.name, part.n_nodes, part.idle_node_us // S) for part in idle.parts] == [
        ("batch", 1, 60), ("batch + gpu", 1, 30), ("no partition", 1, 30), ("gpu", 1, 0),
    ]  # fmt: skip
    assert [(part.idle_intervals, part.median_s, part.longest_s) for part in idle.parts] == [
        (2, 20.0, 40.0), (1, 30.0, 30.0), (1, 30.0, 30.0), (0, None, None),
    ]  # fmt: skip
    assert [part.unused for part in idle.parts] == [(), (), ("n3",), ()]
    assert idle.parts[0].idle_share == 0.6
    assert idle.parts[0].mean_idle_nodes == 0.6


def test_a_node_on_which_no_job_ran_is_named():
    rows = [(10 * S, 0, BUSY), (20 * S, 1, DOWN)]
    idle = idle_parts(log_of(rows, initial=IDLE), "type")
    assert {part.name: part.unused for part in idle.parts} == {"v100": ("n3",), "k80": ("n1", "n2")}
    assert part_sentences(idle)[1] == "No job ran on 3 nodes at any time: n1, n2, n3."
    assert part_table(idle).rows[-1][-1] == 3


def test_by_node_every_node_is_a_part_and_the_text_shows_the_first_ones():
    idle = idle_parts(small_log(), "node")
    assert [(part.name, part.idle_node_us // S) for part in idle.parts] == [
        ("n0", 60),
        ("n1", 30),
        ("n3", 30),
        ("n2", 0),
    ]
    table = part_table(idle, most=2)
    assert [row[0] for row in table.rows] == ["n0", "n1", "all"]
    assert table.caption == "Idle time by node, 2 more with --json"
    assert table.rows[-1][2] == 120 / 3600


def test_months_and_weekdays_are_those_of_the_zone_across_a_change_of_its_clocks():
    paris = ZoneInfo("Europe/Paris")

    def at(*date):
        return int(datetime(*date, tzinfo=paris).astimezone(UTC).timestamp()) * S

    # idle from Saturday noon over the change of the clocks in the night, to Monday 6:00
    rows = [(at(2024, 3, 30, 12), 0, IDLE), (at(2024, 4, 1, 6), 0, BUSY)]
    log = log_of(rows, at(2024, 3, 30), at(2024, 4, 2), source_timezone="Europe/Paris")
    by_month = idle_parts(log, "month")
    hours = [(part.name, part.idle_node_us / HOUR, part.node_us / HOUR) for part in by_month.parts]
    assert hours == [("2024-03", 12 + 23, 4 * (24 + 23)), ("2024-04", 6, 4 * 24)]
    assert [part.idle_intervals for part in by_month.parts] == [1, 0]
    assert by_month.time_zone == "Europe/Paris"
    by_weekday = idle_parts(log, "weekday")
    assert [(part.name, part.idle_node_us / HOUR) for part in by_weekday.parts] == [
        ("Mon", 6),
        ("Sat", 12),
        ("Sun", 23),
    ]
    in_utc = idle_parts(log, "month", "UTC")
    assert [(part.name, part.idle_node_us / HOUR) for part in in_utc.parts] == [
        ("2024-03", 13 + 24),
        ("2024-04", 4),
    ]
    assert part_sentences(by_month)[1].startswith("From 2024-03 to 2024-04, mean idle nodes went from 0.745 to 0.250 ")


def random_log(seed):
    rng = np.random.default_rng(seed)
    start_us, end_us = 1_717_000_000 * S, (1_717_000_000 + 40 * 86_400) * S
    rows, states = [], [BUSY] * 4
    for time_us in np.sort(rng.integers(start_us + 1, end_us, 300)).tolist():
        node = int(rng.integers(4))
        if not rows or time_us > rows[-1][0]:
            states[node] = IDLE if states[node] != IDLE else BUSY if rng.random() < 0.7 else DOWN
            rows.append((time_us, node, states[node]))
    return log_of(rows, start_us, end_us)


def plain_parts(log, by, zone):
    """(part -> idle microseconds, lengths of intervals) by walking over every interval and every midnight."""
    frame, idle_us, lengths = log.to_frame(), {}, {}
    type_of = {node: name for name, nodes in TYPES.items() for node in nodes}
    for node, of_node in frame.groupby("node", observed=True):
        times = [int(time.value) // 1000 for time in of_node["time"]] + [log.window_end_us]
        for state, begin_us, end_us in zip(of_node["state"], times, times[1:], strict=False):
            if state != "idle" or end_us == begin_us:
                continue
            first = True
            while begin_us < end_us:
                local = datetime.fromtimestamp(begin_us / S, zone)
                midnight = datetime(local.year, local.month, local.day, tzinfo=zone).timestamp()
                next_day = datetime.fromtimestamp(midnight + 26 * 3600, zone).date()
                until_us = int(datetime(next_day.year, next_day.month, next_day.day, tzinfo=zone).timestamp()) * S
                until_us = min(until_us, end_us)
                sets = " + ".join(sorted(name for name, nodes in PARTITIONS.items() if node in nodes)) or "no partition"
                name = {
                    "partition": sets,
                    "type": type_of[node],
                    "node": node,
                    "month": f"{local:%Y-%m}",
                    "weekday": f"{local:%a}",
                }[by]
                idle_us[name] = idle_us.get(name, 0) + until_us - begin_us
                if first:
                    lengths.setdefault(name, []).append(end_us - begin_us)
                begin_us, first = until_us, False
    return idle_us, lengths


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("seed", range(4))
def test_parts_are_those_of_a_plain_computation_and_add_up_to_the_whole(by, seed):
    log, zone = random_log(seed), ZoneInfo("America/New_York")
    idle = idle_parts(log, by, "America/New_York" if by in ("month", "weekday") else None)
    expected, lengths = plain_parts(log, by, zone)
    assert {part.name: part.idle_node_us for part in idle.parts if part.idle_node_us} == expected
    assert {part.name: part.idle_intervals for part in idle.parts if part.idle_intervals} == {
        name: len(of_part) for name, of_part in lengths.items()
    }
    for part in idle.parts:
        of_part = sorted(lengths.get(part.name, []))
        assert part.longest_s == (of_part[-1] / S if of_part else None)
        if by != "node":
            assert part.median_s == (of_part[(len(of_part) - 1) // 2] / S if of_part else None)
    whole = bfreplay.describe(log)
    assert sum(part.idle_node_us for part in idle.parts) == whole.idle_node_us
    assert sum(part.node_us for part in idle.parts) == 4 * (log.window_end_us - log.window_start_us)


def test_what_the_log_does_not_have_is_refused_with_the_fix():
    log = log_of([], node_types={}, partitions={})
    with pytest.raises(InputError, match=r"does not say which partition.*\n.*\n.*\n.*\n.*--units FILE, a table"):
        idle_parts(log, "partition")
    with pytest.raises(InputError, match="does not say which type"):
        idle_parts(log, "type")
    with pytest.raises(InputError, match="its times are relative"):
        idle_parts(log_of([], time_origin="relative"), "month")
    with pytest.raises(InputError, match="by"):
        idle_parts(log, "rack")


def test_describe_shows_the_parts_first_and_json_has_all_of_them():
    described = bfreplay.describe(small_log(), by="partition")
    first = str(described).splitlines()[0]
    assert first.startswith("By partition, the nodes in batch have the largest share of the idle time: 50 %, 0.0167 of")
    parts = described.to_dict()["parts"]
    assert parts["by"] == "partition"
    assert [part["idle_node_us"] for part in parts["parts"]] == [60 * S, 30 * S, 30 * S, 0]
    assert "parts" not in bfreplay.describe(small_log()).to_dict()


def test_a_log_without_idle_time_has_no_sentence_about_it():
    assert part_sentences(idle_parts(log_of([]), "node")) == []
    assert str(bfreplay.describe(log_of([]), by="node")).startswith("None of 4 nodes is idle")


@pytest.mark.parametrize(
    ("zone", "start", "hours", "expected"),
    [
        # Samoa had no 30th of December 2011: Thursday is followed by Saturday
        ("Pacific/Apia", "2011-12-29T15:00", 34, [("Thu", 19), ("Sat", 15)]),
        # in St John's the clock went from 00:01 back to 23:01 of the day before
        ("America/St_Johns", "2010-11-07T02:45", 24, [("Sat", 0), ("Sun", 24)]),
        # in Havana the 10th of March 2013 began at 01:00
        ("America/Havana", "2013-03-10T00:00", 24, [("Sat", 5), ("Sun", 19)]),
    ],
)
def test_days_that_clocks_skip_or_repeat_have_the_time_that_they_had(zone, start, hours, expected):
    start_us = int(datetime.fromisoformat(f"{start}+00:00").timestamp()) * S
    log = log_of([], start_us, start_us + hours * HOUR, initial=IDLE)
    parts = {part.name: part.idle_node_us / (4 * HOUR) for part in idle_parts(log, "weekday", zone).parts}
    assert sum(parts.values()) == hours
    assert all(idle_h > 0 for idle_h in parts.values())
    for name, idle_h in expected:
        assert abs(parts.get(name, 0) - idle_h) < 1, parts


def test_the_last_month_of_the_calendar_ends_with_it():
    end_us = int(datetime(9999, 12, 31, tzinfo=UTC).timestamp()) * S
    log = log_of([], end_us - 24 * HOUR, end_us, initial=IDLE)
    assert [part.name for part in idle_parts(log, "month", "UTC").parts] == ["9999-12"]


def test_names_of_partitions_that_could_be_taken_for_others_are_quoted():
    partitions = {"a + b": ["n0"], "a": ["n1", "n1"], "b": ["n1"], "no partition": ["n2"]}
    idle = idle_parts(log_of([], initial=IDLE, partitions=partitions), "partition")
    assert [part.name for part in idle.parts] == ["'a + b'", "'no partition'", "a + b", "no partition"]


def test_a_partition_with_a_node_that_the_log_does_not_have_is_refused():
    with pytest.raises(InputError, match="node 'n9' of partition 'gpu' is not in the log"):
        log_of([], partitions={"gpu": ["n0", "n9"]})
