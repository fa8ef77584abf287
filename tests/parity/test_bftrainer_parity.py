"""BFTrainer against its records, and what else they show about our solvers."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.decisions import optimum_by_dynamic_program
from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.milp_solver import MilpSolver
from tests.parity.bftrainer_records import PublishedReplay, decision_records, objectives, recorded_problem
from tests.parity.parts import check_part, parts_of


@pytest.mark.parametrize("part", parts_of("bftrainer"))
def test_everything_agrees_or_differs_for_a_known_reason(shared, part):
    check_part(shared, "bftrainer", part)


def test_the_dynamic_program_agrees_with_the_exact_solver_on_the_recorded_decisions(shared):
    for record in decision_records(shared)[::10]:
        problem = recorded_problem(record)
        _, objective = optimum_by_dynamic_program(problem.value, problem.capacity)
        np.testing.assert_allclose(ExactSolver().solve(problem).objective, objective, rtol=1e-12)


def test_the_one_recorded_answer_below_ours_is_below_the_optimum_of_the_published_model_too(shared):
    """Decision 256 of G2: CBC called 76,054 optimal; the published model itself admits 76,080."""
    policy = PublishedReplay.load(shared, "G2").rerun.policy
    solver = MilpSolver("published", "cbc", time_limit_s=1200.0, fallback="none", referee=ExactSolver())
    try:
        solution = solver.solve(policy.problems[256])
    finally:
        solver.close()
    ours, theirs = objectives(policy)
    assert solution.objective == pytest.approx(ours[256], rel=1e-9)
    assert solution.objective > theirs[256]


def test_the_published_limit_costs_objective_somewhere(shared):
    """The limit is a real restriction on these states, so the comparison would notice its absence."""
    policy = PublishedReplay.load(shared, "G1").rerun.policy
    unlimited = np.array([ExactSolver().solve(problem).objective for problem in policy.problems])
    limited = np.array(objectives(policy)[0])
    assert (unlimited >= limited - 1e-6).all()
    assert (unlimited > limited * (1 + 1e-6) + 1e-6).any()
