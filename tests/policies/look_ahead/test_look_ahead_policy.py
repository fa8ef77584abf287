"""What the policy that expects the pool to do what it did before remembers, and what it concludes."""

from __future__ import annotations

import numpy as np
import pytest

from bfreplay import replay_log
from bfreplay.bounds import Effort, upper_bound
from bfreplay.policies import BFTrainerPolicy, PolicyState
from bfreplay.policies.look_ahead import ForesightPolicy, LookAheadPolicy
from bfreplay.replay import ReplaySettings
from bfreplay.runs.run_checks import jobs_in_window
from bfreplay.workload import JobSet
from tests.policies.look_ahead.questions import Listening, pools
from tests.replay.tiny import job, log

T_FWD_S = 50.0


def _asked(states: list[PolicyState], **parameters: int) -> list[np.ndarray]:
    """What the counts were worth in the question about each state."""
    listening = Listening()
    policy = LookAheadPolicy(**parameters, t_fwd_s=T_FWD_S, solver=listening)
    for state in states:
        policy.decide(state)
    return listening.gains


def _as_bftrainer(state: PolicyState) -> np.ndarray:
    return T_FWD_S * state.objective


def _up_and_down(n: int, seed: int = 0) -> list[PolicyState]:
    """``n`` pools of 1 to 6 nodes, each another size than the one before, at random times."""
    rng = np.random.default_rng(seed)
    size, at_s, changes = 3, 0.0, []
    for _ in range(n):
        size = int(rng.choice([other for other in range(1, 7) if other != size]))
        at_s += float(rng.integers(1, 90))
        changes.append((at_s, size))
    return pools(*changes)


def test_it_follows_what_came_after_the_latest_pool_of_this_size():
    # two nodes were followed by one after 7 s; before that by three after 90 s, which counts for nothing here
    states = pools((0, 2), (90, 3), (100, 2), (107, 1), (200, 2))
    *_, last = _asked(states, events=1, futures=1, memory=10)
    # the second node is worth 10 to the first job and 8 to the second, so at one idle node the price is 10. On one node
    # the first job makes 10 and pays 10, on two it nets -2, on three -6; up to 5 s of its rate brings it down to one
    assert last[0].tolist() == pytest.approx([0.0, 70.0, 7 * 18 - 90, 7 * 24 - 120])
    # the second job nets 2 a second on one node; from two it is no better to go down, which costs 100
    assert last[1].tolist() == pytest.approx([0.0, 84.0, 7 * 20 - 100, 7 * 21 - 105])


def test_several_futures_count_alike():
    states = pools((0, 2), (90, 3), (100, 2), (107, 1), (200, 2))
    one = _asked(states, events=1, futures=1, memory=10)[-1]
    other = _asked([*states[:2], *pools((100, 2))], events=1, futures=1, memory=10)[-1]
    both = _asked([*states[:4], *pools((200, 2))], events=1, futures=2, memory=10)[-1]
    assert not np.array_equal(one, other)
    assert both == pytest.approx((one + other) / 2)


def test_a_pool_of_another_size_is_followed_by_its_changes():
    # from four nodes it lost one after 10 s, so from three it expects two, at 8 a node for 50 s
    *_, gain = _asked(pools((0, 4), (10, 3)), events=1, futures=1, memory=2)
    assert gain[0].tolist() == pytest.approx([0.0, 100.0, 180.0, 240.0 - 100])


def test_it_never_expects_fewer_nodes_than_none():
    # nine became one: from one it expects none, at 12 a node, and the first job stops rather than pay for 50 s
    *_, gain = _asked(pools((0, 9), (10, 1)), events=1, futures=1, memory=2)
    assert gain[0].tolist() == pytest.approx([0.0, 100.0 - 50, 180.0 - 90, 240.0 - 120])


def test_before_enough_is_seen_it_decides_as_bftrainer():
    states = _up_and_down(12)
    gains = _asked(states, events=3, futures=4, memory=20)
    for k, (gain, state) in enumerate(zip(gains, states, strict=True)):
        # four moments with three changes after each: the first is pool 0, the last may be four pools ago
        assert np.array_equal(gain, _as_bftrainer(state)) == (k < 6)


def test_the_least_memory_is_enough():
    gains = _asked(_up_and_down(12), events=3, futures=4, memory=7)
    assert not np.array_equal(gains[-1], _as_bftrainer(_up_and_down(12)[-1]))


def test_jobs_that_come_and_go_are_no_pool_changes():
    states = pools((0, 2), (90, 3), (100, 2), (107, 1), (200, 2))
    often = pools((0, 2), (20, 2), (90, 3), (100, 2), (101, 2), (107, 1), (150, 1), (200, 2))
    parameters = {"events": 1, "futures": 2, "memory": 10}
    assert np.array_equal(_asked(often, **parameters)[-1], _asked(states, **parameters)[-1])


@pytest.mark.parametrize("memory", [7, 11])
def test_what_is_long_ago_is_forgotten(memory):
    states = _up_and_down(5 * memory)
    parameters = {"events": 2, "futures": 4, "memory": memory}
    long = _asked(states, **parameters)
    for k in range(memory, len(states)):
        recent = _asked(states[k - memory + 1 : k + 1], **parameters)
        assert np.array_equal(long[k], recent[-1]), k
    longer = _asked(states, **{**parameters, "memory": 3 * memory})
    assert any(not np.array_equal(one, other) for one, other in zip(long, longer, strict=True))


def test_an_earlier_clock_or_a_close_is_a_new_beginning():
    states = _up_and_down(10)
    listening = Listening()
    policy = LookAheadPolicy(2, 2, 10, T_FWD_S, listening)
    fresh = _asked(states, events=2, futures=2, memory=10)
    assert not np.array_equal(fresh[-1], _as_bftrainer(states[-1]))
    for round_ in range(3):
        listening.gains.clear()
        for state in states:
            policy.decide(state)
        assert all(map(np.array_equal, listening.gains, fresh)), round_
        if round_:
            policy.close()


def test_the_clock_goes_back_even_where_the_pool_had_not_changed_since():
    states = pools((0, 2), (10, 1), (20, 2), (90, 2), (50, 2))
    gains = _asked(states, events=1, futures=1, memory=5)
    assert not np.array_equal(gains[3], _as_bftrainer(states[3]))
    assert np.array_equal(gains[4], _as_bftrainer(states[4]))


def _idle_intervals(n: int, idle_interval_s: float) -> tuple:
    """A node that is always idle, and two more for ``idle_interval_s`` every 100 s."""
    changes = [
        (100.0 * k + after, node, after == 0) for k in range(1, n) for after in (0, idle_interval_s) for node in (1, 2)
    ]
    return log(3, changes, 100.0 * n, idle_first=(0,)), JobSet([job(up_s=20.0, down_s=5.0)])


def _samples(events, jobs, policy) -> float:
    run = replay_log(events, jobs, policy, ReplaySettings(1), unlimited_work=True, efficiency=False, bound=False)
    return float(run.summary["ledger"]["samples"])


def test_it_learns_that_idle_intervals_are_short():
    events, jobs = _idle_intervals(60, 4.0)
    learned = _samples(events, jobs, LookAheadPolicy(2, 3, 50, 120.0))
    anchored = jobs_in_window(jobs, events, ReplaySettings(1), unlimited_work=True)
    bound = upper_bound(events, anchored, 1, effort=Effort.THOROUGH, evaluations=60)
    assert _samples(events, jobs, BFTrainerPolicy(120.0)) < 0.8 * learned
    assert learned <= _samples(events, jobs, ForesightPolicy(2, 120.0)) <= bound.samples


def test_it_learns_that_idle_intervals_are_long():
    events, jobs = _idle_intervals(60, 90.0)
    learned = _samples(events, jobs, LookAheadPolicy(2, 3, 50, 9.0))
    assert _samples(events, jobs, BFTrainerPolicy(9.0)) < 0.6 * learned


def test_it_grows_again_when_idle_intervals_become_long():
    """Sixty short idle intervals, then sixty long ones: it follows within its memory."""
    short = [(100.0 * k + after, node, after == 0) for k in range(1, 60) for after in (0, 4) for node in (1, 2)]
    long = [(100.0 * k + after, node, after == 0) for k in range(60, 120) for after in (0, 90) for node in (1, 2)]
    events = log(3, [*short, *long], 12_000, idle_first=(0,))
    run = replay_log(
        events,
        JobSet([job(up_s=20.0, down_s=5.0)]),
        LookAheadPolicy(2, 3, 20, 120.0),
        ReplaySettings(1),
        unlimited_work=True,
        efficiency=False,
        bound=False,
    )
    table = run.table("decisions").to_pylist()
    grown = [row["time"].timestamp() for row in table if row["counts"] == [3]]
    assert not [at for at in grown if 1000 <= at < 6000]
    assert len([at for at in grown if at > 9000]) == 29
