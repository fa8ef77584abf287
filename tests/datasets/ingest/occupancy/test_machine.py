"""Machine as intervals begin and end: waiting jobs, room, emptiness, outages, sharing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bfreplay.datasets.ingest.occupancy import machine, spool, state_changes
from bfreplay.datasets.ingest.occupancy.build import build_events
from bfreplay.datasets.ingest.occupancy.findings import EMPTY_MACHINE
from bfreplay.datasets.ingest.occupancy.rules import ASSIGNMENTS, OVERSUBSCRIPTION, OccupancyRules
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.occupancy.spool import JobSpool
from bfreplay.datasets.log.states import NodeState
from bfreplay.errors import InputError
from tests.datasets.ingest.occupancy.by_the_second import Held, events_by_the_second
from tests.datasets.ingest.occupancy.small_records import (
    DAY,
    HOUR,
    MIN,
    SHARED,
    S,
    busy_nodes,
    counted,
    listed,
    plain,
    rows_of,
    tally,
)

# ---- jobs that have to wait -----------------------------------------------------------------------------------------


def test_a_delayed_job_begins_when_exactly_enough_nodes_are_free():
    record = counted([(0, 10 * S, 2), (5 * S, 8 * S, 4), (20 * S, 21 * S, 1)])
    _, busy = busy_nodes(record, plain(oversubscription="delay"))
    assert busy == [2] * 10 + [4] * 3 + [0] * 7 + [1]


def test_nobody_overtakes_a_delayed_job():
    record = counted([(0, 10 * S, 3), (4 * S, 6 * S, 2), (5 * S, 9 * S, 1), (30 * S, 31 * S, 1)])
    built, busy = busy_nodes(record, plain(oversubscription="delay"))
    assert busy == [3] * 10 + [3] * 2 + [1] * 2 + [0] * 16 + [1]
    warning = tally(built, "they were delayed")
    assert warning.count == 2
    assert warning.examples[0].value == "0.00 hours on average"


def test_the_delay_is_said_in_hours():
    record = counted([(0, 4 * HOUR, 4), (HOUR, 2 * HOUR, 4), (6 * HOUR, 7 * HOUR, 1)])
    built = build_events(record, plain(oversubscription="delay"))
    assert tally(built, "they were delayed").examples[0].value == "3.00 hours on average"


@pytest.mark.parametrize("rule", ["drop", "delay"])
def test_a_job_wider_than_the_machine_is_left_out(rule):
    record = counted([(0, 10 * S, 5), (0, 20 * S, 4)])
    built, busy = busy_nodes(record, plain(oversubscription=rule))
    assert busy == [4] * 20
    assert tally(built, "they were skipped").count == 1


def test_a_wider_job_is_clipped_to_the_machine():
    record = counted([(0, 2 * HOUR, 7), (3 * HOUR, 4 * HOUR, 1)])
    built = build_events(record, plain())
    warning = tally(built, "got the nodes that were free")
    assert (warning.count, warning.examples[0].value) == (1, "6.0 node-hours missing")
    assert built.report.facts["node_hours"] == {"busy": 9.0, "idle": 7.0}


def by_demand(jobs, n_nodes, seconds):
    """Nodes busy and nodes missing in each second, for jobs of start, end and count: no allocator needed."""
    demand = [sum(count for start, end, count in jobs if start <= t < end) for t in seconds]
    return [min(n_nodes, n) for n in demand], [max(0, n - n_nodes) for n in demand]


times = st.tuples(st.integers(0, 12), st.integers(1, 20))


@given(
    st.lists(st.tuples(times, st.integers(1, 7)), min_size=1, max_size=15),
    st.sampled_from(ASSIGNMENTS),
    st.integers(0, 30),
    st.integers(1, 30),
)
def test_clipped_jobs_hold_every_node_that_is_free_while_they_lack_some(job_list, assignment, first, length):
    spans = [(start, start + n, count) for (start, n), count in job_list]
    log = range(min(start for start, *_ in spans), max(end for _, end, _ in spans))
    seconds = log[first : first + length]
    if not seconds:
        return
    window = (seconds[0] * S, (seconds[-1] + 1) * S)
    record = counted([(start * S, end * S, count) for start, end, count in spans], run_rows=4)
    built, busy = busy_nodes(record, plain(assignment=assignment, window=window))
    expected, missing = by_demand(spans, 4, seconds)
    assert busy == expected
    warning = tally(built, "got the nodes that were free")
    assert (warning.node_hours if warning else 0.0) == pytest.approx(sum(missing) / 3_600)
    if len(job_list) == 1:
        assert (warning.count if warning else 0) == (max(missing) > 0)


def test_a_free_node_goes_to_the_job_that_lacks_some_and_started_first():
    # four nodes; the jobs of 1 s and 2 s lack 2 and 1 when the first gives back 3 at 10 s; at 20 s two more are free
    jobs = [(0, 10 * S, 3), (0, 20 * S, 1), (1 * S, 60 * S, 2), (2 * S, 40 * S, 3)]
    built, busy = busy_nodes(counted(jobs), plain())
    assert busy == [4] * 40 + [2] * 20
    left = [node for node, line in events_by_the_second(built.events).items() if line[50] == NodeState.BUSY]
    assert left == ["n0001", "n0002"]  # the job of 1 s took the two lowest at 10 s, the other one the third
    warning = tally(built, "got the nodes that were free")
    assert warning.count == 2
    assert warning.node_hours == pytest.approx((9 * 2 + 8 * 3 + 10 * 2 + 20 * 1) / 3_600)


def test_a_node_back_from_an_outage_goes_to_a_job_that_lacks_nodes():
    record = counted([(0, 30 * S, 4)])
    record.add_outage(NodeState.DOWN, 0, 10 * S, None)
    _, busy = busy_nodes(record, plain())
    assert busy == [0] * 10 + [4] * 20


def test_a_clipped_job_is_not_given_a_node_that_a_job_of_the_same_instant_names():
    record = ScheduleRecord()
    record.add_inventory("abc")
    for i, (start, end, names, count) in enumerate(
        [(0, 10, "a", 1), (0, 10, "b", 1), (0, 40, "c", 1), (5, 20, "", 1), (10, 30, "a", 1)]
    ):
        record.add_job(i, start * S, end * S, record.node_ids(names), count)
    _, busy = busy_nodes(record, plain())
    assert busy == [3] * 20 + [2] * 10 + [1] * 10  # b at 10 s, not a: each of the three is held by one job


def test_a_job_counts_as_clipped_only_where_it_lacks_nodes_in_the_window():
    jobs = [(0, 2 * HOUR, 3), (HOUR, 8 * HOUR, 2)]  # lacks one node from 1 to 2 h
    inside = build_events(counted(jobs), plain(window=(0, 6 * HOUR)))
    assert tally(inside, "got the nodes that were free").count == 1
    after = build_events(counted(jobs), plain(window=(2 * HOUR, 6 * HOUR)))
    assert tally(after, "got the nodes that were free") is None
    across = build_events(counted(jobs), plain(window=(90 * MIN, 6 * HOUR)))
    warning = tally(across, "got the nodes that were free")
    assert (warning.count, warning.node_hours) == (1, pytest.approx(0.5))


def test_a_skipped_job_is_missing_with_all_its_nodes():
    record = counted([(0, 10 * HOUR, 3), (HOUR, 6 * HOUR, 2)])
    built = build_events(record, plain(oversubscription="drop"))
    warning = tally(built, "they were skipped")
    assert (warning.count, warning.examples[0].value) == (1, "10.0 node-hours missing")


@pytest.mark.parametrize("rule", OVERSUBSCRIPTION)
def test_what_did_not_fit_counts_only_inside_the_window(rule):
    jobs = [(0, 10 * HOUR, 4), (20 * HOUR, 30 * HOUR, 4), (39 * HOUR, 40 * HOUR, 1)]
    late = (22 * HOUR, 23 * HOUR, 1)
    whole = build_events(counted([*jobs, late]), plain(oversubscription=rule))
    assert tally(whole, "jobs needed more nodes").count == 1
    before = build_events(counted([*jobs, late]), plain(oversubscription=rule, window=(0, 15 * HOUR)))
    assert tally(before, "jobs needed more nodes") is None
    if rule != "delay":
        after = build_events(counted([*jobs, (2 * HOUR, 3 * HOUR, 1)]), plain(window=(12 * HOUR, 25 * HOUR)))
        assert tally(after, "jobs needed more nodes") is None


def test_node_hours_that_are_missing_are_those_inside_the_window():
    record = counted([(0, 20 * HOUR, 4), (0, 20 * HOUR, 2)])
    built = build_events(record, plain(oversubscription="drop", window=(5 * HOUR, 10 * HOUR)))
    assert tally(built, "they were skipped").examples[0].value == "10.0 node-hours missing"


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_jobs_wait_across_the_pieces_of_a_long_log(assignment, monkeypatch):
    jobs = [(i * S, (i + 3) * S, 1 + i % 3) for i in range(60)]

    def busy(run_rows, block):
        monkeypatch.setattr(spool, "BLOCK_ROWS", block)
        record = counted(jobs, run_rows=run_rows)
        return busy_nodes(record, plain(assignment=assignment, oversubscription="delay", window=(0, 200 * S)))[1]

    whole = busy(10_000, 10_000)
    assert sum(whole) == sum(3 * count for _, _, count in jobs)
    assert busy(5, 1) == whole


def test_a_job_that_lists_its_nodes_never_waits():
    record = ScheduleRecord()
    record.add_inventory("ab")
    record.add_job(1, 0, 10 * S, record.node_ids("a"))
    record.add_job(2, 0, 10 * S, record.node_ids("b"))
    record.add_job(3, 5 * S, 20 * S, record.node_ids("a"), 2)
    built, busy = busy_nodes(record, plain(oversubscription="delay"))
    assert busy == [2] * 20  # it gets its second node when the first job on that one ends
    assert tally(built, "got the nodes that were free").count == 1


# ---- room for what happens at one time ------------------------------------------------------------------------------


names = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=6, unique=True).map(tuple)
held = st.builds(lambda t, nodes: Held(t[0], t[0] + t[1], nodes), times, names)
out = st.builds(lambda t, nodes: Held(t[0], t[0] + t[1], nodes, NodeState.DRAIN), times, names)


@given(
    st.lists(held, max_size=20),
    st.lists(out, max_size=20),
    st.lists(st.tuples(times, st.integers(1, 6)), min_size=1),
    st.sampled_from(ASSIGNMENTS),
    st.sampled_from(OVERSUBSCRIPTION),
    st.sampled_from([0, 2, 30]),
)
def test_rows_do_not_depend_on_how_much_room_there_was(jobs, outages, counts, assignment, oversubscription, min_gap):
    def rows(run_rows, room, block):
        record = ScheduleRecord(spool=JobSpool(run_rows))
        record.add_inventory("abcdef")
        for i, job in enumerate(jobs):
            record.add_job(f"listed {i}", job.start * S, job.end * S, record.node_ids(job.nodes))
        for i, ((start, length), count) in enumerate(counts):
            record.add_job(f"counted {i}", start * S, (start + length) * S, None, count)
        for outage in outages:
            record.add_outage(outage.state, outage.start * S, outage.end * S, record.node_ids(outage.nodes))
        rules = plain(assignment=assignment, oversubscription=oversubscription, min_gap_s=min_gap)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(machine, "FIRST_SLOTS", room)
            patched.setattr(state_changes, "ROWS", room)
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


# ---- a machine without jobs -----------------------------------------------------------------------------------------


def down_rules(**changes):
    return plain(empty_machine="down", empty_after_s=3_600, **changes)


@pytest.mark.parametrize("run_rows", [4, 10_000])
@pytest.mark.parametrize(("gap_us", "is_down"), [(HOUR, False), (HOUR + S, True)])
def test_a_machine_is_down_only_if_it_is_empty_for_longer_than_the_limit(gap_us, is_down, run_rows, monkeypatch):
    monkeypatch.setattr(spool, "BLOCK_ROWS", 1)  # a piece for each start
    jobs = [(0, 90 * S, "a"), (50 * S, 100 * S, "a"), (100 * S + gap_us, 20 * HOUR, "b"), (20 * HOUR, 21 * HOUR, "b")]
    built = build_events(listed(jobs, run_rows=run_rows), down_rules())
    hours = built.report.facts["node_hours"]
    assert hours.get("down", 0.0) == (2 * gap_us / HOUR if is_down else 0.0)
    fact = built.report.facts[EMPTY_MACHINE]
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
    fact = build_events(record, down_rules(window=(window[0] * HOUR, window[1] * HOUR))).report.facts[EMPTY_MACHINE]
    assert fact["share_of_window"] == pytest.approx(share)
    assert (fact["assumed_down_periods"], fact["assumed_down_hours"]) == (periods, hours)


@pytest.mark.parametrize(("minutes", "state"), [(30, "idle"), (60, "idle"), (61, "down")])
def test_the_time_after_the_last_job_counts_up_to_the_end_of_the_log(minutes, state):
    record = listed([(0, HOUR, "ab")])
    record.stamp(HOUR + minutes * MIN)
    hours = build_events(record, down_rules()).report.facts["node_hours"]
    assert hours == {"busy": 2.0, state: pytest.approx(2 * minutes / 60)}


@pytest.mark.parametrize(("minutes", "state"), [(60, "idle"), (61, "down")])
def test_the_time_before_the_first_job_counts_from_the_start_of_the_window(minutes, state):
    record = listed([(minutes * MIN, 5 * HOUR, "ab")])
    record.covers(0, 5 * HOUR, "the log says so")
    built = build_events(record, OccupancyRules(min_gap_s=0, empty_machine="down"))
    assert built.window.why == "the log says so"
    assert built.report.facts["node_hours"][state] == pytest.approx(2 * minutes / 60)
    fact = built.report.facts[EMPTY_MACHINE]
    assert fact["assumed_down_periods"] == (state == "down")
    assert fact["assumed_down_hours"] == pytest.approx(minutes / 60 if state == "down" else 0.0)


def test_an_empty_start_longer_than_the_window_is_down_all_through_it():
    record = listed([(9 * HOUR, 10 * HOUR, "a")])
    record.covers(0, 10 * HOUR, "the log says so")
    built = build_events(record, down_rules(window=(HOUR, 5 * HOUR)))
    assert built.report.facts["node_hours"] == {"down": 8.0}
    assert built.report.facts[EMPTY_MACHINE]["assumed_down_hours"] == 4.0
    assert built.report.facts[EMPTY_MACHINE]["share_of_window"] == 1.0


def test_a_window_beyond_the_log_shows_a_machine_that_is_assumed_down():
    built = build_events(listed([(0, HOUR, "ab")]), down_rules(window=(0, 10 * HOUR)))
    assert built.report.facts["node_hours"] == {"busy": 2.0, "down": 18.0}
    assert built.report.facts[EMPTY_MACHINE]["assumed_down_hours"] == 9.0


def test_a_machine_on_which_a_job_waits_is_not_empty():
    record = counted([(0, HOUR, 1), (4 * HOUR, 5 * HOUR, 1)], 2)
    record.add_outage(NodeState.DRAIN, 0, 3 * HOUR, None)
    built = build_events(record, down_rules(oversubscription="delay"))
    assert built.report.facts["node_hours"] == {"drain": 6.0, "busy": 2.0, "idle": 2.0}
    assert built.report.facts[EMPTY_MACHINE]["assumed_down_periods"] == 0
    assert built.report.facts[EMPTY_MACHINE]["share_of_window"] == 0.0


def test_a_machine_of_which_nodes_were_seen_in_use_is_not_assumed_down():
    record = ScheduleRecord()
    record.add_inventory("ab")
    record.add_outage(NodeState.BUSY, 0, HOUR, record.node_ids("a"))
    record.add_outage(NodeState.BUSY, 9 * HOUR, 10 * HOUR, record.node_ids("a"))
    built = build_events(record, down_rules())
    assert built.report.facts["node_hours"] == {"busy": 2.0, "idle": 18.0}


# ---- outages --------------------------------------------------------------------------------------------------------


def test_an_outage_may_begin_before_the_log_and_never_end():
    record = listed([(10 * DAY, 11 * DAY, "a"), (12 * DAY, 13 * DAY, "a")])
    record.add_outage(NodeState.DOWN, DAY, None, record.node_ids("b"))
    record.add_outage(NodeState.OFF, 2 * DAY, 10 * DAY + HOUR, record.node_ids("a"))
    built = build_events(record, plain())
    assert built.window.start_us == 10 * DAY
    assert built.report.facts["node_hours"] == {"idle": 24.0, "busy": 47.0, "down": 72.0, "off": 1.0}


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
    with pytest.raises(InputError, match="no job in this log held a node") as caught:
        build_events(record)
    assert "outages alone" in caught.value.fix


def test_an_empty_log_is_refused():
    with pytest.raises(InputError, match="no rows at all"):
        build_events(ScheduleRecord())


def test_the_refusal_names_the_commonest_reasons_only():
    record = ScheduleRecord()
    for n, reason in enumerate(("pending", "a step", "never started", "no length"), start=1):
        record.report.skip(reason, count=n)
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


# ---- sharing and delays ---------------------------------------------------------------------------------------------


def test_sharing_counts_jobs_on_jobs_inside_the_window_and_no_outages():
    jobs = [(0, 10 * S, "a"), (5 * S, 10 * S, "a"), (20 * S, 30 * S, "a"), (25 * S, 30 * S, "a"), (26 * S, 40 * S, "b")]
    record = listed(jobs)
    record.add_outage(NodeState.DRAIN, 18 * S, 28 * S, None)
    assert build_events(record, plain()).report.facts[SHARED] == 2
    assert build_events(record, plain(window=(20 * S, 40 * S))).report.facts[SHARED] == 1
    assert SHARED not in build_events(record, plain(window=(10 * S, 25 * S))).report.facts


@pytest.mark.parametrize(("limit_s", "busy_s"), [(20, 30), (39, 49), (40, 50), (45, 50), (None, 50)])
def test_a_runaway_job_is_one_whose_limit_and_grace_are_over_before_the_end_of_the_log(limit_s, busy_s):
    record = listed([(0, 50 * S, "b")])
    record.add_job("open", 0, None, record.node_ids("a"), limit_end_us=None if limit_s is None else limit_s * S)
    built = build_events(record, plain(limit_grace_s=10))
    assert events_by_the_second(built.events)["a"] == [NodeState.BUSY] * busy_s + [NodeState.IDLE] * (50 - busy_s)
    running = built.report.facts.get("jobs running at the end of the log", 0)
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
