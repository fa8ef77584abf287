"""What a point breaks in a linear model, and what CBC makes of a problem by a formulation."""

from __future__ import annotations

import numpy as np

from bfreplay.milp.backends import SolveOptions
from bfreplay.milp.formulations import formulation_of
from bfreplay.milp.formulations.formulation import map_violation
from bfreplay.milp.isolation import IsolatedBackend
from bfreplay.milp.model import LinearModel
from bfreplay.milp.problem import AllocationProblem
from bfreplay.milp.solution import SolverStatus
from bfreplay.milp.verify import agrees, objective_of, violation
from tests.milp.small_problems import by_count, optimum_by_enumeration

ALL = ["published", "node_level", "counts_sos2", "counts_segments", "choices", "choices_reduced"]
NODE_LEVEL = ["published", "node_level"]
WITH_SETS = ["published", "node_level", "counts_sos2"]
BY_COUNT = ["node_level", "counts_sos2", "counts_segments", "choices", "choices_reduced"]
"""Those that take losses that depend on the count."""


def broken(model: LinearModel, x: np.ndarray) -> list[str]:
    """Names of the rows, columns and sets that ``x`` breaks, integrality included."""
    activity = np.zeros(model.n_rows)
    np.add.at(activity, model.entry_row, model.entry_value * x[model.entry_column])
    rows = (activity < model.row_lower - 1e-9) | (activity > model.row_upper + 1e-9)
    columns = (x < model.column_lower) | (x > model.column_upper) | (model.is_integer & (x != np.rint(x)))
    faults = [model.row_names[r] for r in np.flatnonzero(rows)] + [
        model.column_names[c] for c in np.flatnonzero(columns)
    ]
    for number, group in enumerate(model.sets):
        used = np.flatnonzero(x[group.columns[np.argsort(group.weights)]])
        if used.size and used[-1] - used[0] >= group.kind:
            faults.append(f"set {number}")
    return faults


def worth(model: LinearModel, x: np.ndarray) -> float:
    return float(model.objective @ x + model.objective_constant)


def posed_by(name: str, problem: AllocationProblem) -> AllocationProblem:
    """The problem whose optimum the formulation promises."""
    return problem.within_published_limit() if formulation_of(name).change_limited else problem


def solved(cbc: IsolatedBackend, name: str, problem: AllocationProblem):
    formulation = formulation_of(name)
    model = formulation.build(problem)
    ran = cbc.solve(model, SolveOptions(60.0))
    assert ran.answer is not None, ran.message
    return formulation, model, ran.answer


def check_optimum(cbc: IsolatedBackend, name: str, problem: AllocationProblem) -> None:
    formulation, model, answer = solved(cbc, name, problem)
    posed = posed_by(name, problem)
    best, _ = optimum_by_enumeration(posed)
    if best == -np.inf:
        assert answer.solver_status is SolverStatus.INFEASIBLE
        return
    assert answer.solver_status is SolverStatus.OPTIMAL
    counts, nodes = formulation.read(problem, answer.x)
    assert violation(posed, counts) == ""
    scale = float(np.abs(model.objective).max(initial=0.0))
    assert agrees(objective_of(posed, counts), best, scale)
    assert agrees(answer.objective, best, scale)
    if nodes is not None:
        assert map_violation(problem, nodes) == ""
        assert [len(mine) for mine in nodes] == counts.tolist()


def forbidding(problem: AllocationProblem, seed: int) -> AllocationProblem:
    """``problem`` with losses up to 100 at random by count, of which a fifth forbids."""
    rng = np.random.default_rng(seed)
    loss = rng.integers(0, 100, problem.gain.shape).astype(np.float64)
    loss[:, 1:][rng.random(loss[:, 1:].shape) < 0.2] = np.inf
    return by_count(problem, loss)


def rugged(rng: np.random.Generator, n_jobs: int, capacity: int, max_nodes: int, **changes) -> AllocationProblem:
    """Curves that rise with steps and dents at every count, minima above 1, losses; no two jobs alike."""
    steps = rng.integers(-20, 100, (n_jobs, max_nodes)) * rng.integers(0, 2, (n_jobs, max_nodes))
    min_nodes = rng.integers(1, 1 + max_nodes // 4, n_jobs)
    most = np.full(n_jobs, max_nodes)
    current = np.minimum(rng.multinomial(capacity, np.full(n_jobs, 1 / n_jobs)), most)
    fields = {
        "current": current * rng.integers(0, 2, n_jobs),
        "min_nodes": min_nodes,
        "max_nodes": most,
        "gain": np.concatenate((np.zeros((n_jobs, 1)), np.cumsum(steps, axis=1)), axis=1).astype(np.float64),
        "scale_up_loss": rng.integers(0, 100, n_jobs).astype(np.float64),
        "scale_down_loss": rng.integers(0, 100, n_jobs).astype(np.float64),
        "capacity": capacity,
    }
    problem = AllocationProblem(**{**fields, **changes})
    problem.validate()
    return problem
