"""Logs on which the import once was wrong, ended in a crash, or took too much memory."""

import numpy as np
import pytest

from bfreplay.datasets.ingest import hostlists
from bfreplay.datasets.ingest.hostlists import expand_nodes
from bfreplay.datasets.ingest.local_times import LocalClock, wall_clock_us, zone_of_name
from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy import spool
from bfreplay.datasets.ingest.occupancy.build import build_events
from bfreplay.datasets.ingest.occupancy.findings import EMPTY_MACHINE
from bfreplay.datasets.ingest.occupancy.rules import OccupancyRules
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.occupancy.spool import OPEN_END, JobSpool
from bfreplay.datasets.log.states import NodeState
from bfreplay.errors import InputError
from tests.datasets.ingest.occupancy.small_records import (
    DAY,
    HOUR,
    MIN,
    S,
    busy_nodes,
    counted,
    listed,
    plain,
    states_at_the_start,
    tally,
)
from tests.datasets.ingest.occupancy.test_window import T, logged, schedule, window_of


def test_a_delayed_job_without_an_end_runs_to_the_end_of_the_log():
    record = counted([(0, 10 * S, 3), (4 * S, None, 2), (30 * S, 60 * S, 1)])
    _, busy = busy_nodes(record, plain(oversubscription="delay", window=(0, 60 * S)))
    assert busy == [3] * 10 + [2] * 20 + [3] * 30


@pytest.mark.slow
def test_node_time_of_a_huge_machine_is_counted():
    record = counted([(T, T + 730 * DAY, 160_000)], 160_000)
    assert build_events(record, plain()).report.facts["node_hours"] == {"busy": 160_000 * 730 * 24.0}


def test_the_absence_of_many_nodes_is_counted():
    record = ScheduleRecord()
    record.add_job(1, T, T + 100 * DAY, record.node_ids(["z"]))
    record.add_job(2, T + 50 * DAY, T + 100 * DAY, record.node_ids(f"n{i}" for i in range(6_000)))
    fact = build_events(record, plain()).report.facts["nodes assumed absent"]
    assert fact["node_hours"] == 6_000 * 50 * 24.0


@pytest.mark.parametrize("n_outages", [1, 50])
def test_outages_do_not_change_how_long_the_machine_had_no_job(n_outages):
    record = listed([(0, 100 * S, "a"), (1_000 * S, 2_000 * S, "a")])
    for i in range(n_outages):
        record.add_outage(NodeState.DRAIN, (120 + 10 * i) * S, (125 + 10 * i) * S, record.node_ids("b"))
    assert build_events(record, plain()).report.facts[EMPTY_MACHINE]["share_of_window"] == pytest.approx(0.45)


def test_of_a_machine_without_known_jobs_nothing_is_said_of_how_long_it_had_none():
    record = ScheduleRecord()
    record.add_inventory("ab")
    for i in range(100):
        record.add_outage(NodeState.BUSY, i * MIN, i * MIN + 30 * S, record.node_ids("a"))
    assert EMPTY_MACHINE not in build_events(record, plain()).report.facts


@pytest.mark.parametrize("years", [24, -40])
def test_a_stray_date_decades_away_does_not_move_the_window_of_a_month(years):
    spans = schedule(30)
    usual = window_of(logged(spans))
    stray = T - years * 365 * DAY
    window = window_of(logged(spans, [(stray, stray + HOUR, 1)]))
    assert abs(window.start_us - usual.start_us) < DAY
    assert abs(window.end_us - usual.end_us) < DAY


def test_a_release_delay_is_no_sharing():
    jobs = [(i * 100 * S, (i + 1) * 100 * S, "a") for i in range(5)]
    rules = plain(release_delay_s=30, shared_nodes="refuse")
    assert build_events(listed(jobs), rules).report.facts["node_hours"]["busy"] == pytest.approx(500 / 3600)


def test_facts_do_not_depend_on_the_pieces_of_the_spool(monkeypatch):
    def told(block):
        monkeypatch.setattr(spool, "BLOCK_ROWS", block)
        jobs = [(i * HOUR, i * HOUR + 30 * MIN, "a") for i in range(100)]
        record = listed(jobs, run_rows=5)
        for i in range(50):
            record.add_job(f"open {i}", (50 + i) * HOUR, None, record.node_ids("b"))
        record.add_job("runaway", 90 * HOUR, None, record.node_ids("b"), limit_end_us=91 * HOUR)
        built = build_events(record, plain(window=(2 * HOUR, 10 * HOUR)))
        return {**built.report.facts}, {**built.report.warnings}

    assert told(2) == told(8_192)


@pytest.mark.parametrize(
    ("start_h", "window_h", "node_hours"),
    [(0, (20, 40), 20.0), (0, (1, 40), 37.0), (0, (0, 3), None), (50, (20, 40), None)],
)
def test_a_runaway_job_is_a_warning_about_all_of_the_window_after_its_assumed_end(start_h, window_h, node_hours):
    record = listed([(0, 1_000 * HOUR, "a")])
    record.add_job("open", start_h * HOUR, None, record.node_ids("b"), limit_end_us=(start_h + 2) * HOUR)
    start, end = window_h
    warning = tally(build_events(record, plain(window=(start * HOUR, end * HOUR), limit_grace_s=3_600)), "runaway")
    assert (None if warning is None else (warning.count, warning.node_hours)) == (
        None if node_hours is None else (1, node_hours)
    )


def test_jobs_that_wait_beyond_the_window_are_not_lost_without_a_word():
    jobs = [(0, 100 * S, 3), (4 * S, 20 * S, 2), (50 * S, 60 * S, 1)]
    built = build_events(counted(jobs), plain(oversubscription="delay"))
    assert sum(tally.count for tally in built.report.warnings.values()) == 2


def test_a_job_delayed_before_the_window_is_no_warning_about_it():
    jobs = [(0, 5 * HOUR, 2), (HOUR, 2 * HOUR, 1), (50 * HOUR, 60 * HOUR, 1)]
    built = build_events(counted(jobs, 2), plain(oversubscription="delay", window=(30 * HOUR, 60 * HOUR)))
    assert tally(built, "delayed") is None


def test_only_waiting_within_the_window_is_a_warning_about_it():
    jobs = [(0, 21 * HOUR, 4), (HOUR, 30 * HOUR, 4)]
    built = build_events(counted(jobs), plain(oversubscription="delay", window=(20 * HOUR, 30 * HOUR)))
    assert tally(built, "they were delayed").node_hours == 4.0


def test_a_planned_outage_does_not_move_the_end_of_the_log():
    record = listed([(0, 10 * DAY, "a")])
    record.add_job("running", 5 * DAY, None, record.node_ids("a"), limit_end_us=11 * DAY)
    record.add_outage(NodeState.RESERVED, 9 * DAY, 400 * DAY, record.node_ids("b"))
    built = build_events(record, plain())
    assert tally(built, "runaway") is None
    assert built.window.end_us == 10 * DAY


def test_nodes_that_only_old_outages_name_are_not_idle_for_ever():
    record = listed([(1_000 * DAY, 1_040 * DAY, "a"), (1_000 * DAY, 1_040 * DAY, "b")], inventory=())
    record.add_outage(NodeState.DOWN, DAY, 2 * DAY, record.node_ids(["old1", "old2"]))
    assert "idle" not in build_events(record, plain()).report.facts["node_hours"]


@pytest.mark.parametrize("known_end", [False, True])
def test_a_node_whose_last_job_never_ended_in_one_export_is_absent_after_its_end(known_end):
    record = listed([(0, 100 * DAY, "a")], inventory=())
    record.add_job("7", DAY, None, record.node_ids("b"), limit_end_us=2 * DAY - HOUR)
    if known_end:
        record.add_job("7", DAY, 2 * DAY, record.node_ids("b"))
    hours = build_events(record, plain()).report.facts["node_hours"]
    assert hours["unknown"] == pytest.approx(98 * 24.0, abs=1.0)


def test_a_window_of_less_than_a_second_is_a_window():
    jobs = [(i * 300, i * 300 + 600, 1) for i in range(3_000)]
    built = build_events(counted(jobs), OccupancyRules())
    assert 0 <= built.window.start_us < built.window.end_us <= 900_300


def test_coverage_of_no_length_is_refused():
    record = listed([(0, 10 * S, "a")])
    record.covers(5 * S, 5 * S, "one sample")
    with pytest.raises(InputError, match="the log covers no time"):
        build_events(record, OccupancyRules())


def test_an_empty_time_before_the_first_job_is_counted():
    record = listed([(30 * MIN, 60 * MIN, "a")])
    record.covers(0, 60 * MIN, "the log says so")
    fact = build_events(record, OccupancyRules(empty_machine="idle")).report.facts[EMPTY_MACHINE]
    assert fact["share_of_window"] == pytest.approx(0.5)


def test_a_job_left_out_does_not_shorten_the_time_without_jobs():
    record = counted([(0, HOUR, 1), (4 * HOUR, 5 * HOUR, 3), (8 * HOUR, 9 * HOUR, 1)], 2)
    built = build_events(record, plain(oversubscription="drop", empty_machine="down"))
    assert built.report.facts["node_hours"]["down"] == 14.0
    assert built.report.facts[EMPTY_MACHINE]["assumed_down_hours"] == 7.0


def test_the_time_after_a_job_that_was_left_out_is_looked_at_too():  # holds in eea77e4, fails in the tree of 17:54
    record = counted([(0, HOUR, 1), (HOUR + 30 * MIN, 5 * HOUR, 3), (11 * HOUR, 12 * HOUR, 1)], 2)
    built = build_events(record, plain(oversubscription="drop", empty_machine="down"))
    assert built.report.facts["node_hours"].get("down", 0.0) >= 19.0


def test_a_machine_left_idle_up_to_the_end_of_the_log_has_warning():  # fails in the tree of 17:54
    record = listed([(0, HOUR, "a"), (20 * HOUR, 20 * HOUR + 1, "a")])
    record.add_outage(NodeState.DRAIN, 0, HOUR, record.node_ids("b"))
    record.stamp(20 * HOUR + 2)
    warned = build_events(record, OccupancyRules(window="full"))
    assert tally(warned, "whole machine had no job") is not None
    record = listed([(0, HOUR, "a")])
    record.add_outage(NodeState.DRAIN, 0, HOUR, record.node_ids("b"))
    record.stamp(20 * HOUR)
    warned = build_events(record, OccupancyRules(window="full"))
    assert tally(warned, "whole machine had no job") is not None


def test_only_starts_inside_the_window_count_as_sharing():
    record = listed([(0, 10 * S, "a"), (5 * S, 40 * S, "a")])
    built = build_events(record, plain(window=(20 * S, 40 * S), shared_nodes="refuse"))
    assert states_at_the_start(built.events)["a"] == NodeState.BUSY


@pytest.mark.slow
def test_runs_of_wide_jobs_are_not_all_in_memory_at_once():
    jobs = JobSpool(1_000, 2_000)
    for i in range(5_000):
        jobs.add(i, i + 10, OPEN_END, i, 20, np.arange(20, dtype=np.int32))
    assert max(len(piece.nodes) for piece, _ in jobs.slices()) <= 3 * 2_000


def test_a_window_beyond_the_log_has_warning():
    record = listed([(10 * DAY, 20 * DAY, "a"), (15 * DAY, 30 * DAY, "b")])
    built = build_events(record, plain(window=(0, 100 * DAY)))
    assert built.report.warnings


@pytest.mark.parametrize("zone", ["America/Chicago", "Pacific/Honolulu", "Asia/Tokyo"])
@pytest.mark.parametrize("text", ["0001-01-01T00:00:00", "9999-12-31T23:59:59"])
def test_the_first_and_last_day_of_the_calendar_are_read_as_utc_in_every_zone(text, zone):
    time_us = wall_clock_us(text)  # in UTC it may lie in another year, which no calendar has
    assert LocalClock(zone_of_name(zone)).utc_us(time_us) == (time_us,)


@pytest.mark.parametrize(
    ("text", "n"),
    [("2010-03-14T00:00:30", 1), ("2010-03-14T00:05:00", 0), ("2010-11-06T23:05:00", 2), ("2010-11-07T00:05:00", 1)],
)
def test_clocks_that_change_a_minute_after_midnight_are_read_right(text, n):
    clock = LocalClock(zone_of_name("America/St_Johns"))
    assert len(clock.utc_us(wall_clock_us(text))) == n


def test_first_lines_are_those_of_the_file(tmp_path):
    path = tmp_path / "log"
    path.write_bytes("a\u2028b|c\x0bd\x1ee\n2\n".encode())
    assert LogFile(path).head_lines() == [line for _, line in LogFile(path).lines()]


@pytest.mark.parametrize("most", [1_000, pytest.param(hostlists.MOST_NODES, marks=pytest.mark.thorough)])
def test_a_list_of_many_parts_is_bounded_too(monkeypatch, most):
    monkeypatch.setattr(hostlists, "MOST_NODES", most)
    with pytest.raises(ValueError, match="more than"):
        expand_nodes(",".join(f"{letter}[1-{most * 2 // 5}]" for letter in "abc"))


def test_a_range_with_steps_is_as_long_as_its_names():
    assert len(expand_nodes("n[1-2000000/1000]")) == 2_000


@pytest.mark.parametrize("change", [{"job": 2**63}, {"limit_end_us": 2**70}])
def test_numbers_beyond_64_bits_are_no_crash(change):
    record = ScheduleRecord()
    record.add_inventory("a")
    record.add_job(**{"job": 1, "start_us": 0, "end_us": 10 * S, "nodes": record.node_ids("a"), **change})
    assert build_events(record, plain()).report.facts["node_hours"]["busy"] > 0


def test_a_machine_of_more_nodes_than_any_has_is_refused():
    with pytest.raises(InputError, match="so many nodes"):
        counted([(0, 10 * S, 1)], 10**11)


def test_a_window_in_which_no_node_was_there_says_so():
    record = listed([(0, DAY, "a"), (100 * DAY, 101 * DAY, "b")], inventory=())
    with pytest.raises(InputError, match="window"):
        build_events(record, plain(window=(50 * DAY, 60 * DAY)))


def test_truth_is_not_written_as_a_number():
    from bfreplay.datasets.ingest.occupancy.report_text import _text_of

    assert _text_of(True) == "yes"


def test_a_log_cut_before_its_end_has_no_window_beyond_it():
    record = counted([(i * DAY, i * DAY + S, 1) for i in range(10)])
    window = build_events(record, OccupancyRules(log_end_us=4 * DAY)).window
    assert window.end_us <= 4 * DAY


def test_a_log_of_finished_jobs_with_much_idle_time_at_its_end_has_a_warning_with_its_node_hours():
    jobs = [(0, DAY, ["a"]), (0, DAY // 2, ["b"]), (0, DAY // 4, ["c"])]  # b and c: 12 and 18 hours to the end
    found = tally(build_events(listed(jobs, "abc"), plain()), "no job that runs at its end")
    assert (found.count, found.node_hours) == (2, 30.0)
    running = listed(jobs, "abc")
    running.add_job("runs", DAY - HOUR, None, running.node_ids(["a"]))
    earlier = [(0, DAY, ["a"]), (0, DAY // 2, ["b"]), (0, DAY // 2, ["c"]), (DAY * 9 // 10, DAY, ["b", "c"])]
    short = [(start_us // 2, end_us // 2, nodes) for start_us, end_us, nodes in jobs]
    for record in (running, listed(earlier, "abc"), listed(short, "abc")):
        assert tally(build_events(record, plain()), "no job that runs at its end") is None
