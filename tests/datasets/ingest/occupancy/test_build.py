import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bfreplay.datasets.idleness import characterise
from bfreplay.datasets.ingest.occupancy.build import AMONG_THE_SEEN, build_events
from bfreplay.datasets.ingest.occupancy.findings import CENSORED, CONTRADICTING, EMPTY_MACHINE, LEFT_IDLE
from bfreplay.datasets.ingest.occupancy.inventory import LONG_UNUSED, NAMED_ONCE, NAMED_OTHERWISE, NEVER_USED
from bfreplay.datasets.ingest.occupancy.rules import ASSIGNMENTS, OccupancyRules
from bfreplay.datasets.ingest.occupancy.schedule import NOT_IN_INVENTORY, ScheduleRecord
from bfreplay.datasets.ingest.occupancy.spool import JobSpool
from bfreplay.datasets.log.states import NodeState
from bfreplay.errors import InputError
from tests.datasets.ingest.occupancy.by_the_second import (
    Held,
    events_by_the_second,
    states_by_the_second,
    without_short_intervals,
)

S = 10**6
NODES = ["a", "b", "c", "d"]
EVERYTHING = OccupancyRules(window="full", min_gap_s=0, empty_machine="idle", absent_after_s=1e8)


def recorded(intervals, run_rows=10_000, inventory=NODES):
    record = ScheduleRecord(spool=JobSpool(run_rows))
    record.add_inventory(inventory)
    for i, held in enumerate(intervals):
        nodes = record.node_ids(held.nodes)
        if held.state == NodeState.BUSY:
            record.add_job(i, held.start * S, held.end * S, nodes)
        else:
            record.add_outage(held.state, held.start * S, held.end * S, nodes)
    return record


def spelt(line):
    return "".join("IBDRVOU"[state] for state in line)


some_nodes = st.lists(st.sampled_from(NODES), min_size=1, max_size=4, unique=True).map(tuple)
times = st.tuples(st.integers(0, 60), st.integers(1, 30))
jobs = st.builds(lambda t, nodes: Held(t[0], t[0] + t[1], nodes), times, some_nodes)
outages = st.builds(
    lambda t, nodes, state: Held(t[0], t[0] + t[1], nodes, state),
    times,
    some_nodes,
    st.sampled_from([NodeState.DOWN, NodeState.DRAIN, NodeState.RESERVED, NodeState.OFF, NodeState.UNKNOWN]),
)


def a_job_frees_its_node_at_its_end():
    record = recorded([Held(0, 10, ("a",)), Held(20, 30, ("a",)), Held(0, 30, ("b", "c", "d"))])
    return build_events(record, EVERYTHING).events


def test_a_node_is_idle_between_its_jobs():
    found = events_by_the_second(a_job_frees_its_node_at_its_end())
    assert spelt(found["a"]) == "B" * 10 + "I" * 10 + "B" * 10
    assert spelt(found["b"]) == "B" * 30


def test_a_job_that_starts_when_another_ends_leaves_no_idle_interval():
    record = recorded([Held(0, 10, ("a",)), Held(10, 30, ("a",))])
    assert spelt(events_by_the_second(build_events(record, EVERYTHING).events)["a"]) == "B" * 30


def test_a_shared_node_is_idle_when_its_last_job_is_over():
    record = recorded([Held(0, 10, ("a",)), Held(5, 20, ("a",)), Held(6, 8, ("a",)), Held(0, 30, ("b",))])
    built = build_events(record, EVERYTHING)
    assert spelt(events_by_the_second(built.events)["a"]) == "B" * 20 + "I" * 10
    assert built.report.facts["starts on a node that is in use (shared nodes)"] == 2


def test_sharing_can_be_refused():
    record = recorded([Held(0, 10, ("a",)), Held(5, 20, ("a",))])
    rules = OccupancyRules(window="full", shared_nodes="refuse")
    with pytest.raises(InputError, match="jobs share nodes"):
        build_events(record, rules)


@given(
    st.lists(jobs, min_size=1, max_size=12),
    st.lists(outages, max_size=5),
    st.sampled_from([None, 3, 10]),
    st.sampled_from([0, 2, 7]),
    st.integers(1, 5),
)
def test_states_are_those_of_every_second(job_list, outage_list, empty_after, min_gap, run_rows):
    intervals = [*job_list, *outage_list]
    log_end = max(held.end for held in intervals)
    first = min(held.start for held in job_list)
    rules = OccupancyRules(
        window=(first * S, log_end * S),
        min_gap_s=min_gap,
        empty_machine="idle" if empty_after is None else "down",
        empty_after_s=empty_after or 0,
    )
    built = build_events(recorded(intervals, run_rows), rules)
    early = min(held.start for held in intervals)
    expected = states_by_the_second(intervals, NODES, (min(first, early), log_end), empty_after, log_end)
    found = events_by_the_second(built.events)
    for node in NODES:
        states = without_short_intervals([NodeState.BUSY, *expected[node]], min_gap)[1:] if min_gap else expected[node]
        if min_gap:  # an idle interval that is open before the first interval is never too short
            opened = next((t for t, state in enumerate(expected[node]) if state != NodeState.IDLE), 0)
            states = expected[node][:opened] + without_short_intervals(expected[node][opened:], min_gap)
        assert spelt(found[node]) == spelt(states[first - min(first, early) :])


@given(st.lists(jobs, min_size=1, max_size=12), st.lists(outages, max_size=5))
def test_node_time_in_the_report_is_that_of_the_events(job_list, outage_list):
    built = build_events(recorded([*job_list, *outage_list]), EVERYTHING)
    found = events_by_the_second(built.events)
    hours = built.report.facts["node_hours"]
    for state in NodeState:
        seconds = sum(line.count(state) for line in found.values())
        assert hours.get(state.name.lower(), 0.0) * 3600 == pytest.approx(seconds)


@given(st.lists(jobs, min_size=1, max_size=12), st.integers(0, 40), st.integers(1, 40))
def test_a_window_shows_what_the_whole_log_shows_there(job_list, offset, length):
    record = recorded(job_list)
    whole = build_events(record, EVERYTHING).events
    start = whole.window_start_us // S + offset
    end = start + length
    if end > whole.window_end_us // S:
        return
    rules = OccupancyRules(window=(start * S, end * S), min_gap_s=0, empty_machine="idle")
    part = events_by_the_second(build_events(record, rules).events)
    for node, line in events_by_the_second(whole).items():
        assert part[node] == line[offset : offset + length]


@given(st.lists(jobs, min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(job_list, random):
    numbered = list(enumerate(job_list))
    logs = []
    for _ in range(2):
        record = ScheduleRecord()
        record.add_inventory(NODES)
        for i, held in numbered:
            record.add_job(i, held.start * S, held.end * S, record.node_ids(held.nodes))
        logs.append(events_by_the_second(build_events(record, EVERYTHING).events))
        random.shuffle(numbered)
    assert logs[0] == logs[1]


counted = st.lists(st.tuples(times, st.integers(1, 6)), min_size=1, max_size=15)


@given(counted, st.sampled_from(ASSIGNMENTS), st.integers(0, 3))
def test_rules_of_assignment_agree_on_how_much_is_idle(job_list, assignment, seed):
    record = ScheduleRecord(spool=JobSpool(4))
    record.set_machine_size(4)
    for i, ((start, length), count) in enumerate(job_list):
        record.add_job(i, start * S, (start + length) * S, None, count)
    rules = OccupancyRules(assignment, seed, window="full", min_gap_s=0, empty_machine="idle")
    events = build_events(record, rules).events
    found = list(events_by_the_second(events).values())
    first = events.window_start_us // S
    for t in range(first, events.window_end_us // S):
        demand = sum(count for (start, length), count in job_list if start <= t < start + length)
        assert sum(line[t - first] == NodeState.IDLE for line in found) == max(0, 4 - demand)


@pytest.mark.parametrize(
    ("assignment", "left"), [("lowest-id", "n0003"), ("most-recently-used", "n0003"), ("least-recently-used", "n0002")]
)
def test_each_rule_takes_the_nodes_it_names(assignment, left):
    record = ScheduleRecord()
    record.set_machine_size(3)
    record.add_job(1, 0, 10 * S, None, 1)  # n0001 until 10
    record.add_job(2, 0, 12 * S, None, 1)  # n0002 until 12
    record.add_job(3, 20 * S, 30 * S, None, 2)  # n0003 has been free longest, n0002 shortest
    rules = OccupancyRules(assignment, window="full", min_gap_s=0, empty_machine="idle")
    found = events_by_the_second(build_events(record, rules).events)
    assert [node for node, line in found.items() if line[25] == NodeState.IDLE] == [left]


def test_random_assignment_repeats_with_its_seed():
    def idle_intervals(seed):
        record = ScheduleRecord()
        record.set_machine_size(20)
        for i in range(40):
            record.add_job(i, i * S, (i + 7) * S, None, 3)
        rules = OccupancyRules("random", seed, window="full", min_gap_s=0)
        return events_by_the_second(build_events(record, rules).events)

    assert idle_intervals(1) == idle_intervals(1)
    assert idle_intervals(1) != idle_intervals(2)


@pytest.mark.parametrize(
    ("rule", "missing"), [("clip", "got the nodes that were free"), ("drop", "skipped"), ("delay", "delayed")]
)
def test_a_job_that_does_not_fit_is_treated_as_the_rule_says(rule, missing):
    record = ScheduleRecord()
    record.set_machine_size(4)
    record.add_job(1, 0, 10 * S, None, 3)
    record.add_job(2, 4 * S, 20 * S, None, 2)
    record.add_job(3, 0, 40 * S, None, 1)
    rules = OccupancyRules(oversubscription=rule, window=(0, 40 * S), min_gap_s=0, empty_machine="idle")
    built = build_events(record, rules)
    idle = [sum(line[t] == NodeState.IDLE for line in events_by_the_second(built.events).values()) for t in range(40)]
    expected = {
        "clip": [0] * 10 + [1] * 10 + [3] * 20,  # none was free: it gets its two at 10
        "drop": [0] * 10 + [3] * 30,
        "delay": [0] * 10 + [1] * 16 + [3] * 14,  # it starts at 10 and runs its 16 s
    }[rule]
    assert idle == expected
    assert any(missing in sentence for sentence in built.report.warnings)


def test_a_delayed_job_that_never_fits_is_left_out_and_said():
    record = ScheduleRecord()
    record.set_machine_size(4)
    record.add_job(1, 0, None, None, 3)
    record.add_job(2, 4 * S, 20 * S, None, 2)
    record.add_job(3, 30 * S, 40 * S, None, 1)
    built = build_events(record, OccupancyRules(oversubscription="delay", window=(0, 40 * S), min_gap_s=0))
    assert any("never found enough nodes" in sentence for sentence in built.report.warnings)


def test_listed_nodes_are_kept_and_the_rest_is_assigned():
    record = ScheduleRecord()
    record.add_inventory(NODES)
    record.add_job(1, 0, 10 * S, record.node_ids(["c"]), 3)
    record.add_job(2, 0, 20 * S, record.node_ids(["d"]), 1)
    built = build_events(record, EVERYTHING)
    found = events_by_the_second(built.events)
    assert [node for node, line in found.items() if line[5] == NodeState.BUSY] == ["a", "b", "c", "d"]
    assert built.events.metadata.allocator == {"name": "lowest-id", "seed": None}


def test_a_job_without_an_end_holds_its_nodes_to_the_end_of_the_log():
    record = ScheduleRecord()
    record.add_job(1, 0, None, record.node_ids(["a"]))
    record.add_job(2, 0, 50 * S, record.node_ids(["b"]))
    built = build_events(record, EVERYTHING)
    assert spelt(events_by_the_second(built.events)["a"]) == "B" * 50
    assert built.report.facts["jobs running at the end of the log"] == 1


def test_a_runaway_job_ends_after_its_time_limit_and_has_warning():
    record = ScheduleRecord()
    record.add_job(1, 0, None, record.node_ids(["a"]), limit_end_us=20 * S)
    record.add_job(2, 0, 50 * S, record.node_ids(["b"]))
    rules = OccupancyRules(window="full", min_gap_s=0, limit_grace_s=10)
    built = build_events(record, rules)
    assert spelt(events_by_the_second(built.events)["a"]) == "B" * 30 + "I" * 20
    assert any("runaway" in sentence for sentence in built.report.warnings)


def test_the_release_delay_keeps_a_node_after_its_job():
    record = recorded([Held(0, 10, ("a",)), Held(0, 30, ("b",))])
    rules = OccupancyRules(window=(0, 30 * S), min_gap_s=0, release_delay_s=5, empty_machine="idle")
    assert spelt(events_by_the_second(build_events(record, rules).events)["a"]) == "B" * 15 + "I" * 15


def test_the_same_run_of_a_job_read_twice_counts_once_with_the_end_that_is_known():
    record = ScheduleRecord(spool=JobSpool(1))
    record.set_machine_size(4)
    record.add_job("7", 0, None, None, 2)  # exported while it was running
    record.add_job("7", 0, 10 * S, None, 2)  # and again later
    record.add_job("7", 0, 10 * S, None, 2)
    record.add_job("8", 0, 20 * S, None, 1)
    built = build_events(record, OccupancyRules(window="full", min_gap_s=0, empty_machine="idle"))
    assert built.report.facts["runs that were read twice and count once"] == 2
    assert CONTRADICTING not in built.report.warnings
    found = events_by_the_second(built.events)
    idle = [sum(line[t] == NodeState.IDLE for line in found.values()) for t in range(20)]
    assert idle == [1] * 10 + [3] * 10


def test_the_same_run_with_two_stories_has_warning():
    record = ScheduleRecord()
    record.add_job("7", 0, 10 * S, record.node_ids(["a"]))
    record.add_job("7", 0, 10 * S, record.node_ids(["b"]))
    record.add_job("8", 0, 10 * S, record.node_ids(["a"]))
    record.add_job("8", 0, 20 * S, record.node_ids(["a"]))
    record.add_job("9", 50 * S, 60 * S, record.node_ids(["c"]))
    record.add_job("9", 50 * S, 60 * S, record.node_ids(["c"]))
    built = build_events(record, OccupancyRules(window=(0, 30 * S), min_gap_s=0))
    assert built.report.warnings[CONTRADICTING].count == 2
    assert built.report.facts["runs that were read twice and count once"] == 3  # those after the window too


def test_a_node_that_nobody_used_for_long_was_not_there():
    day = 86_400
    record = ScheduleRecord()
    record.add_job(1, 0, 40 * day * S, record.node_ids(["a"]))
    record.add_job(2, 20 * day * S, 21 * day * S, record.node_ids(["b"]))
    built = build_events(record, OccupancyRules(window="full"))
    hours = built.report.facts["node_hours"]
    assert hours == {"busy": 41 * 24.0, "unknown": (20 + 19) * 24.0}
    kept = build_events(record, OccupancyRules(window="full", absent_after_s=30 * day))
    assert kept.report.facts["node_hours"] == {"idle": 39 * 24.0, "busy": 41 * 24.0}


def test_a_known_inventory_has_its_nodes_all_the_time():
    record = ScheduleRecord()
    record.add_inventory(["a", "b"])
    record.add_job(1, 0, 40 * 86_400 * S, record.node_ids(["a"]))
    built = build_events(record, OccupancyRules(window="full"))
    assert built.events.nodes == ("a", "b")
    assert built.report.facts["node_hours"]["idle"] == 40 * 24.0
    assert built.events.metadata.node_inventory == "metadata"


def test_counts_need_the_size_of_the_machine():
    record = ScheduleRecord()
    record.add_job(1, 0, 10 * S, None, 3)
    with pytest.raises(InputError, match="the number of nodes of the machine is not known"):
        build_events(record)


def test_a_log_in_which_no_job_ran_says_what_was_found():
    record = ScheduleRecord()
    record.report.skip("never started", "jobs.psv", 3, "row", count=5)
    with pytest.raises(InputError, match=r"never started: 5") as caught:
        build_events(record)
    assert caught.value.file == "jobs.psv"


def test_a_window_outside_the_log_is_refused():
    record = recorded([Held(0, 10, ("a",))])
    with pytest.raises(InputError, match="outside the log"):
        build_events(record, OccupancyRules(window=(20 * S, 30 * S)))


def test_many_intervals_at_a_time_find_room():
    record = ScheduleRecord()
    record.add_inventory(["a"])
    for i in range(5_000):
        record.add_job(i, i, 10 * S + i, record.node_ids(["a"]))
    events = build_events(record, OccupancyRules(window="full", min_gap_s=0)).events
    assert characterise(events).idle_node_us == 0


@pytest.mark.slow
def test_the_spool_gives_the_same_rows_whatever_its_runs():
    rng = np.random.default_rng(1)
    start, length, count = rng.integers(0, 200, 500), rng.integers(1, 90, 500), rng.integers(1, 5, 500)

    def rows(run_rows):
        spool = JobSpool(run_rows, 50)
        for i in range(500):
            nodes = np.arange(count[i], dtype=np.int32) if i % 2 else None
            spool.add(int(start[i]), int(start[i] + length[i]), 0, i, int(count[i]), nodes)
        found = []
        for piece, following in spool.slices():
            assert following > piece.start_us[-1]
            for j in range(len(piece)):
                nodes = piece.nodes[piece.first_node[j] : piece.first_node[j + 1]]
                found.append((int(piece.start_us[j]), int(piece.end_us[j]), int(piece.job_key[j]), tuple(nodes)))
        return found

    whole = rows(10_000)
    assert len(whole) == 500
    assert whole == sorted(whole, key=lambda row: row[0])
    assert rows(7) == rows(1) == whole


@pytest.mark.parametrize(
    ("change", "state"),
    [
        ({}, NodeState.DOWN),
        ({"empty_machine": "idle"}, NodeState.IDLE),
        ({"empty_after_s": 5_000}, NodeState.IDLE),
        ({"outage": True}, NodeState.IDLE),
        ({"outage": True, "empty_machine": "down"}, NodeState.DOWN),
        ({"outages_known": True}, NodeState.IDLE),
    ],
)
def test_a_machine_without_jobs_for_long_is_down_unless_somebody_knows_better(change, state):
    record = recorded([Held(0, 10, ("a",)), Held(4_010, 4_020, ("b",))])
    if change.pop("outage", False):
        record.add_outage(NodeState.DRAIN, 0, 5 * S, record.node_ids(["d"]))
    record.outages_known = change.pop("outages_known", False)
    built = build_events(record, OccupancyRules(window="full", min_gap_s=0, **change))
    line = events_by_the_second(built.events)["c"]
    assert line[5] == NodeState.IDLE
    assert set(line[10:4_010]) == {state}
    assert line[4_015] == NodeState.IDLE


def test_a_node_named_by_one_job_where_others_have_dozens_may_be_misspelt():
    record = ScheduleRecord()
    names = [f"cn{i:02d}" for i in range(12)]
    for i in range(30):
        record.add_job(i, i * 100 * S, (i * 100 + 90) * S, record.node_ids(names))
    record.add_job(99, 500 * S, 600 * S, record.node_ids(["cm01"]))
    built = build_events(record, OccupancyRules(window="full"))
    assert built.report.warnings[NAMED_ONCE].count == 1
    assert str(built.report.warnings[NAMED_ONCE].examples[0]) == "cm01"
    assert NAMED_ONCE not in build_events(recorded([Held(0, 10, ("a",))]), EVERYTHING).report.warnings


def test_a_node_that_is_not_in_the_given_inventory_has_warning_and_counts():
    record = ScheduleRecord()
    record.give_inventory(["a", "b"])
    record.add_job(1, 0, 10 * S, record.node_ids(["a", "x"]), file="jobs", line=7)
    record.add_job(2, 0, 10 * S, record.node_ids(["b"]))
    built = build_events(record, EVERYTHING)
    assert built.report.warnings[NOT_IN_INVENTORY].count == 1
    assert str(built.report.warnings[NOT_IN_INVENTORY].examples[0]) == "jobs:7: 1: x"
    assert built.events.nodes == ("a", "b", "x")


def test_what_the_window_cuts_is_counted():
    record = recorded([Held(0, 20, ("a",)), Held(12, 18, ("b",)), Held(15, 40, ("c", "d")), Held(0, 5, ("b",))])
    record.add_job(99, 14 * S, None, record.node_ids(["b"]))
    built = build_events(record, OccupancyRules(window=(10 * S, 30 * S), min_gap_s=0))
    cut = built.report.facts[CENSORED]
    # inside: a 10 s, b 6 s, c and d 15 s each, the running job 16 s
    assert cut["jobs"] == 3
    assert cut["share_of_job_node_time"] == pytest.approx((10 + 30 + 16) / 62)
    assert cut["share_without_an_end"] == pytest.approx(16 / 62)


def test_a_job_that_begins_or_ends_with_the_window_is_not_cut():
    record = recorded([Held(10, 30, ("a",)), Held(0, 10, ("b",)), Held(30, 40, ("c",)), Held(12, 31, ("d",))])
    cut = build_events(record, OccupancyRules(window=(10 * S, 30 * S), min_gap_s=0)).report.facts[CENSORED]
    assert cut == {"jobs": 1, "share_of_job_node_time": pytest.approx(18 / 38), "share_without_an_end": 0.0}


def test_a_job_whose_list_is_lost_gets_nodes_among_those_that_are_listed():
    record = ScheduleRecord()
    for i in range(30):
        record.add_job(i, i * S, (i + 5) * S, record.node_ids([f"n{i % 3}"]))
    record.add_job(99, 60 * S, 70 * S, None, 2)
    built = build_events(record, EVERYTHING)
    assert built.report.warnings[AMONG_THE_SEEN].count == 1
    assert built.report.warnings[AMONG_THE_SEEN].node_hours == 2 * 10 / 3_600
    found = events_by_the_second(built.events)
    assert [node for node, line in found.items() if line[65] == NodeState.BUSY] == ["n0", "n1"]


def test_where_states_were_sampled_nothing_is_said_of_jobs():
    record = ScheduleRecord()
    record.add_inventory(["a", "b"])
    for i in range(5):
        record.add_outage(NodeState.BUSY, i * 100 * S, (i * 100 + 30) * S, record.node_ids(["a"]))
    built = build_events(record, OccupancyRules(window="full", min_gap_s=0))
    assert EMPTY_MACHINE not in built.report.facts
    assert not built.report.warnings
    assert spelt(events_by_the_second(built.events)["a"])[:130] == "B" * 30 + "I" * 70 + "B" * 30


def test_a_node_with_a_name_unlike_all_others_may_be_no_node():
    record = ScheduleRecord()
    for i in range(3):
        record.add_job(i, i * S, (i + 5) * S, record.node_ids([f"cn{i:02d}", "gpu1"]))
    record.add_job(8, 2 * S, 9 * S, record.node_ids(["login"]))
    record.add_job(9, 2 * S, 9 * S, record.node_ids(["105_3"]))
    warning = build_events(record, OccupancyRules(window="full")).report.warnings[NAMED_OTHERWISE]
    assert [str(example) for example in warning.examples] == ["login", "105_3"]  # gpu1 is named by three jobs


def test_only_what_no_outage_explains_has_warning_of_an_empty_machine():
    hour = 3_600
    record = recorded([Held(0, hour, ("a",)), Held(10 * hour, 11 * hour, ("a",)), Held(13 * hour, 14 * hour, ("a",))])
    record.add_outage(NodeState.DOWN, (hour + 600) * S, 10 * hour * S, None)  # 10 minutes after the last job
    built = build_events(record, OccupancyRules(window="full", min_gap_s=0))
    warning = built.report.warnings[LEFT_IDLE]  # from 11 to 13 h four nodes were idle
    assert (warning.count, str(warning.examples[0])) == (1, "8.0 node-hours")
    fact = built.report.facts[EMPTY_MACHINE]
    assert (fact["left_idle_periods"], fact["left_idle_hours"]) == (1, 2.0)


def test_a_short_outage_does_not_explain_a_node_that_nobody_used():
    day = 86_400
    record = ScheduleRecord()
    record.give_inventory(["a", "b", "c", "d"])
    record.add_job(1, 0, 40 * day * S, record.node_ids(["a"]))
    record.add_job(2, 0, 10 * day * S, record.node_ids(["c", "d"]))
    record.add_outage(NodeState.DOWN, 20 * day * S, 21 * day * S, None)
    record.add_outage(NodeState.DOWN, 10 * day * S, None, record.node_ids(["d"]))  # that one explains it
    warnings = build_events(record, OccupancyRules(window="full")).report.warnings
    assert [str(example) for example in warnings[NEVER_USED].examples] == ["b"]
    assert [str(example) for example in warnings[LONG_UNUSED].examples] == ["c"]


def test_pyarrow_is_loaded_only_for_a_log_that_is_written():
    script = "import sys, bfreplay.datasets.ingest.occupancy.build; assert 'pyarrow' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
