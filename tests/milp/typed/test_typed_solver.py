"""The exact solver on several types against brute force, other solvers, and the solver of one type."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.solution import Quality, SolverStatus
from bfreplay.milp.typed import solver
from bfreplay.milp.typed.problem import NO_TYPE, TypedProblem, objective_of, violation
from bfreplay.milp.typed.solver import TypedExactSolver, optimum_of
from tests.examples import examples
from tests.milp.small_problems import problems
from tests.milp.typed.small_typed_problems import (
    drawn,
    optimum_by_cbc,
    optimum_by_enumeration,
    optimum_by_highs,
    two_jobs,
    typed_problems,
)


def _scale(problem: TypedProblem) -> float:
    return max(1e-3, float(np.abs(problem.gain).max()))


@settings(max_examples=examples(150))
@given(problem=typed_problems())
def test_the_optimum_is_that_of_trying_everything(problem):
    found = TypedExactSolver().solve(problem)
    expected = optimum_by_enumeration(problem)
    assert found.solution.quality is Quality.PROVEN
    assert found.solution.solver_status is SolverStatus.OPTIMAL
    assert violation(problem, found.types, found.solution.counts) == ""
    assert found.solution.objective == pytest.approx(expected, abs=1e-9 * _scale(problem))
    assert found.solution.bound == pytest.approx(expected, abs=1e-9 * _scale(problem))


@settings(max_examples=examples(60))
@given(problem=typed_problems())
def test_highs_decides_what_is_left_where_no_state_is_allowed(problem):
    found = TypedExactSolver(most_states=0).solve(problem)
    assert found.solution.quality is Quality.PROVEN
    assert found.solution.objective == pytest.approx(optimum_by_enumeration(problem), abs=1e-7 * _scale(problem))


def as_typed(problem) -> TypedProblem:
    return TypedProblem(
        problem.current,
        np.where(problem.current > 0, 0, NO_TYPE),
        problem.min_nodes,
        problem.max_nodes,
        problem.gain[:, None, :],
        problem.scale_up_loss,
        problem.scale_down_loss,
        np.array([problem.capacity]),
    )


@settings(max_examples=examples(80))
@given(problem=problems(with_limit=False))
def test_on_one_type_the_answer_is_that_of_the_solver_of_one_type(problem):
    typed = as_typed(problem)
    typed.validate()
    assert np.array_equal(typed.value[:, 0], problem.value)
    expected, found = ExactSolver().solve(problem), TypedExactSolver().solve(typed)
    assert np.array_equal(found.solution.counts, expected.counts)
    assert (found.solution.objective, found.solution.bound) == (expected.objective, expected.bound)
    assert found.types.tolist() == [0 if count else NO_TYPE for count in expected.counts]


@settings(max_examples=examples(80))
@given(problem=problems(with_limit=False))
def test_the_search_on_several_types_finds_the_optimum_of_one_type_too(problem):
    best = ExactSolver().solve(problem).objective
    found = optimum_of(problem.value[:, None, :], np.array([problem.capacity]))
    assert found.is_proven
    assert found.objective == pytest.approx(best, abs=1e-9 * max(1e-3, float(np.abs(problem.gain).max())))


@pytest.mark.parametrize("alike", [False, True])
@pytest.mark.parametrize("elastic", [False, True])
def test_decisions_of_realistic_shape_agree_with_highs_on_the_whole_model(elastic, alike):
    for seed in range(3):
        problem = drawn(seed, 30, [12, 12, 12], elastic=elastic, alike=alike)
        found = TypedExactSolver().solve(problem).solution
        assert found.quality is Quality.PROVEN
        assert found.objective == pytest.approx(optimum_by_highs(problem), rel=1e-7)


@pytest.mark.filterwarnings("ignore::DeprecationWarning:pulp")
@pytest.mark.parametrize("elastic", [False, True])
def test_decisions_of_realistic_shape_agree_with_cbc(elastic):
    problem = drawn(7, 15, [6, 9, 4], elastic=elastic)
    assert TypedExactSolver().solve(problem).solution.objective == pytest.approx(optimum_by_cbc(problem), rel=1e-6)


def test_gavels_cluster_is_decided_without_a_milp_solver(monkeypatch):
    monkeypatch.setattr(solver, "solve_undecided", None)  # to be called would fail
    for seed in range(5):
        for problem in (
            drawn(seed, 50, [36, 36, 36], elastic=False),
            drawn(seed, 100, [36, 36, 36], elastic=True),
            drawn(seed, 100, [36, 36, 36], elastic=True, alike=True),
        ):
            found = TypedExactSolver().solve(problem).solution
            assert found.quality is Quality.PROVEN
            assert found.gap < 1e-12


def test_many_types_are_decided_by_highs_and_proven(monkeypatch):
    asked = []
    solve_undecided = solver.solve_undecided
    monkeypatch.setattr(solver, "solve_undecided", lambda *a: asked.append(1) or solve_undecided(*a))
    problem = drawn(3, 25, [6] * 6, elastic=False)
    found = TypedExactSolver(most_states=500).solve(problem).solution
    assert asked
    assert found.quality is Quality.PROVEN
    assert found.objective == pytest.approx(optimum_by_highs(problem), rel=1e-7)


def test_without_highs_the_answer_is_feasible_and_bounded(monkeypatch):
    def missing(*_: object) -> None:
        raise ImportError("No module named 'highspy'")

    problem = drawn(3, 25, [6] * 6, elastic=False)
    best = TypedExactSolver().solve(problem).solution
    monkeypatch.setattr(solver.Highs, "maximise", missing)
    found = TypedExactSolver(most_states=500).solve(problem).solution
    assert (found.solver_status, found.quality) == (SolverStatus.FEASIBLE, Quality.FEASIBLE)
    assert "No module named 'highspy'" in found.message
    assert found.objective <= best.objective * (1 + 1e-12)
    assert best.objective < found.bound < 1.1 * best.objective
    assert found.gap > 0


def test_a_job_moves_where_another_one_gains_more_than_the_move_costs():
    found = TypedExactSolver().solve(two_jobs())
    assert found.types.tolist() == [1, 0]
    assert found.solution.counts.tolist() == [2, 2]
    assert found.solution.objective == 75


def test_a_move_costs_what_giving_up_and_gaining_nodes_cost_together():
    # to move is worth 18 - 30 + 60; to stop, and let the other one have the nodes, 0 - 20 + 60; to shrink 10 - 20 + 30
    problem = two_jobs(scale_up_loss=np.array([10.0, 0.0]), scale_down_loss=np.array([20.0, 0.0]))
    assert objective_of(problem, np.array([1, 0]), np.array([2, 2])) == 48
    found = TypedExactSolver().solve(problem)
    assert (found.types.tolist(), found.solution.objective) == ([1, 0], 48)
    dearer = two_jobs(scale_up_loss=np.array([19.0, 0.0]), scale_down_loss=np.array([20.0, 0.0]))
    found = TypedExactSolver().solve(dearer)
    assert (found.types.tolist(), found.solution.counts.tolist()) == ([NO_TYPE, 0], [0, 2])
    assert found.solution.objective == 40


def test_nodes_on_which_a_job_is_worth_nothing_are_not_given():
    gain = two_jobs().gain.copy()
    gain[1] = 0.0
    found = TypedExactSolver().solve(two_jobs(gain=gain))
    assert (found.types.tolist(), found.solution.counts.tolist()) == ([0, NO_TYPE], [2, 0])


def test_a_gang_never_straddles_types():
    gain = np.pad(two_jobs().gain, ((0, 0), (0, 0), (0, 1)), constant_values=90.0)
    problem = two_jobs(gain=gain, min_nodes=np.array([1, 3]), max_nodes=np.array([2, 3]))
    assert TypedExactSolver().solve(problem).solution.counts[1] == 0


def test_the_order_of_types_does_not_change_what_is_possible():
    problem = drawn(11, 20, [5, 8, 3], elastic=True)
    turned = TypedProblem(
        problem.current,
        np.where(problem.current_type < 0, NO_TYPE, 2 - problem.current_type),
        problem.min_nodes,
        problem.max_nodes,
        problem.gain[:, ::-1].copy(),
        problem.scale_up_loss,
        problem.scale_down_loss,
        problem.capacity[::-1].copy(),
    )
    one, other = (TypedExactSolver().solve(each).solution.objective for each in (problem, turned))
    assert one == pytest.approx(other, rel=1e-12)


def test_the_same_problem_gets_the_same_answer_where_many_tie():
    problem = drawn(5, 40, [9, 9, 9], elastic=True, alike=True)
    first, second = (TypedExactSolver().solve(problem) for _ in range(2))
    assert np.array_equal(first.types, second.types)
    assert np.array_equal(first.solution.counts, second.solution.counts)


@pytest.mark.parametrize("worth", [np.nan, np.inf, 1e300])
def test_numbers_too_large_to_calculate_with_are_an_error_and_no_answer(worth):
    gain = two_jobs().gain.copy()
    gain[0, 1, 2] = worth
    found = TypedExactSolver().solve(two_jobs(gain=gain))
    assert found.types is None
    assert (found.solution.counts, found.solution.solver_status) == (None, SolverStatus.ERROR)


def test_losses_whose_sum_overflows_are_an_error_and_no_answer():
    problem = two_jobs(
        current=np.array([1, 1]), current_type=np.array([0, 0]), scale_down_loss=np.array([1e308, 1e308])
    )
    problem.validate()
    assert TypedExactSolver().solve(problem).solution.solver_status is SolverStatus.ERROR


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"counts": np.array([2, 0])}, "job 1 gets 0 nodes of type 0"),
        ({"types": np.array([0, 0])}, "type 0: counts sum to 4"),
        ({"objective": 80.0}, "claims 80"),
        ({"bound": 70.0}, "of at most 70"),
    ],
)
def test_a_wrong_answer_of_the_search_is_found_out(monkeypatch, change, said):
    monkeypatch.setattr(solver, "optimum_of", lambda *a: optimum_of(*a)._replace(**change))
    found = TypedExactSolver().solve(two_jobs())
    assert found.types is None
    assert (found.solution.quality, found.solution.counts) == (Quality.WRONG, None)
    assert said in found.solution.message
