"""Idle intervals too short to be events, and the edges of the window."""

import pytest

from bfreplay.datasets.ingest.occupancy import spool, state_changes
from bfreplay.datasets.ingest.occupancy.build import build_events
from bfreplay.datasets.ingest.occupancy.findings import ROWS, SHORT_INTERVALS
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.occupancy.spool import JobSpool
from bfreplay.datasets.log.states import NodeState
from tests.datasets.ingest.occupancy.small_records import DAY, HOUR, S, listed, plain, rows_of, states_at_the_start

# ---- idle intervals
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("room", [1, 10_000])
def test_a_idle_interval_of_the_least_length_is_an_event_and_a_shorter_one_is_not(room, monkeypatch):
    monkeypatch.setattr(state_changes, "ROWS", room)
    record = listed([(0, 10 * S, "a"), (20 * S, 30 * S, "a"), (40 * S - 1, 60 * S, "a"), (0, 60 * S, "b")])
    built = build_events(record, plain(min_gap_s=10))
    rows = [row for row in rows_of(built.events) if row[0] < 60 * S]
    assert rows == [(10 * S, "a", NodeState.IDLE), (20 * S, "a", NodeState.BUSY)]
    fact = built.report.facts[SHORT_INTERVALS]
    assert (fact["count"], fact["shorter_than_s"]) == (1, 10)
    assert fact["node_hours"] == pytest.approx((10 * S - 1) / HOUR)


def test_a_short_idle_interval_before_another_state_passes_into_it_at_once():
    record = listed([(0, 10 * S, "a"), (0, 60 * S, "b")])
    record.add_outage(NodeState.DOWN, 13 * S, 20 * S, record.node_ids("a"))
    record.add_outage(NodeState.DOWN, 24 * S, 60 * S, record.node_ids("a"))
    rows = rows_of(build_events(record, plain(min_gap_s=5)).events)
    assert rows[0] == (13 * S, "a", NodeState.DOWN)
    assert {time for time, _, _ in rows[1:]} == {60 * S}


def test_short_idle_intervals_one_after_another_are_all_closed_over_many_pieces(monkeypatch):
    monkeypatch.setattr(state_changes, "ROWS", 1)
    monkeypatch.setattr(spool, "BLOCK_ROWS", 1)
    jobs = [(20 * i * S, (20 * i + (10 if i == 40 else 17)) * S, "a") for i in range(80)]
    record = listed([*jobs, (0, 1_600 * S, "b")], run_rows=3)
    built = build_events(record, plain(min_gap_s=5))
    assert [(time // S, node) for time, node, _ in rows_of(built.events)] == [
        (810, "a"),
        (820, "a"),
        (1597, "a"),
        (1600, "b"),
    ]
    assert built.report.facts[SHORT_INTERVALS]["count"] == 78


@pytest.mark.parametrize(
    ("window", "count", "seconds"),
    [((0, 60), 1, 6), ((12, 60), 1, 4), ((0, 14), 0, 0), ((0, 16), 1, 6), ((16, 60), 0, 0), ((17, 60), 0, 0)],
)
def test_a_short_idle_interval_is_counted_where_it_ends_with_its_time_in_the_window(window, count, seconds):
    record = listed([(0, 10 * S, "a"), (16 * S, 60 * S, "a"), (0, 60 * S, "b")])
    built = build_events(record, plain(min_gap_s=10, window=(window[0] * S, window[1] * S)))
    fact = built.report.facts.get(SHORT_INTERVALS, {"count": 0, "node_hours": 0.0})
    assert (fact["count"], fact["node_hours"] * 3600) == (count, pytest.approx(seconds))
    assert built.report.facts["node_hours"] == {"busy": pytest.approx(2 * (window[1] - window[0]) / 3600)}


# ---- the window -----------------------------------------------------------------------------------------------------


def test_a_change_at_the_start_of_the_window_is_its_first_state_and_one_at_its_end_is_a_row():
    record = listed([(0, 20 * S, "b"), (10 * S, 20 * S, "a"), (30 * S, 50 * S, "ab")])
    built = build_events(record, plain(window=(10 * S, 30 * S)))
    events = built.events
    assert built.report.facts[ROWS] == 4
    assert states_at_the_start(events) == {"a": NodeState.BUSY, "b": NodeState.BUSY}
    assert [(time // S, node) for time, node, _ in rows_of(events)] == [(20, "a"), (20, "b"), (30, "a"), (30, "b")]
    assert events.window_start_us == 10 * S


def test_a_node_left_out_brings_no_rows():
    record = listed([(0, 10 * S, "c"), (100 * DAY, 110 * DAY, "a"), (101 * DAY, 102 * DAY, "b")], inventory=())
    record.add_outage(NodeState.DOWN, 103 * DAY, 104 * DAY, record.node_ids("c"))
    built = build_events(record, plain(window=(100 * DAY, 105 * DAY), absent_after_s=30 * 86_400))
    assert built.events.nodes == ("a", "b")
    assert [node for _, node, _ in rows_of(built.events)] == ["b", "b"]
    assert built.report.facts["nodes skipped"].startswith("1 node that no job used within 30 days")


def test_twins_after_the_window_are_found_too(monkeypatch):
    monkeypatch.setattr(spool, "BLOCK_ROWS", 1)
    record = ScheduleRecord(spool=JobSpool(3))
    for start in range(0, 400, 40):
        record.add_job(7, start * S, (start + 5) * S, record.node_ids("a"))
        record.add_job(7, start * S, (start + 5) * S, record.node_ids("a"))
    built = build_events(record, plain(window=(0, 10 * S)))
    assert built.report.facts["runs that were read twice and count once"] == 10
