"""Number of nodes idle at once and its duration, against numbers worked out by hand."""

from __future__ import annotations

import pytest

from bfreplay.datasets.idleness import characterise
from bfreplay.datasets.idleness.quantiles import MEDIAN
from tests.datasets.small_logs import BUSY, IDLE, SECOND, log

NODES = ("a", "b", "c", "d", "e")


@pytest.fixture
def five_nodes():
    """100 s of five nodes; idle nodes: 1 from 0 s, 3 from 10 s, 2 from 30 s, 5 from 40 s, 0 from 60 s, 2 from 90 s.

    At 30 s d joins while b and c leave: two remain idle, one of them is another than before.
    """
    rows = [
        (10, "b", IDLE),
        (10, "c", IDLE),
        (30, "b", BUSY),
        (30, "c", BUSY),
        (30, "d", IDLE),
        (40, "b", IDLE),
        (40, "c", IDLE),
        (40, "e", IDLE),
        *((60, name, BUSY) for name in NODES),
        (90, "a", IDLE),
        (90, "b", IDLE),
    ]
    return characterise(log([IDLE, BUSY, BUSY, BUSY, BUSY], rows, nodes=NODES))


def test_there_is_a_width_for_each_power_of_two_up_to_the_machine(five_nodes):
    assert [each.nodes for each in five_nodes.widths] == [1, 2, 4]
    for n_nodes, widths in ((1, [1]), (2, [1, 2]), (3, [1, 2]), (4, [1, 2, 4])):
        idleness = characterise(log([BUSY] * n_nodes, [], nodes=NODES[:n_nodes]))
        assert [each.nodes for each in idleness.widths] == widths


def test_share_of_time_and_stretches_are_those_of_the_count_of_idle_nodes(five_nodes):
    one, two, four = five_nodes.widths
    # at least 1: 0-60 s and 90-100 s; at least 2: 10-60 s and 90-100 s; at least 4: 40-60 s
    assert (one.share_of_time, one.stretches, one.mean_s, one.median_s) == (0.7, 2, 35.0, 10.0)
    assert (two.share_of_time, two.stretches, two.mean_s, two.median_s) == (0.6, 2, 30.0, 10.0)
    assert (four.share_of_time, four.stretches, four.mean_s, four.median_s) == (0.2, 1, 20.0, 20.0)
    assert one.length_s == (10, 10, 10, 10, 60, 60, 60)
    assert one.length_s[MEDIAN] == one.median_s


def test_stretches_that_the_window_cuts_are_counted_with_the_length_seen(five_nodes):
    assert [each.censored for each in five_nodes.widths] == [2, 1, 0]  # 0-60 s and 90-100 s; 90-100 s; none
    all_idle = characterise(log([IDLE, IDLE, IDLE], []))
    assert [(each.stretches, each.censored, each.share_of_time, each.mean_s) for each in all_idle.widths] == [
        (1, 1, 1.0, 100.0),
        (1, 1, 1.0, 100.0),
    ]


def test_a_width_that_is_never_reached_has_no_stretch():
    idleness = characterise(log([BUSY, BUSY, BUSY], [(10, "a", IDLE)]))
    two = idleness.widths[1]
    assert (two.stretches, two.censored, two.time_us, two.share_of_time, two.mean_s, two.median_s) == (
        0,
        0,
        0,
        0.0,
        None,
        None,
    )
    assert two.to_dict() == {
        "nodes": 2,
        "share_of_time": 0.0,
        "stretches": 0,
        "censored_stretches": 0,
        "mean_stretch_s": None,
        "stretch_s": {},
    }


def test_what_changes_at_the_very_end_of_the_window_neither_makes_nor_cuts_a_stretch():
    begins = characterise(log([BUSY], [(100, "a", IDLE)], nodes=("a",))).widths[0]
    assert (begins.stretches, begins.censored) == (0, 0)
    ends = characterise(log([BUSY], [(50, "a", IDLE), (100, "a", BUSY)], nodes=("a",))).widths[0]
    assert (ends.stretches, ends.censored, ends.time_us) == (1, 0, 50 * SECOND)


def test_a_timeline_keeps_the_peak_and_the_trough_of_each_part(five_nodes):
    line = five_nodes.timeline
    assert len(line.least) == len(line.most) == len(line.node_us) == len(line.edges_us) - 1 == 1_000
    assert (line.edges_us[0], line.edges_us[-1]) == (0, 100 * SECOND)
    # parts of 0.1 s: the last before 10 s, the first after it, the last before 60 s, the first after it
    assert [(line.least[k], line.most[k], line.mean[k]) for k in (99, 100, 599, 600)] == [
        (1, 1, 1.0),
        (3, 3, 3.0),
        (5, 5, 5.0),
        (0, 0, 0.0),
    ]
    assert sum(line.node_us) == five_nodes.idle_node_us


def test_a_short_blink_within_one_part_of_a_timeline_is_seen():
    rows = [(50.01, "a", IDLE), (50.02, "b", IDLE), (50.03, "a", BUSY), (50.03, "b", BUSY)]
    line = characterise(log([BUSY, BUSY, BUSY], rows)).timeline
    assert (line.least[500], line.most[500], line.node_us[500]) == (0, 2, 30_000)
    assert line.mean[500] == 0.3
    assert sum(line.most) == 2


def test_a_window_of_few_microseconds_has_as_many_parts():
    line = characterise(log([IDLE, BUSY, BUSY], [(2e-6, "b", IDLE)], end=3e-6)).timeline
    assert (line.edges_us, line.least, line.most, line.node_us) == ((0, 1, 2, 3), (1, 1, 2), (1, 1, 2), (1, 1, 2))
