"""Bursts by their size and by their share of the idle nodes, against numbers worked out by hand."""

from __future__ import annotations

import pytest

from bfreplay.datasets.idleness import characterise
from bfreplay.datasets.ingest.occupancy.report_text import render
from bfreplay.datasets.ingest.occupancy.rules import OccupancyRules
from bfreplay.datasets.ingest.read_log import read_log
from bfreplay.datasets.ingest.reader import ReadOptions
from tests.datasets.small_logs import BUSY, IDLE, log

NODES = tuple(f"n{i:02}" for i in range(20))
HALF_A_DAY = 43_200


@pytest.fixture
def bursts():
    """Half a day of 20 nodes, all idle at first; reclaims of 2 of 20, 4 of 18, 7 of 14, then joins of 1 (of 8) and 8.

    The last change reclaims one of the 16 idle nodes while another joins.
    """
    rows = [(100, name, BUSY) for name in NODES[:2]]
    rows += [(200, name, BUSY) for name in NODES[2:6]]
    rows += [(300, name, BUSY) for name in NODES[6:13]]
    rows += [(400, NODES[0], IDLE)]
    rows += [(500, name, IDLE) for name in NODES[1:9]]
    rows += [(600, NODES[0], BUSY), (600, NODES[9], IDLE)]
    return characterise(log([IDLE] * 20, rows, end=HALF_A_DAY, nodes=NODES))


def test_reclaims_are_measured_against_the_idle_nodes_right_before(bursts):
    # 2/20, 4/18, 7/14, 1/16
    large = {each.label: (each.count, each.nodes) for each in bursts.reclaim_bursts.large}
    assert large == {"1/10": (3, 13), "1/4": (1, 7), "1/2": (1, 7)}


def test_joins_are_measured_against_the_idle_nodes_right_after(bursts):
    # 1/8, 8/16, 1/16
    large = {each.label: (each.count, each.nodes) for each in bursts.join_bursts.large}
    assert large == {"1/10": (2, 9), "1/4": (1, 8), "1/2": (1, 8)}


def test_they_are_given_per_day_of_the_window(bursts):
    tenth = bursts.reclaim_bursts.large[0]
    assert tenth.per_day == 6.0
    assert tenth.mean_nodes == pytest.approx(13 / 3)
    assert bursts.reclaim_bursts.to_dict()["of_idle_nodes"][1] == {
        "at_least": "1/4",
        "share": 0.25,
        "events": 1,
        "per_day": 2.0,
        "mean_nodes": 7.0,
    }


def test_bursts_of_at_least_so_many_nodes_are_counted_for_each_power_of_two(bursts):
    assert bursts.reclaim_bursts.at_least == ((1, 4), (2, 3), (4, 2))  # of 2, 4, 7, 1 nodes
    assert bursts.join_bursts.at_least == ((1, 3), (2, 1), (4, 1), (8, 1))  # of 1, 8, 1
    assert bursts.join_bursts.to_dict()["at_least"][0] == {"nodes": 1, "events": 3}


def test_the_last_idle_nodes_go_as_a_whole():
    idleness = characterise(log([IDLE, BUSY, BUSY], [(10, "a", BUSY), (20, "b", IDLE)]))
    assert [each.count for each in idleness.reclaim_bursts.large] == [1, 1, 1]  # one of one
    assert [each.count for each in idleness.join_bursts.large] == [1, 1, 1]


def test_a_log_without_changes_has_no_bursts():
    idleness = characterise(log([IDLE, BUSY, BUSY], []))
    for of in (idleness.reclaim_bursts, idleness.join_bursts):
        assert (of.count, of.at_least, [each.count for each in of.large]) == (0, (), [0, 0, 0])
        assert {each.mean_nodes for each in of.large} == {0.0}


def test_reclaims_soon_after_others_are_counted_and_a_settle_time_is_advised():
    rows = [(10, "a", BUSY), (10.3, "b", BUSY), (10.4, "a", IDLE), (10.7, "c", BUSY)]
    idleness = characterise(log([IDLE, IDLE, IDLE], rows))
    # 10.3 is 0.3 s after 10, and 10.7 is 0.4 s after 10.3; the join is no reclaim
    assert (idleness.reclaim_bursts.soon, idleness.reclaim_bursts.count, idleness.join_bursts.soon) == (1, 3, 0)
    assert "33.3 % of the instants with reclaims follow another within 0.3 s" in " ".join(repr(idleness).split())
    assert "--settle 0.3 replays them as one" in " ".join(repr(idleness).split())
    assert idleness.reclaim_bursts.to_dict()["events_within_0.3_s_of_another"] == 1


def test_reclaims_far_apart_need_no_settle_time():
    idleness = characterise(log([IDLE, IDLE, IDLE], [(10, "a", BUSY), (10.300001, "b", BUSY)]))
    assert idleness.reclaim_bursts.soon == 0
    assert "--settle" not in repr(idleness)


@pytest.mark.parametrize(("fraction", "is_advised"), [(".2", True), (".0", False), (".6", False)])
def test_an_import_advises_a_settle_time_where_reclaims_would_be_charged_apart(tmp_path, fraction, is_advised):
    path = tmp_path / "jobs.csv"
    path.write_text(
        "start,end,nodes\n2024-01-01T00:00:00,2024-01-01T00:10:00,a b\n"
        f"2024-01-01T00:20:00,2024-01-01T00:30:00,a\n2024-01-01T00:20:00{fraction},2024-01-01T00:30:00,b\n"
    )
    schedule = read_log([path], "table", ReadOptions(timezone="UTC"))
    text = render(schedule.build(OccupancyRules(window="full")), "table")
    assert ("50 % of the instants with reclaims" in text) == is_advised
