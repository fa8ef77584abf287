"""Choices after elimination: an optimum is always left, and the model is small."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bfreplay.milp import ExactSolver
from bfreplay.milp.formulations import choices as reduction_module
from bfreplay.milp.formulations import formulation_of
from bfreplay.milp.formulations.choices import reduction
from bfreplay.milp.problem import AllocationProblem
from bfreplay.milp.solution import SolverStatus
from bfreplay.milp.verify import agrees, objective_of
from tests.examples import examples
from tests.milp.formulations.checking import rugged, solved
from tests.milp.small_problems import optimum_by_enumeration, problem_of_two, problems


def check_reduction(problem: AllocationProblem, optimum: float) -> None:
    """The optimum of what is left is the optimum, and the incumbent is feasible and left."""
    found = reduction(problem)
    if optimum == -np.inf:
        assert found.incumbent is None
        assert (found.kept.sum(axis=1) == 1).all()
        return
    assert (problem.value[found.kept] > -np.inf).all()
    assert objective_of(problem, found.incumbent) > -np.inf
    assert found.kept[np.arange(problem.n_jobs), found.incumbent].all()
    assert found.kept.any(axis=1).all()
    left = replace(problem)
    vars(left)["value"] = np.where(found.kept, problem.value, -np.inf)
    assert agrees(ExactSolver().solve(left).objective, optimum, float(np.abs(problem.gain).max()))


@given(problem=problems(max_jobs=5, max_nodes=9))
@settings(max_examples=examples(200), deadline=None)
def test_an_optimum_of_small_problems_is_left(problem):
    check_reduction(problem, optimum_by_enumeration(problem)[0])


@given(seed=st.integers(0, 2**32 - 1), limit=st.none() | st.integers(0, 30), core=st.sampled_from([0, 30, 1024]))
@settings(max_examples=examples(60), deadline=None)
def test_an_optimum_of_larger_problems_is_left_whatever_the_core(seed, limit, core):
    problem = rugged(np.random.default_rng(seed), 20, 200, 40, change_limit=limit)
    best = ExactSolver().solve(problem)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reduction_module, "CORE", core)
        check_reduction(problem, -np.inf if best.counts is None else best.objective)


def test_alike_jobs_tie_and_keep_their_ties(cbc):
    """Three jobs want 2 nodes each, 5 are there: any two get theirs, and one more node helps nobody."""
    jobs = 3
    problem = AllocationProblem(
        current=np.zeros(jobs, dtype=np.int64),
        min_nodes=np.full(jobs, 2),
        max_nodes=np.full(jobs, 2),
        gain=np.tile([0.0, 0.0, 10.0], (jobs, 1)),
        scale_up_loss=np.zeros(jobs),
        scale_down_loss=np.zeros(jobs),
        capacity=5,
    )
    formulation, model, answer = solved(cbc, "choices_reduced", problem)
    assert answer.objective == pytest.approx(20.0)
    assert sorted(formulation.read(problem, answer.x)[0].tolist()) == [0, 2, 2]
    assert model.n_columns == 6


def test_a_decision_that_the_bound_closes_leaves_the_first_job(cbc):
    """Enough nodes for all: each job's best count is the only one left, and the rest is a constant."""
    problem = problem_of_two(capacity=20)
    formulation, model, answer = solved(cbc, "choices_reduced", problem)
    assert (model.n_columns, model.n_rows) == (1, 2)
    assert model.column_names == ("y[0,4]",)
    assert model.objective_constant == 5.0  # job 1 keeps 2 nodes: 4 are worth 5.75, less 1 for growing
    assert model.row_upper[1] == 20 - 2
    assert answer.objective == pytest.approx(7.5 + 5.0)
    assert formulation.read(problem, answer.x)[0].tolist() == [4, 2]


def test_no_feasible_counts_leave_each_job_its_least(cbc):
    """Each job may have 4 or 5 nodes, and there are 6."""
    stuck = problem_of_two(
        current=np.array([3, 3]),
        min_nodes=np.array([4, 4]),
        max_nodes=np.array([5, 5]),
        gain=np.tile(np.arange(6.0), (2, 1)),
        capacity=6,
        change_limit=2,
    )
    _, model, answer = solved(cbc, "choices_reduced", stuck)
    assert model.column_names == ("y[0,4]", "y[1,4]")
    assert model.row_upper.tolist() == [1, 1, 6]
    assert model.start is None
    assert answer.solver_status is SolverStatus.INFEASIBLE


@pytest.mark.filterwarnings("error")
def test_numbers_too_large_to_add_up_leave_every_choice():
    huge = problem_of_two(gain=np.array([[0.0, 1e308, 1.5e308, 1.6e308, 1.7e308]] * 2), capacity=4)
    model = formulation_of("choices_reduced").build(huge)
    assert model.n_columns == formulation_of("choices").build(huge).n_columns
    assert model.start is None


def published_like(rng: np.random.Generator, n_jobs: int, capacity: int, max_nodes: int) -> AllocationProblem:
    """Seven models' curves, linear between powers of two; jobs hold about what they would get."""
    points = np.append(0, 2 ** np.arange(int(np.log2(max_nodes)) + 1))
    models = [
        np.interp(np.arange(max_nodes + 1), points, rng.uniform(1e5, 1e6) * points ** rng.uniform(0.75, 1.0))
        for _ in range(7)
    ]
    gain = np.array([models[j % 7] for j in range(n_jobs)])
    current = np.minimum(rng.multinomial(capacity, rng.dirichlet(np.full(n_jobs, 3.0))), max_nodes)
    return AllocationProblem(
        current=current,
        min_nodes=np.ones(n_jobs, dtype=np.int64),
        max_nodes=np.full(n_jobs, max_nodes),
        gain=gain,
        scale_up_loss=0.15 * gain[np.arange(n_jobs), current],
        scale_down_loss=0.1 * gain[np.arange(n_jobs), current],
        capacity=capacity,
    )


@pytest.mark.parametrize("seed", range(8))
def test_300_jobs_on_4000_nodes_fit_a_size_limited_licence(seed):
    """2,000 columns and rows are what Gurobi's free licence takes."""
    problem = published_like(np.random.default_rng(seed), 300, 4_000, 64)
    model = formulation_of("choices_reduced").build(problem)
    assert max(model.n_columns, model.n_rows) < 2_000
    assert formulation_of("choices").build(problem).n_columns > 15_000
