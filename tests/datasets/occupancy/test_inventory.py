"""Nodes that were not there."""

import pytest

from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.occupancy.build import build_events
from tests.datasets.occupancy.small_records import (
    DAY,
    listed,
    plain,
    rows_of,
)


def absent_log(first, last):
    """Node a all the time, day 0 to 100; node b from first to last."""
    return listed([(0, 100 * DAY, "a"), (first * DAY, last * DAY, "b")], inventory=())


@pytest.mark.parametrize(
    ("first", "last", "unknown", "idle"),
    [(0, 100, 0, 0), (7, 93, 0, 14), (8, 93, 8, 7), (7, 92, 8, 7), (8, 92, 16, 0), (99, 100, 99, 0)],
)
def test_a_node_is_absent_if_unused_for_longer_than_the_limit_at_an_edge(first, last, unknown, idle):
    built = build_events(absent_log(first, last), plain())
    hours = {"busy": 24.0 * (100 + last - first), "unknown": 24.0 * unknown, "idle": 24.0 * idle}
    assert built.lint.facts["node_hours"] == {word: hour for word, hour in hours.items() if hour}
    fact = built.lint.facts.get("nodes assumed absent")
    if not unknown:
        assert fact is None
    else:
        assert fact["node_hours"] == 24.0 * unknown
        assert fact["before their first job"] == (first > 7)
        assert fact["after their last job"] == (last < 93)


def test_absence_counts_inside_the_window_only():
    record = absent_log(50, 53)
    for window, nodes, unknown in (
        ((60, 80), ("a", "b"), 20),
        ((60.5, 80), ("a",), 0),
        ((30, 43), ("a", "b"), 13),
        ((30, 42.5), ("a",), 0),
        ((45, 80), ("a", "b"), 27),
    ):
        edges = int(window[0] * DAY), int(window[1] * DAY)
        built = build_events(record, plain(window=edges))
        assert built.events.nodes == nodes
        assert built.lint.facts["node_hours"].get("unknown", 0.0) == 24.0 * unknown
        assert built.lint.facts.get("nodes assumed absent", {"node_hours": 0.0})["node_hours"] == 24.0 * unknown


def test_a_node_is_there_until_it_is_released():
    record = absent_log(0, 50)
    built = build_events(record, plain(release_delay_s=86_400))
    assert built.lint.facts["node_hours"] == {"busy": 24.0 * 151, "unknown": 24.0 * 49}


def test_nodes_left_out_do_not_shift_those_that_are_kept():
    record = listed([(0, DAY, "a"), (100 * DAY, 110 * DAY, "c"), (100 * DAY, 105 * DAY, "b")], inventory=())
    record.add_outage(NodeState.DRAIN, 105 * DAY, 110 * DAY, record.node_ids("b"))
    built = build_events(record, plain(window=(100 * DAY, 110 * DAY)))
    assert built.events.nodes == ("b", "c")
    assert rows_of(built.events)[0] == (105 * DAY, "b", NodeState.DRAIN)
