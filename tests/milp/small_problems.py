"""Small random decisions, and their optimum by trying every combination of counts."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import strategies as st

from bfreplay.milp.problem import AllocationProblem
from bfreplay.milp.solution import ProcessStatus, Quality, Solution, SolverStatus
from bfreplay.milp.verify import objective_of


def optimum_by_enumeration(problem: AllocationProblem) -> tuple[float, np.ndarray | None]:
    """(objective, counts); ``(-inf, None)`` when no combination is allowed."""
    allowed = [np.flatnonzero(row > -np.inf).tolist() for row in problem.value]
    best, best_counts = -np.inf, None
    for counts in itertools.product(*allowed):
        if sum(counts) <= problem.capacity:
            worth = sum(float(problem.value[j, n]) for j, n in enumerate(counts))
            if worth > best:
                best, best_counts = worth, np.array(counts, dtype=np.int64)
    return best, best_counts


@st.composite
def problems(draw: st.DrawFn, *, max_jobs: int = 4, max_nodes: int = 7, with_limit: bool = True) -> AllocationProblem:
    """Non-concave gains, minima above 1, jobs that hold too few nodes, at times a change limit."""
    n_jobs = draw(st.integers(1, max_jobs))
    capacity = draw(st.integers(1, max_nodes))
    width = draw(st.integers(2, max_nodes + 3))
    scale = draw(st.sampled_from([1.0, 1e-3, 1e6]))
    number = st.integers(-20, 100).map(lambda n: n * scale)
    rows = st.lists(number, min_size=width - 1, max_size=width - 1).map(lambda row: [0.0, *row])
    gain = np.array([draw(rows) for _ in range(n_jobs)])
    min_nodes = np.array([draw(st.integers(1, width - 1)) for _ in range(n_jobs)])
    max_nodes_ = np.array([draw(st.integers(int(low), width - 1)) for low in min_nodes])
    current, left = [], capacity
    for high in max_nodes_:
        current.append(draw(st.integers(0, min(left, int(high)))))
        left -= current[-1]
    losses = st.integers(0, 30).map(lambda n: n * scale)
    problem = AllocationProblem(
        current=np.array(current),
        min_nodes=min_nodes,
        max_nodes=max_nodes_,
        gain=gain,
        scale_up_loss=np.array([draw(losses) for _ in range(n_jobs)]),
        scale_down_loss=np.array([draw(losses) for _ in range(n_jobs)]),
        capacity=capacity,
        change_limit=draw(st.none() | st.integers(0, capacity)) if with_limit else None,
    )
    problem.validate()
    return problem


def problem_of_two(**changes: object) -> AllocationProblem:
    """Five idle nodes; job 0 holds one and likes many, job 1 holds two; optimum (3, 2), worth 8 - 1 + 5 = 12."""
    fields: dict = {
        "current": np.array([1, 2]),
        "min_nodes": np.array([1, 2]),
        "max_nodes": np.array([4, 4]),
        "gain": np.array([[0.0, 2.0, 4.0, 8.0, 8.5], [0.0, 1.0, 5.0, 5.5, 5.75]]),
        "scale_up_loss": np.array([1.0, 1.0]),
        "scale_down_loss": np.array([0.5, 0.5]),
        "capacity": 5,
    }
    return AllocationProblem(**{**fields, **changes})


class EnumeratingSolver:
    """An exact solver of tiny problems."""

    name = "enumeration"

    def __init__(self) -> None:
        self.asked: list[AllocationProblem] = []

    def solve(self, problem: AllocationProblem) -> Solution:
        self.asked.append(problem)
        best, counts = optimum_by_enumeration(problem)
        found = counts is not None
        assert not found or objective_of(problem, counts) == best or np.isclose(objective_of(problem, counts), best)
        return Solution(
            counts=counts,
            objective=best if found else np.nan,
            bound=best if found else np.inf,
            process_status=ProcessStatus.OK,
            solver_status=SolverStatus.OPTIMAL if found else SolverStatus.INFEASIBLE,
            quality=Quality.PROVEN if found else Quality.NONE,
            solver=self.name,
        )

    def close(self) -> None:
        pass


def one_hungry_job(capacity: int = 6) -> AllocationProblem:
    """One job that is worth its number of nodes; the published rows allow about half of them."""
    return AllocationProblem(
        current=np.array([0]),
        min_nodes=np.array([1]),
        max_nodes=np.array([capacity]),
        gain=np.arange(capacity + 1.0)[None, :],
        scale_up_loss=np.zeros(1),
        scale_down_loss=np.zeros(1),
        capacity=capacity,
    )
