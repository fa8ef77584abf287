"""What a policy can know of how long a job has run on how many nodes, followed by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bfreplay.policies import ANY_TRIGGER, PolicyState, Trigger
from bfreplay.policies.learning.holds import HoldTracker, Measurement
from tests.policies.small_states import SECOND, state_of

RATES = [[0.0, 10.0, 19.0, 27.0, 34.0], [0.0, 1.0, 2.0, 3.0, 4.0]]
A_AT_2 = Measurement(job=0, model=-1, count=2, rate=19.0, worth=19.0)
A_AT_3 = Measurement(job=0, model=-1, count=3, rate=27.0, worth=27.0)
B_AT_1 = Measurement(job=1, model=-1, count=1, rate=1.0, worth=1.0)


def _at(seconds: float, current: list[int], job: list[int] | None = None, **changes: object) -> PolicyState:
    """Jobs 0 and 1, or those in ``job``, which hold ``current`` nodes."""
    job = list(range(len(current))) if job is None else job
    changes = {"scale_up_cost_s": [5.0] * len(job), "scale_down_cost_s": [2.0] * len(job), **changes}
    return state_of(
        [RATES[number] for number in job], 8, time_us=round(seconds * SECOND), current=current, job=job, **changes
    )


def _follow(*steps: tuple[PolicyState, list[int]], wakes_on: Trigger = ANY_TRIGGER) -> list[list[Measurement]]:
    """What is measured at each of the steps: a state, and the counts that are decided there."""
    holds = HoldTracker(30.0, wakes_on)
    found = []
    for state, counts in steps:
        found.append(holds.observe(state))
        holds.note_decision(state, np.array(counts))
    return found


def test_a_count_is_measured_once_it_was_kept_for_the_whole_time_and_once_only():
    steps = [(_at(t, [0] if t == 0 else [2]), [2]) for t in (0, 29.999999, 30, 31, 300)]
    assert _follow(*steps) == [[], [], [A_AT_2], [], []]


def test_a_job_that_grows_or_shrinks_is_measured_after_its_pause():
    grown = [(_at(0, [1]), [3]), (_at(34.9, [3]), [3]), (_at(35, [3]), [3])]
    assert _follow(*grown) == [[], [], [A_AT_3]]
    shrunk = [(_at(0, [3]), [2]), (_at(31.9, [2]), [2]), (_at(32, [2]), [2])]
    assert _follow(*shrunk) == [[], [], [A_AT_2]]


def test_a_start_from_zero_or_from_below_the_minimum_has_no_pause():
    for current in (0, 1):
        steps = [(_at(0, [current], min_nodes=[2]), [2]), (_at(30, [2], min_nodes=[2]), [2])]
        assert _follow(*steps) == [[], [A_AT_2]]


def test_a_change_of_the_count_starts_anew():
    steps = [(_at(0, [0]), [2]), (_at(29, [2]), [3]), (_at(31, [3]), [2]), (_at(62.9, [2]), [2]), (_at(63, [2]), [2])]
    assert _follow(*steps) == [[], [], [], [], [A_AT_2]]


def test_a_job_that_keeps_its_count_is_measured_by_its_curve_as_it_is_then():
    state = _at(30, [2], weight=[2.0])
    told = replace(state, throughput=np.array([[0, 9.0, 15.0]]), objective=np.array([[0, 9.0, 60.0]]))
    assert _follow((_at(0, [0]), [2]), (told, [2])) == [[], [replace(A_AT_2, rate=15.0, worth=30.0)]]


def test_a_count_that_a_reclaim_ends_was_run_on_until_then():
    steps = [(_at(0, [0, 0]), [3, 1]), (_at(30, [2, 1]), [2, 1])]
    assert _follow(*steps) == [[], [A_AT_3, B_AT_1]]


def test_after_a_reclaim_the_job_pauses_even_when_it_gets_its_count_back():
    # reclaimed to 2 and grown to 3 in one instant: 2 s for the loss and 5 s for the gain
    steps = [(_at(0, [0]), [3]), (_at(10, [2]), [3]), (_at(46.9, [3]), [3]), (_at(47, [3]), [3])]
    assert _follow(*steps) == [[], [], [], [A_AT_3]]


def test_when_nobody_ran_on_nobody_knows_when_the_nodes_went():
    # all nodes may have gone at 1 s, and a policy is not asked while there are none; the loss takes 2 s of the new run
    steps = [(_at(0, [0, 0]), [3, 1]), (_at(100, [0, 0]), [3, 1]), (_at(131, [3, 1]), [3, 1])]
    assert _follow(*steps, (_at(132, [3, 1]), [3, 1])) == [[], [], [], [A_AT_3, B_AT_1]]


def test_a_job_that_left_is_measured_when_another_one_ran_on():
    steps = [(_at(0, [0, 0]), [3, 1]), (_at(30, [1], job=[1]), [1])]
    assert _follow(*steps) == [[], [A_AT_3, B_AT_1]]
    alone = [(_at(0, [0]), [3]), (_at(30, [0], job=[1]), [1]), (_at(60, [1], job=[1]), [1])]
    assert _follow(*alone) == [[], [], [B_AT_1]]


@pytest.mark.parametrize(
    ("wakes_on", "reclaimed", "left"),
    [(ANY_TRIGGER, True, True), (Trigger.POOL, True, False), (Trigger.COMPLETION, False, True)],
)
def test_only_what_a_policy_is_asked_after_is_timed(wakes_on, reclaimed, left):
    reclaim = [(_at(0, [0, 0]), [3, 1]), (_at(30, [2, 1]), [2, 1])]
    assert _follow(*reclaim, wakes_on=wakes_on)[1] == [*([A_AT_3] if reclaimed else []), B_AT_1]
    departure = [(_at(0, [0, 0]), [3, 1]), (_at(30, [1], job=[1]), [1])]
    assert _follow(*departure, wakes_on=wakes_on)[1] == [*([A_AT_3] if left else []), B_AT_1]


def test_a_job_below_its_minimum_shows_nothing():
    steps = [(_at(0, [3], min_nodes=[3]), [3]), (_at(10, [2], min_nodes=[3]), [2]), (_at(99, [2], min_nodes=[3]), [2])]
    assert _follow(*steps) == [[], [], []]


def test_jobs_may_come_in_another_order():
    steps = [(_at(0, [0, 0]), [3, 1]), (_at(20, [1, 3], job=[1, 0]), [1, 3]), (_at(30, [3, 1]), [3, 1])]
    assert _follow(*steps) == [[], [], [B_AT_1, A_AT_3]]


def test_a_map_that_was_there_before_the_first_question_counts_from_the_question_on():
    steps = [(_at(50, [2]), [2]), (_at(79, [2]), [2]), (_at(80, [2]), [2])]
    assert _follow(*steps) == [[], [], [A_AT_2]]


def test_the_objective_is_measured_for_a_weight_of_one():
    changes = {"objective": 3.0 * np.array(RATES[:1]), "weight": [3.0], "model": [7]}
    steps = [(_at(0, [0], **changes), [2]), (_at(30, [2], **changes), [2])]
    assert _follow(*steps)[1] == [Measurement(job=0, model=7, count=2, rate=19.0, worth=19.0)]
