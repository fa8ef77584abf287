"""Max-min fairness decision after decision: nobody starves."""

from __future__ import annotations

import numpy as np
import pytest

from bfreplay.policies import BFTrainerPolicy
from tests.policies.small_states import NOW_US, state_of

T_FWD_S = 120.0


def shares_after(steps, rates, n_idle, step_s, objective="max-min", **changes):
    """Service of each job after ``steps`` decisions that last ``step_s`` each, rescaling free."""
    policy = BFTrainerPolicy(T_FWD_S, objective=objective)
    n_jobs = len(rates)
    progress, current = np.zeros(n_jobs), np.zeros(n_jobs, dtype=np.int64)
    best = np.array(rates, dtype=np.float64).max(axis=1)
    for step in range(steps):
        age_s = [step * step_s] * n_jobs
        state = state_of(rates, n_idle, current=current, progress=progress, age_s=age_s, **changes)
        current = policy.decide(state).counts
        progress = progress + step_s * np.array(rates)[np.arange(n_jobs), current]
    return progress / (best * steps * step_s)


@pytest.mark.parametrize("step_s", [30.0, 3_600.0])
def test_more_jobs_than_nodes_take_turns(step_s):
    shares = shares_after(60, [[0, 1], [0, 5], [0, 50], [0, 2], [0, 2]], 2, step_s)
    assert shares.sum() == pytest.approx(2.0)
    assert shares.min() > 0.35
    assert shares.max() < 0.45


def test_wide_jobs_take_turns_with_narrow_ones():
    # the wide job fits only alone
    shares = shares_after(
        100, [[0, 0, 0, 8], [0, 5, 5, 5], [0, 5, 5, 5], [0, 5, 5, 5]], 3, 60.0, min_nodes=[3, 1, 1, 1]
    )
    assert shares.min() > 0.4


def test_weights_become_shares_over_time():
    shares = shares_after(120, [[0, 1], [0, 1], [0, 1]], 1, 60.0, weight=[2, 1, 1])
    assert shares == pytest.approx([0.5, 0.25, 0.25], abs=0.03)


def test_a_job_that_waited_for_a_week_beside_old_ones_is_fed_first():
    week_s = 7 * 86_400
    rates = [[0, 10], [0, 10], [0, 10]]
    state = state_of(rates, 1, age_s=[week_s] * 3, progress=[0, week_s, week_s], current=[0, 1, 0], time_us=NOW_US)
    assert BFTrainerPolicy(T_FWD_S, objective="max-min").decide(state).counts.tolist() == [1, 0, 0]


def test_throughput_does_starve_the_slow_ones():
    shares = shares_after(60, [[0, 1], [0, 5], [0, 50]], 1, 60.0, objective="throughput")
    assert shares.tolist() == [0, 0, 1]
