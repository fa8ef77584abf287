"""Separable objectives: weighted sums, what rescaling gives up, and optima against every allocation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bfreplay.milp import MilpSolver
from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.verify import objective_of as worth_of
from bfreplay.policies.objectives.catalogue import OBJECTIVES, objective_of
from tests.examples import examples
from tests.policies.small_states import allocations, state_of, states

T_FWD_S = 60.0
SEPARABLE = [name for name in OBJECTIVES.names() if name != "max-min"]
SUM = "0.7*throughput + 0.2*cost(price=0.9) + deadline"


@pytest.mark.parametrize("name", OBJECTIVES.names())
def test_what_a_job_is_worth_depends_on_the_other_jobs_with_max_min_alone(name):
    together, alone = state_of([[0, 10, 15], [0, 8, 9]], 2), state_of([[0, 10, 15]], 2)
    rows = [objective_of(name).problem(state, T_FWD_S).gain[0].tolist() for state in (together, alone)]
    assert (rows[0] == rows[1]) == (name in SEPARABLE)


def test_each_term_of_a_sum_is_measured_by_its_largest_value_over_the_decision():
    state = state_of([[0, 100, 200], [0, 5, 8]], 2)
    # throughput is 200 at most, speed-up 2
    expected = 0.75 * np.array([[0, 0.5, 1], [0, 0.025, 0.04]]) + 0.25 * np.array([[0, 0.5, 1], [0, 0.5, 0.8]])
    assert objective_of("0.75*throughput + 0.25*speed-up").problem(state, 2.0).gain == pytest.approx(2 * expected)


def test_largest_is_meant_in_absolute_value_and_within_max_nodes():
    state = state_of([[0, 10, 11, 99]], 3, max_nodes=[2])
    # cost(price=2): -1 and -2.9; throughput: 10 and 11
    posed = objective_of("throughput + cost(price=2)").problem(state, 1.0)
    assert posed.gain[0, :3] == pytest.approx([0, 10 / 11 - 1 / 2.9, 1 - 1])


def test_a_term_that_is_zero_everywhere_adds_nothing():
    state = state_of([[0, 10, 20]], 2)
    assert objective_of("priority + 5*deadline(background=0)").problem(state, 1.0).gain.tolist() == [[0, 0.5, 1]]


def test_one_term_keeps_its_unit_and_takes_its_weight():
    state = state_of([[0, 10, 20]], 2, current=[1], scale_up_cost_s=[3])
    posed = objective_of("0.5*throughput").problem(state, 1.0)
    assert posed.gain.tolist() == [[0, 5, 10]]
    assert posed.scale_up_loss.tolist() == [15]


def test_what_rescaling_gives_up_is_summed_with_the_same_weights():
    state = state_of([[0, 100, 180]], 2, current=[1], scale_up_cost_s=[10], scale_down_cost_s=[4])
    posed = objective_of("0.5*throughput + 2*cost(price=0.5)").problem(state, 1.0)
    given_up = 0.5 * 100 / 180 + 2 * 1 / 0.8
    assert posed.scale_up_loss == pytest.approx([10 * given_up])
    assert posed.scale_down_loss == pytest.approx([4 * given_up])


@pytest.mark.parametrize("spec", ["throughput", "cost", SUM])
def test_a_job_left_below_its_minimum_gives_up_nothing(spec):
    state = state_of([[0, 100, 180]], 2, current=[1], min_nodes=[2], scale_up_cost_s=[10], scale_down_cost_s=[4])
    posed = objective_of(spec).problem(state, 1.0)
    assert posed.scale_up_loss.tolist() == [0]
    assert posed.scale_down_loss.tolist() == [0]


def test_the_order_of_terms_and_the_scale_of_weights_change_no_optimum():
    state = state_of([[0, 100, 150, 160], [0, 10, 19, 27]], 3)
    one, other = (
        objective_of(spec).problem(state, 60.0) for spec in ("3*throughput + cost", "0.1*cost + 0.3*throughput")
    )
    assert 10 * other.gain == pytest.approx(one.gain)


@pytest.mark.parametrize("spec", [*SEPARABLE, SUM])
@settings(max_examples=examples(40))
@given(state=states())
def test_the_optimum_is_the_best_of_all_allocations_by_the_sum_of_what_each_job_is_worth(spec, state):
    objective = objective_of(spec)
    posed = objective.problem(state, T_FWD_S)
    best = max(worth(objective, state, counts) for counts in allocations(state))
    answer = ExactSolver().solve(posed)
    assert answer.objective == pytest.approx(best, rel=1e-9, abs=1e-9)
    assert worth(objective, state, answer.counts) == pytest.approx(best, rel=1e-9, abs=1e-9)


def worth(objective, state, counts):
    """Rates over the time, less what rescaling gives up, in plain arithmetic."""
    terms = getattr(objective, "terms", None)
    if terms is None:
        value = given_up = state.objective
    else:
        rates = objective.rates(state, T_FWD_S)
        value, given_up = rates.value, rates.given_up
    total = 0.0
    for j, n in enumerate(counts):
        total += T_FWD_S * float(value[j, n])
        held = int(state.current[j])
        seconds = state.scale_up_cost_s[j] if n > held else state.scale_down_cost_s[j] if n < held else 0.0
        if held >= state.min_nodes[j]:
            total -= seconds * max(0.0, float(given_up[j, held]))
    return total


@given(state=states(), data=st.data())
@settings(max_examples=examples(60))
def test_what_a_job_is_worth_does_not_depend_on_the_others(state, data):
    spec = data.draw(st.sampled_from(SEPARABLE))
    j = data.draw(st.integers(0, state.n_jobs - 1))
    names = [name for name in vars(state) if isinstance(getattr(state, name), np.ndarray)]
    alone = type(state)(state.time_us, state.n_idle, **{name: getattr(state, name)[[j]] for name in names})
    together, apart = (objective_of(spec).problem(each, T_FWD_S) for each in (state, alone))
    assert together.gain[j].tolist() == apart.gain[0].tolist()
    assert together.scale_up_loss[j] == apart.scale_up_loss[0]
    assert together.scale_down_loss[j] == apart.scale_down_loss[0]


@pytest.mark.parametrize("spec", [*OBJECTIVES.names(), SUM])
def test_a_milp_finds_the_same_optimum(spec):
    state = state_of(
        [[0, 100, 150, 160, 240], [0, 10, 19, 27, 30], [0, 7, 7, 30, 31]],
        7,
        current=[2, 0, 3],
        age_s=[300, 0, 60],
        progress=[20_000, 0, 100],
        scale_up_cost_s=[20, 20, 20],
        scale_down_cost_s=[10, 10, 10],
        due_s=[None, 7_000, 60_000],
        weight=[1, 2, 1],
        min_nodes=[1, 2, 3],
        work=[1e6, 1e5, 1e6],
    )
    posed = objective_of(spec).problem(state, T_FWD_S)
    exact = ExactSolver().solve(posed)
    answer = MilpSolver("choices_reduced", "highs", fallback="none", isolated=False).solve(posed)
    assert answer.quality == "proven", answer.message
    assert worth_of(posed, answer.counts) == pytest.approx(exact.objective, rel=1e-6)
