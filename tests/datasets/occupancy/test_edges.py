from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.occupancy import spool, sweep
from bfreplay.datasets.occupancy.build import build_events
from bfreplay.datasets.occupancy.findings import EMPTY_MACHINE, ROWS, SHORT_HOLES
from bfreplay.datasets.occupancy.node_use import node_use
from bfreplay.datasets.occupancy.record import MISMATCH, MOST_NODES, ScheduleRecord, job_key, machine_nodes
from bfreplay.datasets.occupancy.rules import ASSIGNMENTS, OVER_CAPACITY, OccupancyRules
from bfreplay.datasets.occupancy.spool import OPEN_END, JobSpool
from bfreplay.errors import InputError
from tests.datasets.occupancy.by_the_second import Held, events_by_the_second

S = 10**6
MIN, HOUR, DAY = 60 * S, 3_600 * S, 86_400 * S
SHARED = "starts on a node that is in use (shared nodes)"


def counted(jobs, n_nodes=4, run_rows=10_000):
    """A log of counts: start, end, nodes."""
    record = ScheduleRecord(spool=JobSpool(run_rows))
    record.set_machine_size(n_nodes)
    for i, (start_us, end_us, count) in enumerate(jobs):
        record.add_job(i, start_us, end_us, None, count)
    return record


def listed(jobs, inventory=("a", "b"), run_rows=10_000):
    """A log of names: start, end, nodes. No inventory: only those that jobs used are known."""
    record = ScheduleRecord(spool=JobSpool(run_rows))
    if inventory:
        record.add_inventory(inventory)
    for i, (start_us, end_us, nodes) in enumerate(jobs):
        record.add_job(i, start_us, end_us, record.node_ids(nodes))
    return record


def plain(**changes):
    return OccupancyRules(**{"window": "full", "min_gap_s": 0, "empty_machine": "idle", **changes})


def rows_of(events):
    """Changes of states after the snapshot at the start of the window."""
    return [
        (int(time), events.nodes[node], int(state))
        for batch in events.batches()
        for time, node, state in zip(batch.time_us, batch.node, batch.state, strict=True)
        if time > events.window_start_us
    ]


def states_at_the_start(events):
    return {node: line[0] for node, line in events_by_the_second(events).items()}


def busy_nodes(record, rules):
    built = build_events(record, rules)
    found = events_by_the_second(built.events)
    return built, [sum(state == NodeState.BUSY for state in second) for second in zip(*found.values(), strict=True)]


def tally(built, words):
    found = [tally for sentence, tally in built.lint.doubts.items() if words in sentence]
    assert len(found) <= 1
    return found[0] if found else None


# ---- jobs that have to wait --------------------------------------------------------------------------------------


def test_a_delayed_job_begins_when_exactly_enough_nodes_are_free():
    record = counted([(0, 10 * S, 2), (5 * S, 8 * S, 4), (20 * S, 21 * S, 1)])
    _, busy = busy_nodes(record, plain(over_capacity="delay"))
    assert busy == [2] * 10 + [4] * 3 + [0] * 7 + [1]


def test_nobody_overtakes_a_delayed_job():
    record = counted([(0, 10 * S, 3), (4 * S, 6 * S, 2), (5 * S, 9 * S, 1), (30 * S, 31 * S, 1)])
    built, busy = busy_nodes(record, plain(over_capacity="delay"))
    assert busy == [3] * 10 + [3] * 2 + [1] * 2 + [0] * 16 + [1]
    doubt = tally(built, "they were delayed")
    assert doubt.count == 2
    assert doubt.examples[0].value == "0.00 hours on average"


def test_the_delay_is_said_in_hours():
    record = counted([(0, 4 * HOUR, 4), (HOUR, 2 * HOUR, 4), (6 * HOUR, 7 * HOUR, 1)])
    built = build_events(record, plain(over_capacity="delay"))
    assert tally(built, "they were delayed").examples[0].value == "3.00 hours on average"


@pytest.mark.parametrize("rule", ["drop", "delay"])
def test_a_job_wider_than_the_machine_is_left_out(rule):
    record = counted([(0, 10 * S, 5), (0, 20 * S, 4)])
    built, busy = busy_nodes(record, plain(over_capacity=rule))
    assert busy == [4] * 20
    assert tally(built, "they were left out").count == 1


def test_a_wider_job_is_clipped_to_the_machine():
    record = counted([(0, 2 * HOUR, 7), (3 * HOUR, 4 * HOUR, 1)])
    built = build_events(record, plain())
    doubt = tally(built, "those that were")
    assert (doubt.count, doubt.examples[0].value) == (1, "6.0 node-hours missing")
    assert built.lint.facts["node_hours"] == {"busy": 9.0, "idle": 7.0}


def test_a_dropped_job_is_missing_with_all_its_nodes():
    record = counted([(0, 10 * HOUR, 3), (HOUR, 6 * HOUR, 2)])
    built = build_events(record, plain(over_capacity="drop"))
    doubt = tally(built, "they were left out")
    assert (doubt.count, doubt.examples[0].value) == (1, "10.0 node-hours missing")


@pytest.mark.parametrize("rule", OVER_CAPACITY)
def test_what_did_not_fit_counts_only_inside_the_window(rule):
    jobs = [(0, 10 * HOUR, 4), (20 * HOUR, 30 * HOUR, 4), (39 * HOUR, 40 * HOUR, 1)]
    late = (22 * HOUR, 23 * HOUR, 1)
    whole = build_events(counted([*jobs, late]), plain(over_capacity=rule))
    assert tally(whole, "jobs needed more nodes").count == 1
    before = build_events(counted([*jobs, late]), plain(over_capacity=rule, window=(0, 15 * HOUR)))
    assert tally(before, "jobs needed more nodes") is None
    if rule != "delay":
        after = build_events(counted([*jobs, (2 * HOUR, 3 * HOUR, 1)]), plain(window=(12 * HOUR, 25 * HOUR)))
        assert tally(after, "jobs needed more nodes") is None


def test_node_hours_that_are_missing_are_those_inside_the_window():
    record = counted([(0, 20 * HOUR, 4), (0, 20 * HOUR, 2)])
    built = build_events(record, plain(over_capacity="drop", window=(5 * HOUR, 10 * HOUR)))
    assert tally(built, "they were left out").examples[0].value == "10.0 node-hours missing"


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_jobs_wait_across_the_pieces_of_a_long_log(assignment, monkeypatch):
    jobs = [(i * S, (i + 3) * S, 1 + i % 3) for i in range(60)]

    def busy(run_rows, block):
        monkeypatch.setattr(spool, "BLOCK_ROWS", block)
        record = counted(jobs, run_rows=run_rows)
        return busy_nodes(record, plain(assignment=assignment, over_capacity="delay", window=(0, 200 * S)))[1]

    whole = busy(10_000, 10_000)
    assert sum(whole) == sum(3 * count for _, _, count in jobs)
    assert busy(5, 1) == whole


def test_a_job_that_lists_its_nodes_never_waits():
    record = ScheduleRecord()
    record.add_inventory("ab")
    record.add_job(1, 0, 10 * S, record.node_ids("a"))
    record.add_job(2, 0, 10 * S, record.node_ids("b"))
    record.add_job(3, 5 * S, 20 * S, record.node_ids("a"), 2)
    built, busy = busy_nodes(record, plain(over_capacity="delay"))
    assert busy == [2] * 10 + [1] * 10
    assert tally(built, "those that were").count == 1


# ---- room for what happens at one time ---------------------------------------------------------------------------

times = st.tuples(st.integers(0, 12), st.integers(1, 20))
names = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=6, unique=True).map(tuple)
held = st.builds(lambda t, nodes: Held(t[0], t[0] + t[1], nodes), times, names)
out = st.builds(lambda t, nodes: Held(t[0], t[0] + t[1], nodes, NodeState.DRAIN), times, names)


@given(
    st.lists(held, max_size=20), st.lists(out, max_size=20), st.lists(st.tuples(times, st.integers(1, 6)), min_size=1),
    st.sampled_from(ASSIGNMENTS), st.sampled_from(OVER_CAPACITY), st.sampled_from([0, 2, 30]),
)  # fmt: skip
def test_rows_do_not_depend_on_how_much_room_there_was(jobs, outages, counts, assignment, over_capacity, min_gap):
    def rows(run_rows, room, block):
        record = ScheduleRecord(spool=JobSpool(run_rows))
        record.add_inventory("abcdef")
        for i, job in enumerate(jobs):
            record.add_job(f"listed {i}", job.start * S, job.end * S, record.node_ids(job.nodes))
        for i, ((start, length), count) in enumerate(counts):
            record.add_job(f"counted {i}", start * S, (start + length) * S, None, count)
        for outage in outages:
            record.add_outage(outage.state, outage.start * S, outage.end * S, record.node_ids(outage.nodes))
        rules = plain(assignment=assignment, over_capacity=over_capacity, min_gap_s=min_gap)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(sweep, "FIRST_SLOTS", room)
            patched.setattr(sweep, "ROWS", room)
            patched.setattr(spool, "BLOCK_ROWS", block)
            return rows_of(build_events(record, rules).events)

    whole = rows(10_000, 10_000, 10_000)
    assert rows(10_000, 1, 1) == whole
    if assignment != "random":  # which draws by the piece
        assert rows(3, 1, 2) == whole


def test_rows_of_one_time_are_in_order_of_nodes():
    record = listed([(0, 20 * S, "dacb"), (10 * S, 15 * S, "d")], inventory="dbca")
    record.add_outage(NodeState.DOWN, 5 * S, 9 * S, record.node_ids("cdab"))
    rows = rows_of(build_events(record, plain()).events)
    assert [(time // S, node) for time, node, _ in rows[:8]] == [(t, node) for t in (5, 9) for node in "abcd"]


def test_thousands_of_outages_at_one_time_find_room():
    record = listed([(0, 10 * S, "a"), (0, 100 * S, "b")])
    for i in range(3_000):
        record.add_outage(NodeState.DRAIN, 20 * S, (21 + i % 50) * S, record.node_ids("a"))
    line = events_by_the_second(build_events(record, plain()).events)["a"]
    assert line == [NodeState.BUSY] * 10 + [NodeState.IDLE] * 10 + [NodeState.DRAIN] * 50 + [NodeState.IDLE] * 30


def test_most_recently_used_and_least_recently_used_begin_with_the_lowest_node():
    for assignment in ("lowest-id", "most-recently-used", "least-recently-used"):
        events = build_events(counted([(0, 10 * S, 2), (0, 30 * S, 1)]), plain(assignment=assignment)).events
        found = events_by_the_second(events)
        assert [node for node, line in found.items() if line[0] == NodeState.BUSY] == ["n0001", "n0002", "n0003"]


# ---- a machine without jobs --------------------------------------------------------------------------------------


def down_rules(**changes):
    return plain(empty_machine="down", empty_after_s=3_600, **changes)


@pytest.mark.parametrize("run_rows", [4, 10_000])
@pytest.mark.parametrize(("gap_us", "is_down"), [(HOUR, False), (HOUR + S, True)])
def test_a_machine_is_down_only_if_it_is_empty_for_longer_than_the_limit(gap_us, is_down, run_rows, monkeypatch):
    monkeypatch.setattr(spool, "BLOCK_ROWS", 1)  # a piece for each start
    jobs = [
        (0, 90 * S, "a"),
        (50 * S, 100 * S, "a"),
        (100 * S + gap_us, 20 * HOUR, "b"),
        (20 * HOUR, 21 * HOUR, "b"),
    ]
    built = build_events(listed(jobs, run_rows=run_rows), down_rules())
    hours = built.lint.facts["node_hours"]
    assert hours.get("down", 0.0) == (2 * gap_us / HOUR if is_down else 0.0)
    fact = built.lint.facts[EMPTY_MACHINE]
    assert fact["assumed_down_periods"] == is_down
    assert fact["assumed_down_hours"] == (gap_us / HOUR if is_down else 0.0)
    assert fact["share_of_window"] == pytest.approx(gap_us / (21 * HOUR))
    assert fact["longer_than_min"] == 60.0


@pytest.mark.parametrize(
    ("window", "share", "periods", "hours"),
    [
        ((0, 10), 0.6, 1, 6.0),
        ((3, 8), 4 / 5, 1, 4.0),
        ((2, 6), 1.0, 1, 4.0),
        ((8, 10), 0.0, 0, 0.0),
        ((7, 8), 0.0, 0, 0.0),
        ((0, 1), 0.0, 0, 0.0),
    ],
)
def test_what_is_assumed_down_counts_inside_the_window(window, share, periods, hours):
    record = listed([(0, HOUR, "a"), (7 * HOUR, 10 * HOUR, "b")])
    fact = build_events(record, down_rules(window=(window[0] * HOUR, window[1] * HOUR))).lint.facts[EMPTY_MACHINE]
    assert fact["share_of_window"] == pytest.approx(share)
    assert (fact["assumed_down_periods"], fact["assumed_down_hours"]) == (periods, hours)


@pytest.mark.parametrize(("minutes", "state"), [(30, "idle"), (60, "idle"), (61, "down")])
def test_the_time_after_the_last_job_counts_up_to_the_end_of_the_log(minutes, state):
    record = listed([(0, HOUR, "ab")])
    record.stamp(HOUR + minutes * MIN)
    hours = build_events(record, down_rules()).lint.facts["node_hours"]
    assert hours == {"busy": 2.0, state: pytest.approx(2 * minutes / 60)}


@pytest.mark.parametrize(("minutes", "state"), [(60, "idle"), (61, "down")])
def test_the_time_before_the_first_job_counts_from_the_start_of_the_window(minutes, state):
    record = listed([(minutes * MIN, 5 * HOUR, "ab")])
    record.covers(0, 5 * HOUR, "the log says so")
    built = build_events(record, OccupancyRules(min_gap_s=0, empty_machine="down"))
    assert built.window.why == "the log says so"
    assert built.lint.facts["node_hours"][state] == pytest.approx(2 * minutes / 60)
    fact = built.lint.facts[EMPTY_MACHINE]
    assert fact["assumed_down_periods"] == (state == "down")
    assert fact["assumed_down_hours"] == pytest.approx(minutes / 60 if state == "down" else 0.0)


def test_an_empty_start_longer_than_the_window_is_down_all_through_it():
    record = listed([(9 * HOUR, 10 * HOUR, "a")])
    record.covers(0, 10 * HOUR, "the log says so")
    built = build_events(record, down_rules(window=(HOUR, 5 * HOUR)))
    assert built.lint.facts["node_hours"] == {"down": 8.0}
    assert built.lint.facts[EMPTY_MACHINE]["assumed_down_hours"] == 4.0
    assert built.lint.facts[EMPTY_MACHINE]["share_of_window"] == 1.0


def test_a_window_beyond_the_log_shows_a_machine_that_is_assumed_down():
    built = build_events(listed([(0, HOUR, "ab")]), down_rules(window=(0, 10 * HOUR)))
    assert built.lint.facts["node_hours"] == {"busy": 2.0, "down": 18.0}
    assert built.lint.facts[EMPTY_MACHINE]["assumed_down_hours"] == 9.0


def test_a_machine_on_which_a_job_waits_is_not_empty():
    record = counted([(0, HOUR, 1), (4 * HOUR, 5 * HOUR, 1)], 2)
    record.add_outage(NodeState.DRAIN, 0, 3 * HOUR, None)
    built = build_events(record, down_rules(over_capacity="delay"))
    assert built.lint.facts["node_hours"] == {"drain": 6.0, "busy": 2.0, "idle": 2.0}
    assert built.lint.facts[EMPTY_MACHINE]["assumed_down_periods"] == 0
    assert built.lint.facts[EMPTY_MACHINE]["share_of_window"] == 0.0


def test_a_machine_of_which_nodes_were_seen_in_use_is_not_assumed_down():
    record = ScheduleRecord()
    record.add_inventory("ab")
    record.add_outage(NodeState.BUSY, 0, HOUR, record.node_ids("a"))
    record.add_outage(NodeState.BUSY, 9 * HOUR, 10 * HOUR, record.node_ids("a"))
    built = build_events(record, down_rules())
    assert built.lint.facts["node_hours"] == {"busy": 2.0, "idle": 18.0}


# ---- outages -----------------------------------------------------------------------------------------------------


def test_an_outage_may_begin_before_the_log_and_never_end():
    record = listed([(10 * DAY, 11 * DAY, "a"), (12 * DAY, 13 * DAY, "a")])
    record.add_outage(NodeState.DOWN, DAY, None, record.node_ids("b"))
    record.add_outage(NodeState.OFF, 2 * DAY, 10 * DAY + HOUR, record.node_ids("a"))
    built = build_events(record, plain())
    assert built.window.start_us == 10 * DAY
    assert built.lint.facts["node_hours"] == {"idle": 24.0, "busy": 47.0, "down": 72.0, "off": 1.0}


def test_outages_in_any_order_and_over_one_another_give_the_same_rows():
    spans = [(3, 9), (1, 4), (1, 20), (4, 5), (8, 10)]

    def rows(order):
        record = listed([(0, 30 * S, "b"), (2 * S, 6 * S, "a")])
        for i in order:
            start, end = spans[i]
            record.add_outage(NodeState.RESERVED, start * S, end * S, record.node_ids("a"))
        return rows_of(build_events(record, plain()).events)

    assert rows([4, 2, 0, 1, 3]) == rows([0, 1, 2, 3, 4])
    assert [time // S for time, node, _ in rows(range(5)) if node == "a" and time] == [1, 2, 6, 20]


def test_a_log_of_outages_alone_is_refused():
    record = ScheduleRecord()
    record.add_inventory("ab")
    record.add_outage(NodeState.DOWN, 0, HOUR, record.node_ids("a"))
    with pytest.raises(InputError, match="no job in this log ever held a node") as caught:
        build_events(record)
    assert "outages alone" in caught.value.fix


def test_an_empty_log_is_refused():
    with pytest.raises(InputError, match="no rows at all"):
        build_events(ScheduleRecord())


def test_the_refusal_names_the_commonest_reasons_only():
    record = ScheduleRecord()
    for n, reason in enumerate(("pending", "a step", "never started", "no length"), start=1):
        record.lint.drop(reason, n=n)
    with pytest.raises(InputError) as caught:
        build_events(record)
    assert "no length: 4; never started: 3; a step: 2)" in str(caught.value)


def test_nodes_in_use_by_unknown_jobs_are_busy_but_weaker_than_down():
    record = listed([(0, 40 * S, "b")])
    record.add_outage(NodeState.BUSY, 0, 30 * S, record.node_ids("a"))
    record.add_outage(NodeState.DRAIN, 10 * S, 20 * S, record.node_ids("a"))
    record.add_outage(NodeState.DOWN, 25 * S, 35 * S, record.node_ids("a"))
    line = events_by_the_second(build_events(record, plain()).events)["a"]
    assert line == [NodeState.BUSY] * 25 + [NodeState.DOWN] * 10 + [NodeState.IDLE] * 5


# ---- holes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("room", [1, 10_000])
def test_a_hole_of_the_least_length_is_an_event_and_a_shorter_one_is_not(room, monkeypatch):
    monkeypatch.setattr(sweep, "ROWS", room)
    record = listed([(0, 10 * S, "a"), (20 * S, 30 * S, "a"), (40 * S - 1, 60 * S, "a"), (0, 60 * S, "b")])
    built = build_events(record, plain(min_gap_s=10))
    rows = [row for row in rows_of(built.events) if row[0] < 60 * S]
    assert rows == [(10 * S, "a", NodeState.IDLE), (20 * S, "a", NodeState.BUSY)]
    fact = built.lint.facts[SHORT_HOLES]
    assert (fact["count"], fact["shorter_than_s"]) == (1, 10)
    assert fact["node_hours"] == pytest.approx((10 * S - 1) / HOUR)


def test_a_short_hole_before_another_state_passes_into_it_at_once():
    record = listed([(0, 10 * S, "a"), (0, 60 * S, "b")])
    record.add_outage(NodeState.DOWN, 13 * S, 20 * S, record.node_ids("a"))
    record.add_outage(NodeState.DOWN, 24 * S, 60 * S, record.node_ids("a"))
    rows = rows_of(build_events(record, plain(min_gap_s=5)).events)
    assert rows[0] == (13 * S, "a", NodeState.DOWN)
    assert {time for time, _, _ in rows[1:]} == {60 * S}


def test_short_holes_one_after_another_are_all_closed_over_many_pieces(monkeypatch):
    monkeypatch.setattr(sweep, "ROWS", 1)
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
    assert built.lint.facts[SHORT_HOLES]["count"] == 78


@pytest.mark.parametrize(
    ("window", "count", "seconds"),
    [((0, 60), 1, 6), ((12, 60), 1, 4), ((0, 14), 0, 0), ((0, 16), 1, 6), ((16, 60), 0, 0), ((17, 60), 0, 0)],
)
def test_a_short_hole_is_counted_where_it_ends_with_its_time_in_the_window(window, count, seconds):
    record = listed([(0, 10 * S, "a"), (16 * S, 60 * S, "a"), (0, 60 * S, "b")])
    built = build_events(record, plain(min_gap_s=10, window=(window[0] * S, window[1] * S)))
    fact = built.lint.facts.get(SHORT_HOLES, {"count": 0, "node_hours": 0.0})
    assert (fact["count"], fact["node_hours"] * 3600) == (count, pytest.approx(seconds))
    assert built.lint.facts["node_hours"] == {"busy": pytest.approx(2 * (window[1] - window[0]) / 3600)}


# ---- the window --------------------------------------------------------------------------------------------------


def test_a_change_at_the_start_of_the_window_is_its_first_state_and_one_at_its_end_is_a_row():
    record = listed([(0, 20 * S, "b"), (10 * S, 20 * S, "a"), (30 * S, 50 * S, "ab")])
    built = build_events(record, plain(window=(10 * S, 30 * S)))
    events = built.events
    assert built.lint.facts[ROWS] == 4
    assert states_at_the_start(events) == {"a": NodeState.BUSY, "b": NodeState.BUSY}
    assert [(time // S, node) for time, node, _ in rows_of(events)] == [(20, "a"), (20, "b"), (30, "a"), (30, "b")]
    assert events.window_start_us == 10 * S


def test_a_node_left_out_brings_no_rows():
    record = listed([(0, 10 * S, "c"), (100 * DAY, 110 * DAY, "a"), (101 * DAY, 102 * DAY, "b")], inventory=())
    record.add_outage(NodeState.DOWN, 103 * DAY, 104 * DAY, record.node_ids("c"))
    built = build_events(record, plain(window=(100 * DAY, 105 * DAY), absent_after_s=30 * 86_400))
    assert built.events.nodes == ("a", "b")
    assert [node for _, node, _ in rows_of(built.events)] == ["b", "b"]
    assert built.lint.facts["nodes left out"].startswith("1 node that no job used within 30 days")


def test_twins_after_the_window_are_found_too(monkeypatch):
    monkeypatch.setattr(spool, "BLOCK_ROWS", 1)
    record = ScheduleRecord(spool=JobSpool(3))
    for start in range(0, 400, 40):
        record.add_job(7, start * S, (start + 5) * S, record.node_ids("a"))
        record.add_job(7, start * S, (start + 5) * S, record.node_ids("a"))
    built = build_events(record, plain(window=(0, 10 * S)))
    assert built.lint.facts["runs that were read twice and count once"] == 10


# ---- sharing and delays ------------------------------------------------------------------------------------------


def test_sharing_counts_jobs_on_jobs_inside_the_window_and_no_outages():
    jobs = [(0, 10 * S, "a"), (5 * S, 10 * S, "a"), (20 * S, 30 * S, "a"), (25 * S, 30 * S, "a"), (26 * S, 40 * S, "b")]
    record = listed(jobs)
    record.add_outage(NodeState.DRAIN, 18 * S, 28 * S, None)
    assert build_events(record, plain()).lint.facts[SHARED] == 2
    assert build_events(record, plain(window=(20 * S, 40 * S))).lint.facts[SHARED] == 1
    assert SHARED not in build_events(record, plain(window=(10 * S, 25 * S))).lint.facts


@pytest.mark.parametrize(("limit_s", "busy_s"), [(20, 30), (39, 49), (40, 50), (45, 50), (None, 50)])
def test_a_runaway_job_is_one_whose_limit_and_grace_are_over_before_the_end_of_the_log(limit_s, busy_s):
    record = listed([(0, 50 * S, "b")])
    record.add_job("open", 0, None, record.node_ids("a"), limit_end_us=None if limit_s is None else limit_s * S)
    built = build_events(record, plain(limit_grace_s=10))
    assert events_by_the_second(built.events)["a"] == [NodeState.BUSY] * busy_s + [NodeState.IDLE] * (50 - busy_s)
    running = built.lint.facts.get("jobs running at the end of the log", 0)
    assert (running, tally(built, "runaway") is None) == ((1, True) if busy_s == 50 else (0, False))


def test_a_limit_that_is_no_time_after_the_start_is_no_limit():
    record = listed([(0, 50 * S, "b")])
    record.add_job("open", 10 * S, None, record.node_ids("a"), limit_end_us=10 * S)
    built = build_events(record, plain(limit_grace_s=0))
    assert events_by_the_second(built.events)["a"] == [NodeState.IDLE] * 10 + [NodeState.BUSY] * 40


def test_running_jobs_run_to_the_end_of_a_window_after_the_end_of_the_log():
    record = listed([(0, 50 * S, "b")])
    record.add_job("open", 0, None, record.node_ids("a"))
    built = build_events(record, plain(window=(0, 80 * S)))
    assert events_by_the_second(built.events)["a"] == [NodeState.BUSY] * 80


def test_the_log_ends_when_the_user_or_its_own_coverage_says():
    record = listed([(0, 50 * S, "b")])
    record.add_job("open", 0, None, record.node_ids("a"), limit_end_us=60 * S)
    record.covers(0, 100 * S, "the log says so")
    rules = {"limit_grace_s": 0, "min_gap_s": 0, "empty_machine": "idle"}
    covered = build_events(record, OccupancyRules(**rules))
    assert events_by_the_second(covered.events)["a"] == [NodeState.BUSY] * 60 + [NodeState.IDLE] * 40
    whole = build_events(record, OccupancyRules(window="full", **rules))
    assert whole.window.end_us == 100 * S
    said = build_events(record, OccupancyRules(window="full", log_end_us=55 * S, **rules))
    assert events_by_the_second(said.events)["a"] == [NodeState.BUSY] * 55


# ---- nodes that were not there -----------------------------------------------------------------------------------


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


# ---- what a record takes -----------------------------------------------------------------------------------------


def test_what_cannot_be_an_interval_is_counted_by_reason():
    record = ScheduleRecord()
    nodes = record.node_ids("a")
    record.add_job(1, 10, 10, nodes, file="log", line=1)
    record.add_job(2, 10, 9, nodes, file="log", line=2)
    record.add_job(3, 10, 10**18, nodes)
    record.add_job(4, -(10**18), 10, nodes)
    record.add_job(5, 0, 10, None, 0)
    record.add_job(6, 0, 10, None, MOST_NODES + 1)
    record.add_job(7, 0, 10, None)
    record.add_outage(NodeState.DOWN, 10, 10, nodes)
    assert {reason: tally.count for reason, tally in record.lint.dropped.items()} == {
        "job of no length": 1,
        "job that ends before it starts": 1,
        "job: a time outside the calendar": 2,
        "a job without nodes": 2,
        "a job on more nodes than any machine has": 1,
        "outage of no length": 1,
    }
    assert (record.jobs.n_rows, record.outages, record.lint.kept) == (0, [], {})
    record.add_job(8, 0, 10, None, MOST_NODES)
    assert record.jobs.n_rows == 1


@pytest.mark.parametrize(("said", "doubts", "assigned"), [(None, 0, 0), (1, 1, 0), (2, 0, 0), (3, 1, 1)])
def test_the_greater_number_of_nodes_counts_and_a_difference_is_doubted(said, doubts, assigned):
    record = ScheduleRecord()
    record.add_inventory("abc")
    record.add_job(1, 0, 10 * S, record.node_ids("ab"), said, file="log", line=9)
    found = record.lint.doubts.get(MISMATCH)
    assert (found.count if found else 0, record.n_counted) == (doubts, assigned)
    assert [str(example) for example in found.examples] == [f"log:9: {said} nodes, 2 listed"] if found else True
    built, busy = busy_nodes(record, plain())
    assert busy == [max(2, said or 0)] * 10
    assert (built.events.metadata.allocator is None) == (assigned == 0)


def test_the_record_knows_what_it_spans():
    record = ScheduleRecord()
    record.add_job(1, 10 * S, 30 * S, record.node_ids("a"))
    record.add_job(2, 20 * S, None, record.node_ids("ab"))
    record.add_counted_jobs(
        np.array([3, 4]), np.array([5, 25]) * S, np.array([40 * S, OPEN_END]), np.array([1, 1])
    )  # fmt: skip
    record.add_outage(NodeState.DOWN, 1 * S, 44 * S, record.node_ids("c"))
    record.add_outage(NodeState.DOWN, 46 * S, None, record.node_ids("c"))
    assert (record.first_start_us, record.last_start_us) == (5 * S, 25 * S)
    assert (record.first_end_us, record.last_end_us, record.longest_us) == (30 * S, 40 * S, 35 * S)
    assert (record.last_stamp_us, record.n_open, record.n_counted) == (40 * S, 2, 2)
    use = node_use(record, OccupancyRules(), 46 * S)
    assert use.first_us.tolist() == [10 * S, 20 * S, OPEN_END]
    assert use.last_us.tolist() == [OPEN_END, OPEN_END, -OPEN_END]
    assert use.jobs_on.tolist() == [2, 1, 0]
    assert record.lint.kept == {"job intervals": 4, "outage intervals": 2}


def test_many_nodes_are_seen_each():
    record = ScheduleRecord()
    nodes = [f"n{i}" for i in range(1_025)]
    record.add_job(1, 0, 10 * S, record.node_ids(nodes[:1_024]))
    record.add_job(2, 5 * S, 20 * S, record.node_ids(nodes))
    use = node_use(record, OccupancyRules(), 20 * S)
    assert (use.first_us.tolist(), use.last_us.tolist()) == ([0] * 1_024 + [5 * S], [20 * S] * 1_025)


def test_coverage_of_several_files_is_from_the_first_to_the_last():
    record = ScheduleRecord()
    for start, end in ((20, 30), (10, 15), (12, 50), (20, 25)):
        record.covers(start, end, "sampled")
    assert (record.coverage.start_us, record.coverage.end_us) == (10, 50)


def test_made_up_names_are_no_names_of_the_log():
    record = ScheduleRecord()
    record.node_ids(["unlisted0001", "cn1"])
    record.set_machine_size(4)
    assert list(machine_nodes(record)) == ["unlisted0001", "cn1", "unlisted_0001", "unlisted_0002"]
    record = ScheduleRecord()
    record.set_machine_size(2)
    assert list(machine_nodes(record)) == ["n0001", "n0002"]


def test_a_machine_said_to_be_smaller_than_its_list_is_doubted():
    record = listed([(0, 10 * S, "a"), (0, 20 * S, "bc")], inventory=())
    record.set_machine_size(2)
    built = build_events(record, plain())
    assert tally(built, "more nodes than the machine is said to have").examples[0].value == "3 listed, 2 said"
    assert built.events.nodes == ("a", "b", "c")


def test_keys_of_jobs_are_their_numbers_or_differ():
    assert (job_key(12), job_key("12"), job_key("0012")) == (12, 12, 12)
    keys = {job_key(text) for text in ("12_1", "12_2", "12.srv", "12[7].srv", "1" * 18, "")}
    assert len(keys) == 6
    assert all(-(2**63) <= key <= 0 for key in keys)


# ---- the spool ---------------------------------------------------------------------------------------------------


def test_the_known_end_counts_even_if_the_running_one_comes_later():
    for order in ([None, 10 * S], [10 * S, None], [10 * S, 8 * S, None], [None, 8 * S, 10 * S]):
        for run_rows in (1, 100):
            record = ScheduleRecord(spool=JobSpool(run_rows))
            for end_us in order:
                record.add_job("7", 0, end_us, record.node_ids("a"))
            record.add_job("8", 0, 20 * S, record.node_ids("b"))
            built = build_events(record, plain())
            assert events_by_the_second(built.events)["a"] == [NodeState.BUSY] * 10 + [NodeState.IDLE] * 10
            assert built.lint.facts["runs that were read twice and count once"] == len(order) - 1
            assert (tally(built, "read twice") is None) == (8 * S not in order)


def test_a_full_list_of_nodes_ends_a_run_too():
    jobs = JobSpool(1_000, 4)
    for i in range(10):
        jobs.add(i, i + 1, OPEN_END, i, 3, np.arange(3, dtype=np.int32))
    pieces = list(jobs.slices())
    assert sum(len(piece) for piece, _ in pieces) == 10
    assert all((np.diff(piece.first_node) == 3).all() for piece, _ in pieces)
    assert jobs._folder is not None
    assert len(list(Path(jobs._folder.name).glob("*.rows"))) == 5


def test_a_start_is_never_split_over_two_pieces(monkeypatch):
    monkeypatch.setattr(spool, "BLOCK_ROWS", 2)
    jobs = JobSpool(5)
    starts = [7] * 9 + [8] + [9] * 6
    for i, start in enumerate(starts):
        jobs.add(start, 20, OPEN_END, i, 1, None)
    pieces = [piece.start_us.tolist() for piece, _ in jobs.slices()]
    assert [start for piece in pieces for start in piece] == starts
    assert all(earlier[-1] < later[0] for earlier, later in pairwise(pieces))
    assert len(pieces) > 1


# ---- rules -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["empty_after_s", "min_gap_s", "release_delay_s", "limit_grace_s", "absent_after_s"])
def test_lengths_are_seconds_from_zero_on(column):
    assert getattr(OccupancyRules(**{column: 0}), column) == 0
    for value in (-1e-9, 1e9, float("nan"), float("inf")):
        with pytest.raises(InputError, match="out of range") as caught:
            OccupancyRules(**{column: value})
        assert caught.value.column == column


@pytest.mark.parametrize("column", ["assignment", "over_capacity", "shared_nodes", "empty_machine", "window"])
def test_unknown_words_are_refused(column):
    with pytest.raises(InputError, match="unknown") as caught:
        OccupancyRules(**{column: "sometimes"})
    assert (caught.value.column, caught.value.value) == (column, "sometimes")
