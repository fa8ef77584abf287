"""What the policy that knows the next events decides, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bfreplay import replay_log
from bfreplay.datasets import NodeEvents, NodeState
from bfreplay.policies import BFTrainerPolicy
from bfreplay.policies.look_ahead import ForesightPolicy
from bfreplay.replay import ReplaySettings
from bfreplay.workload import JobSet
from tests.policies.look_ahead.questions import Listening, pools
from tests.policies.small_states import state_of, states
from tests.replay.tiny import SECOND, job, log, logs


def _counts(events, jobs, policy) -> list[tuple[float, list[int]]]:
    table = replay_log(events, JobSet(jobs), policy, ReplaySettings(4), efficiency=False, bound=False).table(
        "decisions"
    )
    seconds = [time.timestamp() for time in table["time"].to_pylist()]
    return list(zip(seconds, table["counts"].to_pylist(), strict=True))


def test_it_does_not_grow_for_a_idle_interval_of_three_seconds():
    idle_interval = log(2, [(100, 1, True), (103, 1, False)], 400, idle_first=(0,))
    jobs = [job(up_s=10.0)]
    assert _counts(idle_interval, jobs, BFTrainerPolicy(120.0)) == [(0, [1]), (100, [2]), (103, [1])]
    assert _counts(idle_interval, jobs, ForesightPolicy(1, 120.0)) == [(0, [1]), (100, [1]), (103, [1])]


def test_it_grows_for_a_idle_interval_that_lasts_where_one_who_expects_little_does_not():
    idle_interval = log(2, [(100, 1, True), (300, 1, False)], 400, idle_first=(0,))
    jobs = [job(up_s=10.0)]
    assert _counts(idle_interval, jobs, BFTrainerPolicy(9.0)) == [(0, [1]), (100, [1]), (300, [1])]
    assert _counts(idle_interval, jobs, ForesightPolicy(1, 9.0)) == [(0, [1]), (100, [2]), (300, [1])]


def test_it_gives_a_node_up_for_a_job_that_can_have_it_long():
    # the second job would make 10 where the first makes 1, which pays for 20 s of 15 after 33 s
    calm = log(4, [(900, 3, True)], 1000, idle_first=(0, 1, 2))
    jobs = [job("first", rates=(0.0, 10.0, 14.0, 15.0), down_s=20.0), job("second", rates=(0.0, 10.0), submit_s=100)]
    assert _counts(calm, jobs, BFTrainerPolicy(10.0))[:2] == [(0, [3]), (100, [3, 0])]
    assert _counts(calm, jobs, ForesightPolicy(1, 10.0))[:2] == [(0, [3]), (100, [2, 1])]


def test_a_job_that_would_lose_its_nodes_at_once_is_not_started():
    # two nodes more at 100, none of the three from 105 to 400: what a pair makes in 5 s is less than what it loses
    changes = [(100, 1, True), (100, 2, True), *((at, node, at == 400) for at in (105, 400) for node in range(3))]
    gap = log(3, changes, 900, idle_first=(0,))
    jobs = [job("small", rates=(0.0, 30.0)), job("pair", rates=(0.0, 0.0, 50.0), min_nodes=2, down_s=30.0)]
    seen = _counts(gap, jobs, ForesightPolicy(2, 60.0))
    assert seen == [(0, [1, 0]), (100, [1, 0]), (105, [0, 0]), (400, [1, 2])]
    assert _counts(gap, jobs, BFTrainerPolicy(60.0))[1] == (100, [1, 2])


def _gain(policy_events, at_s, changes, end_s=1000.0, t_fwd_s=50.0):
    listening = Listening()
    policy = ForesightPolicy(policy_events, t_fwd_s, listening)
    policy.foresee(log(3, changes, end_s, idle_first=(0, 1)))
    policy.decide(state_of([[0.0, 10.0, 18.0, 24.0]], 2, time_us=round(at_s * SECOND)))
    return listening.gains[0][0].tolist()


def test_after_the_last_event_in_sight_the_pool_lasts_the_forward_looking_time():
    # prices of the one job: 10, 8, 6 a node at 0, 1, 2 idle nodes, 0 where it has all it can use. 30 s from now there
    # are none, so on a node a job makes what it costs or less
    changes = [(100, 0, False), (100, 1, False), (500, 0, True)]
    assert _gain(1, 70, changes) == [0.0, 300.0, 540.0, 720.0]
    # and with two in sight there is one, at 8 a node, from 500 on for another 50 s: the job goes to one node then,
    # which makes 2 a second net, whatever it had
    assert _gain(2, 70, changes) == pytest.approx([0.0, 300.0, 540.0, 720.0])
    # a node for the asking, without a price, for 50 s: to have three is worth no more than to get them then
    plenty = [(100, 2, True)]
    assert _gain(1, 70, plenty, end_s=10_000) == pytest.approx([0.0, 300.0, 540.0, 720.0])


def test_when_no_other_event_comes_it_knows_the_end_of_the_window():
    assert _gain(3, 40, [], end_s=100) == [0.0, 600.0, 1080.0, 1440.0]
    assert _gain(3, 40, [(10, 2, True), (20, 2, False)], end_s=100) == [0.0, 600.0, 1080.0, 1440.0]
    assert _gain(0, 40, [], end_s=100) == [0.0, 500.0, 900.0, 1200.0]


@given(events=logs(), state=states(), at_ms=st.integers(0, 300_000), sight=st.integers(1, 30), seed=st.integers(0, 99))
def test_it_knows_when_and_how_many_but_not_which(events, state, at_ms, sight, seed):
    order = np.random.default_rng(seed).permutation(len(events.nodes))
    listened = []
    for seen in (events, _renumbered(events, order)):
        listening = Listening()
        policy = ForesightPolicy(sight, 60.0, listening)
        policy.foresee(seen)
        fields = vars(state)
        policy.decide(type(state)(**{**fields, "time_us": at_ms * 1000}))
        listened.append(listening.gains[0])
    assert np.array_equal(*listened)


def _renumbered(events: NodeEvents, order: np.ndarray) -> NodeEvents:
    """The same log with node ``order[k]`` in place of node k."""
    start, *rest = events.batches()
    opening = np.empty_like(start.state)
    opening[order] = start.state
    times = np.concatenate([np.zeros(0, np.int64), *(batch.time_us for batch in rest)])
    nodes = np.concatenate([np.zeros(0, np.int64), *(order[batch.node] for batch in rest)])
    after = np.concatenate([np.zeros(0, np.int8), *(batch.state for batch in rest)])
    return NodeEvents.from_arrays(
        events.nodes,
        opening,
        times,
        nodes.astype(np.int32),
        [NodeState(state) for state in after.tolist()],
        events.window_start_us,
        events.window_end_us,
    )


def test_after_close_it_knows_nothing_and_decides_as_bftrainer():
    listening = Listening()
    policy = ForesightPolicy(5, 50.0, listening)
    policy.foresee(log(3, [(3, 2, True)], 1000, idle_first=(0, 1)))
    policy.decide(*pools((0, 2)))
    policy.close()
    policy.decide(*pools((0, 2)))
    before, after = listening.gains
    assert np.array_equal(after, 50.0 * pools((0, 2))[0].objective)
    assert not np.array_equal(before, after)


def test_prices_are_those_of_the_jobs_that_are_there():
    """The same tables under other bounds have other prices."""
    changes = [(10, 2, True), (300, 2, False)]
    listening = Listening()
    policy = ForesightPolicy(1, 50.0, listening)
    policy.foresee(log(3, changes, 1000, idle_first=(0, 1)))
    wide, narrow = pools((0, 2)), pools((0, 2), max_nodes=[3, 1])
    for state in (*wide, *narrow):
        policy.decide(state)
    alone = Listening()
    fresh = ForesightPolicy(1, 50.0, alone)
    fresh.foresee(log(3, changes, 1000, idle_first=(0, 1)))
    fresh.decide(*narrow)
    assert np.array_equal(listening.gains[1], alone.gains[0])
    assert not np.array_equal(listening.gains[0][0], listening.gains[1][0])  # the first job has the same bounds
