"""Which forward-looking time is learnt from what, and when all is forgotten."""

from __future__ import annotations

import numpy as np
import pytest

from bfreplay.errors import InputError
from bfreplay.policies import BFTrainerPolicy, Policy, PolicyState
from bfreplay.policies.forward_time import AutoForwardTime, FixedForwardTime, Shadows, forward_time_of
from bfreplay.testing import PolicyContract
from tests.policies.small_states import SECOND, state_of


class TestBFTrainerPolicyWithAuto(PolicyContract):
    def make(self) -> Policy:
        return BFTrainerPolicy("auto")


def _at(seconds: float, n_idle: int, current: list[int], **changes: object) -> PolicyState:
    """Two jobs of 10 and 12 samples/s a node, 10 s to grow or shrink."""
    rates = [[10.0 * n for n in range(5)], [12.0 * n for n in range(5)]][: len(current)]
    cost_s = [10.0] * len(current)
    return state_of(
        rates,
        n_idle,
        time_us=round(seconds * SECOND),
        current=current,
        scale_up_cost_s=cost_s,
        scale_down_cost_s=cost_s,
        **changes,
    )


def _follow(forward: AutoForwardTime, gap_s: float, n_decisions: int, start_s: float = 0.0) -> list[float]:
    """Times at decisions every ``gap_s`` while the pool goes from 3 nodes to 4 and back, with one job on them.

    To take the fourth costs 30 x 10 samples and makes 10 a second: it pays if it stays for more than 30 s, and the
    40 x 10 of the preemption make that 70.
    """
    policy = BFTrainerPolicy(forward)
    told, count = [], 0
    for k in range(n_decisions):
        n_idle = 3 + k % 2
        decision = policy.decide(_at(start_s + k * gap_s, n_idle, [min(count, n_idle)]))
        count = int(decision.counts[0])
        told.append(decision.t_fwd_s)
    return told


def test_shadows_gain_what_their_jobs_make_less_what_they_are_charged():
    shadows = Shadows(np.array([1.0, 100.0]))
    assert shadows.follow(_at(0, 4, [0])).tolist() == [0.0, 0.0]  # from nothing is free: both start on 4 nodes
    shadows.note_decision(np.array([4]))
    # one node is taken back: 40 samples/s for 10 s of preemption, after 20 s of 40 samples/s
    assert shadows.follow(_at(20, 3, [3])).tolist() == [400.0, 400.0]
    shadows.note_decision(np.array([3]))
    # 10 s later it comes back: 1 s ahead does not pay 30 x 10, 100 s ahead does
    assert shadows.follow(_at(30, 4, [3])).tolist() == [300.0, 0.0]
    shadows.note_decision(np.array([4]))
    assert shadows.follow(_at(60, 4, [4])).tolist() == [900.0, 1200.0]


def test_time_without_any_node_is_credited_to_nobody():
    shadows = Shadows(np.array([1.0, 100.0]))
    shadows.follow(_at(0, 4, [0]))
    shadows.note_decision(np.array([4]))
    assert shadows.follow(_at(1000, 4, [0])).tolist() == [-400.0, -400.0]  # the preemption alone


def test_jobs_that_come_and_go_keep_the_others_counts():
    shadows = Shadows(np.array([100.0]))
    shadows.follow(_at(0, 4, [0, 0], job=[3, 5]))  # the second job makes more: it has all 4
    shadows.note_decision(np.array([0, 4]))
    assert shadows.follow(_at(10, 4, [4], job=[5])).tolist() == [480.0]  # as job 5, which makes 12 a node
    shadows.note_decision(np.array([4]))
    assert shadows.follow(_at(20, 4, [4], job=[5], objective=[[0.0] * 5])).tolist() == [400.0]  # and now 10


def test_the_first_decisions_are_made_with_the_default():
    assert _follow(AutoForwardTime(), 5.0, 20) == [120.0] * 20
    assert _follow(AutoForwardTime(start_s=77.0), 5.0, 20) == [77.0] * 20


def test_when_the_pool_changes_fast_the_time_falls_and_when_it_changes_slowly_it_rises():
    fast, slow = (_follow(AutoForwardTime(), gap_s, 200)[-1] for gap_s in (5.0, 500.0))
    assert fast < 30.0
    assert slow > 70.0


def test_what_is_long_ago_is_forgotten():
    forward = AutoForwardTime(memory=20)
    first = _follow(forward, 5.0, 100)[-1]
    later = _follow(forward, 500.0, 400, start_s=10_000.0)[-1]
    assert later > 2 * first


def test_where_it_makes_no_difference_it_stays_where_it_was():
    policy = BFTrainerPolicy("auto")
    times = {policy.decide(_at(k, 4, [min(4, 4 * k)])).t_fwd_s for k in range(60)}
    assert max(times) == pytest.approx(120.0)
    assert min(times) == pytest.approx(120.0)


@pytest.mark.parametrize("how", ["clock", "close"])
def test_a_new_replay_begins_with_nothing_learnt(how):
    forward = AutoForwardTime()
    once = _follow(forward, 5.0, 60)
    assert once[-1] != 120.0
    if how == "close":
        forward.close()
        forward.close()
    assert _follow(forward, 5.0, 60, start_s=0.0 if how == "clock" else 1e6)[:20] == [120.0] * 20


def test_nothing_made_or_numbers_beyond_reason_leave_the_default():
    for rates in ([[0.0] * 5], [[0.0, 1e289, 1e290, 1e290, 1e290]]):
        forward = AutoForwardTime()
        for k in range(60):
            state = _at(k, 4, [0], objective=rates)
            assert forward.seconds(state) == 120.0
            forward.note_decision(state, np.zeros(1, np.int64))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"start_s": 0.0}, "not a positive number"),
        ({"candidates_s": ()}, "not in order"),
        ({"candidates_s": (20.0, 10.0)}, "not in order"),
        ({"candidates_s": (10.0, -1.0)}, "not a positive number"),
        ({"memory": 0}, "memory"),
        ({"sharpness": 0.0}, "sharpness"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        AutoForwardTime(**options)


@pytest.mark.parametrize("given", ["Auto", "", "120", -1.0, True, None, float("nan")])
def test_what_is_no_forward_looking_time_is_refused_with_what_is_one(given):
    with pytest.raises(InputError, match=r"forward-looking time(.|\n)*'auto'"):
        forward_time_of(given)


def test_a_number_a_word_and_an_object_are_forward_looking_times():
    assert forward_time_of(np.float64(30)).describe() == {"name": "fixed", "t_fwd_s": 30.0}
    assert isinstance(forward_time_of(30), FixedForwardTime)
    assert forward_time_of("auto").describe()["name"] == "auto"
    own = AutoForwardTime(memory=7)
    assert forward_time_of(own) is own


def test_the_record_has_a_number_or_what_decides_it_never_both():
    assert BFTrainerPolicy(60.0).describe()["t_fwd_s"] == 60.0
    assert "forward_time" not in BFTrainerPolicy(60.0).describe()
    described = BFTrainerPolicy("auto").describe()
    assert "t_fwd_s" not in described
    assert described["forward_time"] == {
        "name": "auto",
        "start_s": 120.0,
        "memory_decisions": 200,
        "sharpness": 600.0,
        "candidates_s": [7.5, 15.0, 30.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0],
    }


def test_with_many_jobs_the_shadows_take_turns_and_the_time_is_learnt_all_the_same():
    rates = [[(3.0 + k % 5) * n for n in range(3)] for k in range(40)]
    times = {}
    for gap_s in (3.0, 500.0):
        policy = BFTrainerPolicy("auto")
        counts = np.zeros(40, np.int64)
        for k in range(400):
            n_idle, current = 30 + k % 2, counts.copy()
            if current.sum() > n_idle:
                current[np.flatnonzero(current)[-1]] -= 1
            state = state_of(
                rates,
                n_idle,
                time_us=round(k * gap_s * SECOND),
                current=current,
                scale_up_cost_s=[10.0] * 40,
                scale_down_cost_s=[10.0] * 40,
            )
            decision = policy.decide(state)
            counts = decision.counts
        times[gap_s] = decision.t_fwd_s
    assert times[3.0] < 60.0 < times[500.0], times


def test_after_a_rest_shadows_begin_with_what_the_real_jobs_hold():
    shadows = Shadows(np.array([1.0, 100.0]))
    shadows.follow(_at(0, 4, [0]))
    shadows.note_decision(np.array([4]))
    shadows.rest()
    assert shadows.follow(_at(500, 4, [2])).tolist() == [-0.0, -200.0]  # nothing for the rest; from 2 to 4 nodes
    shadows.note_decision(np.array([4]))
    assert shadows.follow(_at(510, 4, [4])).tolist() == [200.0, 400.0]
