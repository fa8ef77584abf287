"""Idle time in long idle intervals, against numbers worked out by hand."""

from __future__ import annotations

import pytest

from bfreplay.datasets.idleness import characterise
from bfreplay.datasets.idleness.idle_intervals import LONGER_THAN
from tests.datasets.small_logs import BUSY, IDLE, SECOND, log

NODES = ("a", "b", "c", "d")


@pytest.fixture
def idle_intervals():
    """Two hours of four nodes.

    a has idle intervals of exactly 10 min, and of 10 min and 1 s. b is idle for the first 20 min (cut), c for the last
    40 min (cut), d all the time (cut at both edges, 2 h seen).
    """
    rows = [
        (600, "a", IDLE),
        (1_200, "a", BUSY),
        (1_200, "b", BUSY),
        (1_800, "a", IDLE),
        (2_401, "a", BUSY),
        (4_800, "c", IDLE),
    ]
    return characterise(log([BUSY, IDLE, BUSY, IDLE], rows, end=7_200, nodes=NODES))


def test_a_idle_interval_of_exactly_that_length_is_not_longer(idle_intervals):
    rows = {each.label: (each.count, each.node_us // SECOND) for each in idle_intervals.longer_idle_intervals}
    idle_s = 600 + 601 + 1_200 + 2_400 + 7_200
    assert idle_intervals.idle_node_us == idle_s * SECOND
    assert rows["1 min"] == rows["5 min"] == (5, idle_s)
    assert rows["10 min"] == (4, idle_s - 600)
    assert rows["15 min"] == (3, 1_200 + 2_400 + 7_200)
    assert rows["30 min"] == (2, 2_400 + 7_200)
    assert rows["1 h"] == (1, 7_200)
    assert rows["2 h"] == rows["1 day"] == (0, 0)
    assert [(each.label, each.over_s) for each in idle_intervals.longer_idle_intervals] == list(LONGER_THAN)


def test_what_rests_on_cut_idle_intervals_is_said(idle_intervals):
    row = next(each for each in idle_intervals.longer_idle_intervals if each.label == "10 min")
    idle_s = 12_001
    assert (row.censored, row.censored_node_us) == (3, 10_800 * SECOND)
    assert row.censored_share == pytest.approx(10_800 / idle_s)
    assert row.share == pytest.approx(11_401 / idle_s)
    assert row.mean_nodes == pytest.approx(11_401 / 7_200)
    assert row.node_hours == pytest.approx(11_401 / 3_600)
    assert row.to_dict() == {
        "label": "10 min",
        "over_s": 600,
        "count": 4,
        "node_hours": row.node_hours,
        "share": row.share,
        "mean_nodes": row.mean_nodes,
        "censored": 3,
        "censored_share": row.censored_share,
    }


def test_fine_bins_hold_every_idle_interval_once_at_its_length_seen(idle_intervals):
    bins = idle_intervals.idle_interval_spectrum
    assert sum(bins.count) == 5
    assert sum(bins.node_us) == idle_intervals.idle_node_us
    spans = list(zip(bins.edges_us, bins.edges_us[1:], bins.count, bins.node_us, strict=False))
    # two bins a doubling: 512, 724, 1024, 1448, 2048, 2896, 4096, 5793, 8192 s
    assert [count for _, _, count, _ in spans] == [2, 0, 1, 0, 1, 0, 0, 1]
    for low, high, count, node_us in spans:
        assert low * count < node_us <= high * count or count == node_us == 0
        assert high / low == pytest.approx(2**0.5, rel=1e-6)


def test_the_edge_of_a_fine_bin_belongs_to_the_bin_below():
    rows = [
        (0.5, "a", IDLE),
        (1.5, "a", BUSY),
        (10, "a", IDLE),
        (12, "a", BUSY),
        (20, "a", IDLE),
        (22.000001, "a", BUSY),
    ]
    bins = characterise(log([BUSY], rows, nodes=("a",))).idle_interval_spectrum
    assert [edge / SECOND for edge in bins.edges_us] == pytest.approx([0, 1, 2**0.5, 2, 2**1.5], abs=1e-6)
    assert bins.count == (1, 0, 1, 1)  # 1 s, 2 s, and a microsecond more


def test_a_idle_interval_longer_than_all_bins_is_in_the_last():
    year = 365 * 86_400
    bins = characterise(log([IDLE], [], end=year, nodes=("a",))).idle_interval_spectrum
    assert (bins.count, bins.node_us, bins.edges_us[-1]) == ((1,), (year * SECOND,), year * SECOND)


def test_a_log_that_is_never_idle_has_rows_of_zeros_and_no_bins():
    idleness = characterise(log([BUSY, BUSY, BUSY], [], end=7_200))
    assert {
        (each.count, each.share, each.censored_share, each.mean_nodes) for each in idleness.longer_idle_intervals
    } == {(0, 0, 0, 0)}
    assert idleness.idle_interval_spectrum.edges_us == idleness.idle_interval_spectrum.count == ()


def test_a_log_that_is_all_idle_rests_on_cut_idle_intervals_alone():
    idleness = characterise(log([IDLE, IDLE, IDLE], [], end=7_200))
    row = next(each for each in idleness.longer_idle_intervals if each.label == "1 h")
    assert (row.share, row.censored_share, row.mean_nodes, row.censored) == (1.0, 1.0, 3.0, 3)


def test_a_node_idle_from_the_very_end_of_the_window_is_a_idle_interval_of_no_length():
    idleness = characterise(log([BUSY], [(100, "a", IDLE)], end=100, nodes=("a",)))
    assert (idleness.censored.open_at_end, idleness.censored.node_us) == (1, 0)
    assert sum(idleness.idle_interval_spectrum.count) == 0
