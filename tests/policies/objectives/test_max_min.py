"""Max-min fairness: the level, and what is chosen among the allocations that reach it, against all allocations."""

from __future__ import annotations

from dataclasses import replace
from math import log

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bfreplay.errors import InputError
from bfreplay.milp import MilpSolver
from bfreplay.milp.exact import ExactSolver
from bfreplay.policies.objectives.catalogue import objective_of
from bfreplay.policies.objectives.max_min import best_level, service_after
from tests.examples import examples
from tests.policies.small_states import allocations, state_of, states

T_FWD_S = 60.0


def served(state, j, n):
    """What job j will have got on n nodes, as a share of dedicated nodes, in plain arithmetic."""
    rates = state.throughput[j, state.min_nodes[j] : state.max_nodes[j] + 1]
    if rates.max() <= 0:
        return 0.0
    held = int(state.current[j])
    now = state.throughput[j, held] if held >= state.min_nodes[j] else 0.0
    seconds = state.scale_up_cost_s[j] if n > held else state.scale_down_cost_s[j] if n < held else 0.0
    got = state.progress[j] + T_FWD_S * state.throughput[j, n] - now * seconds
    age_s = (state.time_us - state.admitted_us[j]) * 1e-6 + T_FWD_S
    return float(got / (rates.max() * age_s))


def choices(state, j):
    return [0, *range(int(state.min_nodes[j]), min(int(state.max_nodes[j]), state.n_idle) + 1)]


def level_of(state, counts):
    """Least service by weight among the jobs that any count lifts above none."""
    least = np.inf
    for j, n in enumerate(counts):
        if max(served(state, j, m) for m in choices(state, j)) > served(state, j, 0):
            least = min(least, served(state, j, n) / state.weight[j])
    return least


def fairness(state, counts):
    total = 0.0
    for j, n in enumerate(counts):
        share = served(state, j, n)
        total += state.weight[j] * (log(share + 1e-3) if share >= 0 else log(1e-3) + share / 1e-3)
    return total


def decided(state, spec="max-min", solver=None):
    answer = (solver or ExactSolver()).solve(objective_of(spec).problem(state, T_FWD_S))
    assert answer.quality == "proven", answer.message
    return answer.counts.tolist()


def check_against_all_allocations(state, counts, slack=0.0):
    every = [(level_of(state, each), fairness(state, each)) for each in allocations(state)]
    best = max(level for level, _ in every)
    without = level_of(state, [0] * state.n_jobs)  # what the least served one has got without any node
    accepted = best if np.isinf(best) else best - slack * (best - without) - 1e-12
    assert level_of(state, counts) >= accepted
    best_second = max(worth for level, worth in every if level >= accepted)
    assert fairness(state, counts) == pytest.approx(best_second, rel=1e-9, abs=1e-9)


@settings(max_examples=examples(200))
@given(state=states(), slack=st.sampled_from([0.0, 0.0, 0.1, 0.5, 1.0]))
@example(state=state_of([[0, 4], [0, 4]], 1), slack=0.0)  # two new jobs, one node: the least is 0 whatever one does
@example(state=state_of([[0, 5, 1, 6], [0, 1, 1, 7]], 4), slack=0.0)  # dents
@example(state=state_of([[0, 4, 8]], 5, current=[1], scale_up_cost_s=[100.0]), slack=0.0)  # rescaling costs too much
@example(state=state_of([[0, 4, 8], [0, 1, 2]], 2, current=[1, 0], min_nodes=[2, 1]), slack=0.0)  # below its minimum
@example(state=state_of([[0, 4, 8], [0, 1, 2]], 1, min_nodes=[2, 1]), slack=0.0)  # one cannot be fed
@example(state=state_of([[0, 0, 0], [0, 1, 2]], 2), slack=0.0)  # one has no rate
@example(state=state_of([[0, 0, 0], [0, 0, 0]], 2), slack=0.0)  # none has
def test_the_level_and_the_choice_among_those_that_reach_it_are_the_best_of_all_allocations(state, slack):
    check_against_all_allocations(state, decided(state, f"max-min(slack={slack})"), slack)


@settings(max_examples=examples(40))
@given(state=states())
def test_a_milp_finds_the_level_too(state):
    highs = MilpSolver("choices_reduced", "highs", fallback="none", isolated=False)
    counts = decided(state, solver=highs)
    assert level_of(state, counts) == level_of(state, decided(state))
    # MILP solvers take answers within 1e-6 of the largest coefficient for equal
    scale = np.abs(objective_of("max-min").problem(state, T_FWD_S).gain).max(initial=1.0)
    assert fairness(state, counts) == pytest.approx(fairness(state, decided(state)), abs=1e-5 * scale)


@settings(max_examples=examples(100))
@given(
    st.lists(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, np.inf]), min_size=3, max_size=3), max_size=4),
    st.integers(0, 12),
)
def test_the_level_is_the_largest_value_that_all_can_reach(rows, capacity):
    table = np.sort(np.array([[0.0, *row] for row in rows]).reshape(len(rows), 4), axis=1)
    highest = np.array([row[row < np.inf].max() for row in table])
    found = best_level(table, highest, capacity)

    def nodes_for(level):
        return sum(int(np.argmax((row >= level) & (row < np.inf))) for row in table)

    reachable = [v for v in {0.0, 0.25, 0.5, 1.0} if (highest >= v).all() and nodes_for(v) <= capacity]
    attained = [v for v in reachable if (table == v).any()]
    assert found == (max(attained) if rows else -np.inf)


def test_the_least_served_job_gets_the_node_though_it_makes_little_of_it():
    state = state_of([[0, 100], [0, 100]], 1, age_s=[600, 600], progress=[30_000, 29_000])
    assert decided(state) == [0, 1]
    assert decided(replace(state, progress=np.array([29_000.0, 30_000.0]))) == [1, 0]


def test_two_new_jobs_that_cannot_both_be_fed_leave_no_node_idle():
    state = state_of([[0, 4, 8], [0, 4, 8]], 3, min_nodes=[2, 2])
    assert sorted(decided(state)) == [0, 2]


def test_all_jobs_at_the_level_and_then_the_rest_where_it_serves_most():
    # two nodes bring each job half of its best; the fifth node serves the second job more
    state = state_of([[0, 1, 2, 2.5, 4], [0, 10, 20, 30, 40]], 5)
    assert level_of(state, [2, 3]) == level_of(state, [3, 2]) == 0.5
    assert decided(state) == [2, 3]


def test_weights_are_shares():
    # twice the weight, twice the service
    state = state_of([[0, 1, 2, 3, 4]] * 2, 6, weight=[2, 1])
    assert decided(state) == [4, 2]


def test_one_job_gets_its_best_count_and_not_more():
    assert decided(state_of([[0, 5, 9, 12, 11]], 9)) == [3]


def test_best_means_the_jobs_own_bounds_not_the_idle_nodes():
    # of 4 nodes' rate both get a half on 2; of what 3 idle nodes allow they would be at two thirds
    state = state_of([[0, 1, 2, 3, 4]] * 2, 3, age_s=[60, 60])
    posed = objective_of("max-min").problem(state, T_FWD_S)
    assert posed.gain[0, 2] - posed.gain[0, 1] == pytest.approx(log(0.251 / 0.126))


def test_slack_is_a_part_of_what_the_decision_adds_to_the_least():
    # the first job has got the least: 0.25, which is 0.75 on two nodes, and a fifth less is added on one. There the
    # second job makes more of the other one
    state = state_of([[0, 8, 10], [0, 4, 8]], 2, age_s=[60, 60], progress=[300, 800])
    assert [served(state, 0, n) for n in (0, 1, 2)] == [0.25, 0.65, 0.75]
    assert [decided(state, f"max-min(slack={slack})") for slack in (0, 0.19, 0.21)] == [[2, 0], [2, 0], [1, 1]]


def test_no_answer_pays_to_stay_below_the_level():
    # twenty jobs could each gain far more by a second node than the first one, of little weight, has from its only one
    rates = [[0, 1, 1.001]] + [[0, 1, 100]] * 20
    state = state_of(rates, 22, weight=[1e-3, *[1.0] * 20])
    counts = decided(state)
    assert min(counts) == 1


def test_staying_below_the_level_is_worse_by_more_than_a_solver_rounds():
    # one node each serves the least job best; that the first one runs is worth next to nothing in the sum
    state = state_of([[0, 1, 0], [0, 1, 2]], 2, max_nodes=[1, 2], weight=[1e-9, 1])
    value = objective_of("max-min").problem(state, T_FWD_S).value
    assert value[0, 1] + value[1, 1] > value[0, 0] + value[1, 2] + 1
    assert decided(state) == [1, 1]


@pytest.mark.parametrize("stuck", [{"min_nodes": [1, 1, 3]}, {}])
def test_a_job_that_nothing_helps_does_not_hold_the_others_down(stuck):
    # as with slack above, where proportional fairness alone says one node each; the third job gets nothing anyway
    rates = [[0, 8, 10, 10], [0, 4, 8, 8], [0, 0, 0, 5 if stuck else 0]]
    state = state_of(rates, 2, max_nodes=[2, 2, 3], age_s=[60] * 3, progress=[300, 800, 0], **stuck)
    assert decided(state) == [2, 0, 0]
    assert decided(state, "max-min(slack=1)") == [1, 1, 0]
    assert objective_of("max-min").problem(state, T_FWD_S).gain[2, 0] == 0


def test_a_job_that_runs_pays_for_a_rescale_and_one_below_its_minimum_does_not():
    seconds = {"scale_up_cost_s": [30, 30], "scale_down_cost_s": [15, 15]}
    state = state_of(
        [[0, 4, 8]] * 2, 2, current=[1, 1], min_nodes=[1, 2], age_s=[60, 60], progress=[480, 480], **seconds
    )
    # of 960 samples: 480 and 240 for each node, less 60 for shrinking and 120 for growing
    assert service_after(state, T_FWD_S).tolist() == [[420 / 960, 720 / 960, 840 / 960], [480 / 960, 720 / 960, 1.0]]


def test_it_is_no_term_of_a_sum_and_takes_no_weight():
    for spec in ("0.5*max-min + 0.5*throughput", "throughput + max-min", "2*max-min"):
        with pytest.raises(InputError, match="'max-min' has no weight and is no term of a sum: it looks at all jobs"):
            objective_of(spec)
