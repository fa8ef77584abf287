"""Every formulation has the optimum it promises."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings

from bfreplay.milp import ExactSolver
from bfreplay.milp.backends import SolveOptions
from bfreplay.milp.formulations import formulation_of
from bfreplay.milp.solution import SolverStatus
from tests.examples import examples
from tests.milp.formulations.checking import ALL, BY_COUNT, check_optimum, forbidding, rugged, solved
from tests.milp.small_problems import by_count_problems, left_on_seven, problem_of_two, problems


@pytest.mark.often("choices", "published", "counts_sos2")
@pytest.mark.parametrize("name", ALL)
@settings(max_examples=examples(100), deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(problem=problems())
@example(problem=problem_of_two())
@example(problem=problem_of_two(change_limit=0))
@example(problem=problem_of_two(change_limit=1))
def test_the_optimum_is_the_one_found_by_trying_everything(cbc, name, problem):
    check_optimum(cbc, name, problem)


@pytest.mark.often("choices", "node_level", "counts_sos2")
@pytest.mark.parametrize("name", BY_COUNT)
@settings(max_examples=examples(100), deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(problem=by_count_problems())
@example(problem=left_on_seven())
@example(problem=replace(left_on_seven(), change_limit=3))
@example(problem=replace(left_on_seven(staying=np.inf), change_limit=0))
def test_losses_by_count_have_the_optimum_found_by_trying_everything(cbc, name, problem):
    check_optimum(cbc, name, problem)


@pytest.mark.parametrize("name", BY_COUNT)
@pytest.mark.parametrize(
    ("start", "staying", "counts", "objective"),
    [(2.0, 1.0, [4, 5], 60.0), (40.0, 1.0, [7, 0], 39.0), (40.0, np.inf, [4, 0], 34.0)],
)
def test_a_job_left_on_a_count_that_is_else_forbidden_may_stay_on_it(cbc, name, start, staying, counts, objective):
    problem = left_on_seven(start, staying)
    formulation, _, answer = solved(cbc, name, problem)
    assert formulation.read(problem, answer.x)[0].tolist() == counts
    assert answer.objective == pytest.approx(objective)


@pytest.mark.parametrize("name", ALL)
def test_the_hand_worked_example_has_optimum_12(cbc, name):
    formulation, _, answer = solved(cbc, name, problem_of_two())
    counts, _ = formulation.read(problem_of_two(), answer.x)
    assert counts.tolist() == [3, 2]
    assert answer.objective == pytest.approx(12.0)


@pytest.mark.parametrize("name", ALL)
def test_a_curve_that_is_straight_through_what_is_held_has_every_count(cbc, name):
    """Job 0 is worth ten a node and rescales for nothing: three nodes beside the two that job 1 must have."""
    straight = problem_of_two(
        current=np.array([2, 2]),
        max_nodes=np.array([4, 2]),
        gain=np.array([[0.0, 10.0, 20.0, 30.0, 40.0], [0.0, 1.0, 100.0, 0.0, 0.0]]),
        scale_up_loss=np.zeros(2),
        scale_down_loss=np.zeros(2),
    )
    formulation, _, answer = solved(cbc, name, straight)
    assert formulation.read(straight, answer.x)[0].tolist() == [3, 2]
    check_optimum(cbc, name, straight)


@pytest.mark.parametrize("name", ALL)
def test_a_job_whose_minimum_exceeds_the_pool_gets_nothing(cbc, name):
    check_optimum(cbc, name, problem_of_two(min_nodes=np.array([1, 4]), max_nodes=np.array([4, 4]), capacity=3))
    check_optimum(
        cbc, name, problem_of_two(current=np.array([1, 0]), min_nodes=np.array([4, 4]), capacity=2)
    )  # more than one above the pool


@pytest.mark.parametrize("name", ALL)
def test_a_job_left_below_its_minimum_by_a_preemption_stops_or_grows(cbc, name):
    check_optimum(cbc, name, problem_of_two(min_nodes=np.array([2, 3])))


@pytest.mark.parametrize("name", ALL)
def test_a_job_that_holds_more_than_its_maximum_must_shrink(cbc, name):
    held = problem_of_two(current=np.array([0, 5]), max_nodes=np.array([4, 3]))
    check_optimum(cbc, name, held)
    check_optimum(cbc, name, replace(held, change_limit=1))  # cannot


@pytest.mark.parametrize("name", ALL)
def test_jobs_that_a_change_limit_keeps_above_the_pool_make_the_model_infeasible(cbc, name):
    """Both hold less than their minimum, may not stop, and need more nodes than there are."""
    stuck = problem_of_two(current=np.array([2, 2]), min_nodes=np.array([3, 3]), change_limit=1)
    assert solved(cbc, name, stuck)[2].solver_status is SolverStatus.INFEASIBLE


@pytest.mark.parametrize("name", ["counts_segments", "choices", "choices_reduced"])
@pytest.mark.parametrize("change_limit", [None, 9])
@pytest.mark.parametrize("seed", range(4))
def test_twenty_jobs_on_200_nodes_have_the_exact_solvers_optimum(cbc, name, change_limit, seed):
    problem = rugged(np.random.default_rng(seed), 20, 200, 40, change_limit=change_limit)
    formulation, _, answer = solved(cbc, name, problem)
    assert answer.solver_status is SolverStatus.OPTIMAL
    counts, _ = formulation.read(problem, answer.x)
    optimum = ExactSolver().solve(problem).objective
    assert float(problem.value[np.arange(20), counts].sum()) == pytest.approx(optimum, rel=1e-9)
    assert answer.objective == pytest.approx(optimum, rel=1e-7)


@pytest.mark.parametrize("seed", range(4))
def test_segments_and_weights_relax_to_the_concave_hulls_as_choices_do(cbc, seed):
    problem = rugged(np.random.default_rng(seed), 6, 50, 20)
    for posed in (problem, forbidding(problem, seed)):
        bounds = []
        for name in ("choices", "counts_segments", "counts_sos2", "node_level"):
            model = formulation_of(name).build(posed)
            relaxed = replace(model, is_integer=np.zeros_like(model.is_integer), sets=())
            bounds.append(cbc.solve(relaxed, SolveOptions(60.0)).answer.objective)
        assert bounds == pytest.approx(bounds[:1] * 4, rel=1e-7)
