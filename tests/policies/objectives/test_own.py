"""BFTrainer's own objective: decisions in one call, with rows kept from the decision before."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bfreplay.milp import SolverStatus
from bfreplay.milp.exact import ExactSolver
from bfreplay.policies import PolicyState
from bfreplay.policies.objectives.own import OwnObjective
from bfreplay.saved_state import classes_inside, restore_state, save_state
from tests.examples import examples
from tests.policies.small_states import state_of, states


def _check(own: OwnObjective, state: PolicyState, t_fwd_s: float = 120.0) -> SolverStatus:
    """The decision in one call is the answer to the posed problem, to the last digit."""
    solver = ExactSolver()
    expected, found = solver.solve(OwnObjective().problem(state, t_fwd_s)), own.optimum(state, t_fwd_s, solver)
    assert repr(found) == repr(expected)
    assert found.bound == expected.bound or (np.isnan(found.bound) and np.isnan(expected.bound))
    assert found.solver_status == expected.solver_status
    return found.solver_status


@given(state=states(), t_fwd_s=st.sampled_from([0.5, 120.0, 1e300]))
def test_the_optimum_in_one_call_is_the_answer_to_the_posed_problem(state, t_fwd_s):
    _check(OwnObjective(), state, t_fwd_s)


def _curves(rng: np.random.Generator, n_jobs: int, width: int) -> np.ndarray:
    """Rates with dents and equal counts; of some jobs concave, of some falling at the end."""
    rates = np.zeros((n_jobs, width))
    steps = np.sort(rng.integers(0, 30, (n_jobs, width - 1)).astype(float), axis=1)[:, ::-1]
    rates[:, 1:] = np.cumsum(steps, axis=1)
    rugged = rng.random(n_jobs) < 0.6
    rates[rugged, 1:] += rng.integers(-25, 25, (int(rugged.sum()), width - 1))
    return np.maximum(rates, 0.0)


def _other_counts(rng: np.random.Generator, state: PolicyState, n_idle: int) -> np.ndarray:
    """What the jobs may hold: mostly what they have, as far as it is idle."""
    left, counts = n_idle, state.current.copy()
    for j in rng.permutation(state.n_jobs):
        if rng.random() < 0.2:
            counts[j] = rng.integers(0, state.max_nodes[j] + 1)
        counts[j] = min(counts[j], left)
        left -= counts[j]
    return counts


@settings(deadline=None, max_examples=examples(150))
@given(seed=st.integers(0, 2**32 - 1))
def test_rows_kept_from_earlier_decisions_change_no_answer(seed):
    rng = np.random.default_rng(seed)
    n_jobs, width = int(rng.integers(1, 9)), int(rng.integers(2, 14))
    own, t_fwd_s = OwnObjective(), 120.0
    min_nodes = rng.integers(1, width, n_jobs)
    state = state_of(
        _curves(rng, n_jobs, width).tolist(),
        int(rng.integers(1, 3 * width)),
        min_nodes=min_nodes,
        max_nodes=rng.integers(min_nodes, width),
        scale_up_cost_s=rng.integers(0, 60, n_jobs),
        scale_down_cost_s=rng.integers(0, 60, n_jobs),
    )
    whole = state
    for _ in range(15):
        n_idle = max(state.n_idle + int(rng.integers(-5, 6)), 1)
        state = replace(state, n_idle=n_idle, current=_other_counts(rng, state, n_idle))
        match rng.integers(0, 12):
            case 0:
                t_fwd_s = float(rng.integers(1, 400))
            case 1:
                rows = rng.permutation(whole.n_jobs)[: rng.integers(1, whole.n_jobs + 1)]
                state = replace(whole, n_idle=n_idle, current=np.zeros(whole.n_jobs, np.int64)).only(rows)
            case 2:
                name = rng.choice(["scale_up_cost_s", "scale_down_cost_s"])
                state = replace(state, **{str(name): rng.integers(0, 60, state.n_jobs).astype(float)})
            case 3:
                low = rng.integers(1, width, state.n_jobs)
                state = replace(state, min_nodes=low, max_nodes=np.maximum(low, state.max_nodes))
            case 5:
                most = np.maximum(state.current, state.min_nodes)
                state = replace(state, max_nodes=np.minimum(most + rng.integers(0, 4, state.n_jobs), width - 1))
            case 4:  # like a job that changes its batch size: in the same array
                state.objective.setflags(write=True)
                state.objective[rng.integers(state.n_jobs), 1:] = rng.integers(0, 300, width - 1)
                state.objective.setflags(write=False)
        for name in ("current", "min_nodes", "max_nodes", "scale_up_cost_s", "scale_down_cost_s", "objective"):
            getattr(state, name).setflags(write=False)  # compiled once: each mixture of flags is a type of its own
        _check(own, state, t_fwd_s)


def test_numbers_that_are_too_large_count_only_where_they_are_within_reach():
    own = OwnObjective()
    state = state_of([[0.0, 5.0, 9.0, 1e295], [0.0, 3.0, 6.0, 7.0]], 2)
    assert _check(own, state) == SolverStatus.OPTIMAL
    assert _check(own, replace(state, n_idle=3)) == SolverStatus.ERROR
    assert _check(own, state) == SolverStatus.OPTIMAL


def test_a_state_in_which_jobs_hold_more_than_is_idle_is_decided_alike():
    rng = np.random.default_rng(3)
    for _ in range(300):
        rates = _curves(rng, 3, 5).tolist()
        _check(OwnObjective(), state_of(rates, 2, current=[4, 1, 4], scale_down_cost_s=[5, 5, 5]))


def test_copies_and_saved_states_need_no_rows():
    own = OwnObjective()
    state = state_of([[0.0, 5.0, 9.0], [0.0, 3.0, 6.0]], 3)
    _check(own, state)
    small = len(pickle.dumps(OwnObjective()))
    assert len(pickle.dumps(own)) == small
    _check(pickle.loads(pickle.dumps(own)), state)
    restored = OwnObjective()
    restore_state(restored, save_state(own, classes_inside(own)))
    _check(restored, state)
