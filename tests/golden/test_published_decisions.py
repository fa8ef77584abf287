"""The 800 recorded decisions of the published program against the exact solver."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.decisions import optimum_by_dynamic_program
from bfreplay.experiments.parity.recorded.bftrainer import decision_records, recorded_problem
from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.problem import published_change_limit
from bfreplay.milp.verify import objective_of


def test_the_exact_solver_finds_all_800_optimal_objectives(shared):
    records = decision_records(shared)
    assert len(records) == 800
    solutions = [ExactSolver().solve(recorded_problem(record)) for record in records]
    np.testing.assert_allclose(
        [s.objective for s in solutions], [r["optimal_objective"] for r in records], rtol=1e-9, atol=1e-9
    )


def test_the_exact_solver_held_to_the_published_limit_finds_all_800_published_objectives(shared):
    records = decision_records(shared)
    problems = [recorded_problem(record) for record in records]
    limited = [replace(p, change_limit=published_change_limit(p.capacity)) for p in problems]
    solutions = [ExactSolver().solve(p) for p in limited]
    np.testing.assert_allclose(
        [s.objective for s in solutions], [r["published_objective"] for r in records], rtol=1e-6, atol=1e-6
    )


def test_the_published_counts_are_worth_what_was_published(shared):
    for record in decision_records(shared):
        worth = objective_of(recorded_problem(record), np.array(record["published_counts"]))
        np.testing.assert_allclose(worth, record["published_objective"], rtol=1e-6, atol=1e-6)


def test_the_dynamic_program_agrees_with_the_exact_solver_on_the_recorded_decisions(shared):
    for record in decision_records(shared)[::10]:
        problem = recorded_problem(record)
        _, objective = optimum_by_dynamic_program(problem.value, problem.capacity)
        np.testing.assert_allclose(ExactSolver().solve(problem).objective, objective, rtol=1e-12)
