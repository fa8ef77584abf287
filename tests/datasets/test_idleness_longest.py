"""The longest idle interval of a node, against times worked out by hand."""

from __future__ import annotations

from bfreplay.datasets.idleness import characterise
from tests.datasets.small_logs import BUSY, DOWN, IDLE, SECOND, log

NODES = tuple("abcdefg")


def found(initial, rows, end=100):
    nodes = NODES[: len(initial)]
    idle_intervals = characterise(log(initial, rows, end=end, nodes=nodes)).longest_idle_intervals
    return [(each.node, each.start_us / SECOND, each.end_us / SECOND, each.censored) for each in idle_intervals]


def test_nodes_idle_from_edge_to_edge_come_first_and_then_the_three_with_the_longest_idle_intervals():
    rows = [
        (10, "c", IDLE),
        (20, "c", BUSY),
        (30, "c", IDLE),
        (60, "c", DOWN),  # 30 s, complete
        (40, "d", BUSY),  # 40 s, cut by the start
        (75, "e", IDLE),  # 25 s, cut by the end
        (80, "f", IDLE),
        (81, "f", BUSY),  # 1 s
    ]
    initial = [IDLE, BUSY, BUSY, IDLE, BUSY, BUSY, IDLE]
    assert found(initial, sorted(rows)) == [
        ("a", 0, 100, "both"),
        ("g", 0, 100, "both"),
        ("d", 0, 40, "start"),
        ("c", 30, 60, None),
        ("e", 75, 100, "end"),
    ]


def test_of_one_node_the_longest_counts_and_of_equals_the_first():
    rows = [(10, "a", IDLE), (20, "a", BUSY), (30, "a", IDLE), (40, "a", BUSY), (91, "a", IDLE)]
    assert found([BUSY], rows) == [("a", 10, 20, None)]
    assert found([BUSY], rows, end=110) == [("a", 91, 110, "end")]


def test_of_equal_idle_intervals_the_earliest_counts_and_then_the_order_of_the_nodes():
    rows = [(10, "d", IDLE), (15, "d", BUSY)]
    rows += [(20, name, IDLE) for name in "cba"] + [(25, name, BUSY) for name in "bca"]
    assert [node for node, *_ in found([BUSY] * 4, rows)] == ["d", "a", "b"]


def test_a_node_that_is_never_idle_or_only_at_the_very_end_has_no_idle_interval():
    assert found([BUSY, DOWN], [(100, "a", IDLE)]) == []


def test_a_break_at_the_end_of_the_window_is_seen():
    assert found([IDLE], [(100, "a", BUSY)]) == [("a", 0, 100, "start")]


def test_as_json_it_has_its_times_and_its_length():
    idleness = characterise(log([IDLE], [(1.5, "a", BUSY)], nodes=("a",)))
    assert idleness.to_dict()["longest_idle_intervals"] == [
        {
            "node": "a",
            "start": "1970-01-01T00:00:00Z",
            "end": "1970-01-01T00:00:01.500000Z",
            "length_s": 1.5,
            "censored": "start",
        }
    ]
