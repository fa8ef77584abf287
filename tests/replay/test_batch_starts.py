"""What a replay does to the starts of batch jobs, and the idle nodes that it leaves alone for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bfreplay import replay_log
from bfreplay.datasets import NodeEvents, NodeState
from bfreplay.errors import InputError
from bfreplay.policies.policy import ANY_TRIGGER
from bfreplay.replay import ReplaySettings
from bfreplay.replay.pool_tables import BatchStarts
from bfreplay.runs import RunResult
from tests.replay.placed import Scripted, Step, typed_job, typed_log
from tests.replay.random_replays import RandomCounts
from tests.replay.tiny import SECOND, job, job_sets, log, logs

_OF_LOOP = {"efficiency": False, "bound": False}


def _rows(events: NodeEvents) -> list[tuple[int, int, int]]:
    return [
        row
        for batch in events.batches()
        for row in zip(batch.time_us.tolist(), batch.node.tolist(), batch.state.tolist(), strict=True)
    ]


def _recomputed(events: NodeEvents, run: RunResult, clear_us: int) -> dict[str, int]:
    """First order from tables alone: the log's rows, and who held which node until when."""
    holds = run.table("nodes").to_pylist()
    held_until = {(row["node"], int(row["to"].timestamp() * SECOND + 0.5)) for row in holds}
    state = dict.fromkeys(range(len(events.nodes)), int(NodeState.BUSY))
    started: dict[int, list[int]] = {}
    busy, since = 0, dict.fromkeys(state, events.window_start_us)
    for time_us, node, after in _rows(events):
        if state[node] == NodeState.BUSY:
            busy += time_us - since[node]
        if state[node] == NodeState.IDLE and after == NodeState.BUSY:
            started.setdefault(time_us, []).append(node)
        state[node], since[node] = after, time_us
    busy += sum(events.window_end_us - since[node] for node in state if state[node] == NodeState.BUSY)
    met = {at: [n for n in nodes if (events.nodes[n], at) in held_until] for at, nodes in started.items()}
    return {
        "n_starts": len(started),
        "n_starts_met": sum(bool(nodes) for nodes in met.values()),
        "n_nodes_started": sum(map(len, started.values())),
        "n_nodes_met": sum(map(len, met.values())),
        "delay_node_us": sum(len(started[at]) * clear_us for at, nodes in met.items() if nodes),
        "busy_node_us": busy,
    }


def test_first_order_of_the_sample_recomputed_from_tables():
    from bfreplay import load_events

    events = load_events("sample")
    run = replay_log(events, "sample", record_nodes=True, clear="45s", **_OF_LOOP)
    found = run.summary.batch_starts
    assert found.to_json() == _recomputed(events, run, 45 * SECOND)
    assert found.n_starts_met > 500
    assert run.record.config.clear_s == 45.0


@given(logs(), job_sets(), st.sampled_from([0, 5, 40]))
def test_first_order_of_random_replays(events, jobs, clear_s):
    run = replay_log(events, jobs, "equal-share", record_nodes=True, clear=clear_s, max_parallel=3, **_OF_LOOP)
    expected = _recomputed(events, run, clear_s * SECOND)
    found = run.summary.batch_starts
    # a job may end, or give a node back, at the very instant of a start: its table shows no difference to a reclaim
    assert found.n_starts_met <= expected.pop("n_starts_met")
    assert found.n_nodes_met <= expected.pop("n_nodes_met")
    assert found.delay_node_us <= expected.pop("delay_node_us")
    assert {name: found[name] for name in expected} == expected


def test_nodes_that_go_down_or_start_free_are_no_delay():
    """n0 is held and goes down, n1 is held and a batch job takes it with n2, which is free; n2 again alone."""
    events = NodeEvents.from_arrays(
        ["n0", "n1", "n2"],
        [NodeState.IDLE] * 3,
        [10 * SECOND, 20 * SECOND, 20 * SECOND, 30 * SECOND, 40 * SECOND],
        [0, 1, 2, 2, 2],
        [NodeState.DOWN, NodeState.BUSY, NodeState.BUSY, NodeState.IDLE, NodeState.BUSY],
        0,
        100 * SECOND,
    )
    jobs = [job(rates=(0.0, 10.0), work=250.0)]  # done at 35 s
    found = replay_log(events, jobs, "equal-share", clear=7, **_OF_LOOP).summary.batch_starts
    assert (found.n_starts, found.n_starts_met, found.n_nodes_started, found.n_nodes_met) == (2, 1, 3, 1)
    assert found.delay_node_us == 2 * 7 * SECOND
    assert found.busy_node_us == (80 + 10 + 60) * SECOND
    assert found.delay_share == pytest.approx(14 / 150)


def test_a_held_node_that_goes_down_as_another_starts_is_not_met():
    events = NodeEvents.from_arrays(
        ["n0", "n1"], [NodeState.IDLE] * 2, [10 * SECOND] * 2, [0, 1], [NodeState.DOWN, NodeState.BUSY], 0, 20 * SECOND
    )
    found = replay_log(events, [job(rates=(0.0, 10.0))], "equal-share", **_OF_LOOP).summary.batch_starts
    assert (found.n_starts, found.n_starts_met, found.n_nodes_started, found.n_nodes_met) == (1, 0, 1, 0)


def test_every_node_that_was_met_is_kept_however_many_come_at_once():
    found, n_met = BatchStarts(), [700, 700, 5000, 1]
    found.keeps_met = True
    for time_us, n in enumerate(n_met):
        found.note(time_us, n, np.arange(n, dtype=np.int32), n)
    assert found.met["time_us"].tolist() == np.repeat(range(4), n_met).tolist()
    assert found.met["node"].tolist() == [node for n in n_met for node in range(n)]


def test_a_cluster_has_no_batch_jobs():
    run = replay_log(jobs=[job(work=100.0)], cluster="a=4")
    assert run.summary.batch_starts is None
    with pytest.raises(InputError, match="reserve cannot be combined with --cluster"):
        replay_log(jobs=[job(work=100.0)], cluster="a=4", reserve=1)


# -- notice -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("clear_s", "notice", "lost"), [(30, False, 100.0), (4, True, 60.0), (30, True, 0.0)])
def test_notice_saves_what_the_clearing_time_covers(clear_s, notice, lost):
    """Two nodes at 10 samples/s and a scale-down cost of 5 s: losing one costs 100 samples, 20 for each second."""
    events = log(2, [(10, 1, False)], 100, idle_first=[0, 1])
    run = replay_log(events, [job(down_s=5.0)], "equal-share", clear=clear_s, notice=notice, **_OF_LOOP)
    if notice and lost:
        lost = 20 * (5 - clear_s)
    assert run.summary.ledger.preemption_samples == pytest.approx(lost)
    assert sum(run.table("decisions")["preemption_cost_samples"].to_pylist()) == pytest.approx(lost)
    assert run.summary.ledger.samples == pytest.approx(10 * 20 + 90 * 10 - lost)


def test_notice_lowers_no_bound_below_a_run():
    """Free preemption lets a job swap nodes for less than the scale-down cost: the bound has to know."""
    changes = [(t, 1, t % 20 == 0) for t in range(10, 400, 10)]
    events = log(2, changes, 400, idle_first=[0, 1])
    jobs = [job(down_s=30.0, up_s=1.0)]
    run = replay_log(events, jobs, unlimited_work=True, max_parallel=1, notice=True, efficiency=False)
    assert run.summary.bound.kind != "priced"
    assert run.summary.bound.share <= 1


# -- idle nodes that are left alone -----------------------------------------------------------------------


def _aged(events: NodeEvents, age_us: int) -> NodeEvents:
    """The log in which every idle interval begins later by ``age_us``, or is none."""
    state = dict.fromkeys(range(len(events.nodes)), int(NodeState.BUSY))
    since = dict.fromkeys(state, 0)
    rows = []
    for time_us, node, after in [*_rows(events), *((events.window_end_us + 1, k, -1) for k in state)]:
        if state[node] == NodeState.IDLE and time_us - since[node] > age_us:
            rows += [(since[node] + age_us, node, int(NodeState.IDLE)), (time_us, node, int(NodeState.BUSY))]
        state[node], since[node] = after, time_us
    rows = sorted(row for row in rows if row[0] <= events.window_end_us)
    times, nodes, states = zip(*rows, strict=True) if rows else ((), (), ())
    n = len(events.nodes)
    return NodeEvents.from_arrays(
        events.nodes, [NodeState.BUSY] * n, times, nodes, states, events.window_start_us, events.window_end_us
    )


@given(logs(), job_sets(), st.sampled_from([1, 7, 30]))
def test_a_minimum_age_is_a_log_whose_idle_intervals_begin_later(events, jobs, age_s):
    # an instant more adds up progress in other parts: nothing that is decided may depend on the last digit
    jobs = [replace(each, work_samples=1e9, scale_up_cost_s=0.0, scale_down_cost_s=0.0) for each in jobs]
    options = {"max_parallel": 2, "policy": "bftrainer", **_OF_LOOP}
    young = replay_log(events, jobs, min_age=age_s, **options)
    later = replay_log(_aged(events, age_s * SECOND), jobs, **options)
    assert young.summary.ledger.samples == pytest.approx(later.summary.ledger.samples, rel=1e-9)
    assert young.summary.n_preemptions == later.summary.n_preemptions
    assert young.table("allocations").equals(later.table("allocations"))
    assert young.summary.ledger.idle_node_us >= later.summary.ledger.idle_node_us


class _Watching(RandomCounts):
    def decide(self, state):
        assert np.count_nonzero(state.nodes.is_idle) == state.n_idle
        return super().decide(state)


@given(logs(), job_sets(), st.integers(1, 5), st.integers(0, 3), st.sampled_from([0, 7]))
def test_a_reserve_takes_every_free_node_first(events, jobs, reserve, seed, age_s):
    run = replay_log(
        events, jobs, _Watching(seed, ANY_TRIGGER), ReplaySettings(2, reserve=reserve, min_age_s=age_s), **_OF_LOOP
    )
    pool = {row["time"]: row["n_idle"] for row in run.table("pool").to_pylist()}
    times = sorted(pool)
    held_before = 0
    for row in run.table("decisions").to_pylist():
        n_idle = pool[max(time for time in times if time <= row["time"])]
        alone = n_idle - row["n_idle"]
        assert 0 <= alone <= n_idle
        assert row["n_nodes_used"] <= row["n_idle"]
        # fewer than the reserve only while jobs hold all others
        assert alone >= reserve or row["n_idle"] <= held_before
        held_before = row["n_nodes_used"]
    run.summary.ledger.close()


def test_a_reserve_is_what_batch_jobs_start_on():
    """Four idle nodes, one left alone, the last: a batch start on it meets nobody, and no node is free to refill it."""
    events = log(4, [(10, 3, False), (20, 3, True), (30, 0, False)], 100, idle_first=[0, 1, 2, 3])
    run = replay_log(events, [job()], "equal-share", reserve=1, **_OF_LOOP)
    assert run.table("decisions")["n_idle"].to_pylist() == [3, 2]
    found = run.summary.batch_starts
    assert (found.n_starts, found.n_starts_met) == (2, 1)
    assert run.summary.ledger.samples == pytest.approx(30 * 30 + 70 * 20)


def test_the_reserve_gives_back_what_young_nodes_make_up():
    """n0 and n1 are old at 10 s, n1 is the reserve; n2 comes at 20 s and counts as one until it is old at 30 s."""
    events = log(3, [(20, 2, True)], 40, idle_first=[0, 1])
    run = replay_log(events, [job()], "equal-share", reserve=1, min_age=10, **_OF_LOOP)
    assert run.table("decisions")["n_idle"].to_pylist() == [0, 1, 2]  # and at 30 s n2 is the reserve: nothing new
    assert run.summary.ledger.samples == pytest.approx(10 * 10 + 20 * 20)


def test_a_job_that_loses_its_node_as_another_comes_is_news():
    """n1 is the reserve; at 10 s n0, which the job holds, goes, and n2 comes."""
    events = log(3, [(10, 0, False), (10, 2, True)], 100, idle_first=[0, 1])
    run = replay_log(events, [job(rates=(0.0, 10.0))], "equal-share", reserve=1, **_OF_LOOP)
    assert run.summary.ledger.samples == pytest.approx(1000)


def test_a_node_that_comes_as_one_of_another_type_goes_is_news():
    """n2 is the reserve; at 10 s n0, which no job can use, goes, and n1, which the job can use, comes."""
    events = typed_log("v100 p100 v100", 100, [(10, 0, False), (10, 1, True)], busy_first=[1])
    policy = Scripted(Step({}), Step({0: [1]}), wakes_on=ANY_TRIGGER)
    jobs = [typed_job(rates={"p100": (0.0, 10.0)})]
    run = replay_log(events, jobs, policy, ReplaySettings(3, reserve=1), **_OF_LOOP)
    assert run.summary.ledger.samples == pytest.approx(900)


def test_the_published_clock_leaves_nothing_alone():
    with pytest.raises(InputError, match="leaves no idle node alone"):
        replay_log(log(2, [], 10, [0, 1]), [job()], reserve=1, semantics="published")
