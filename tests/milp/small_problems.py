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


@st.composite
def by_count_problems(draw: st.DrawFn, **options: int | bool) -> AllocationProblem:
    """``problems`` with losses that jump at any count; about a third of the counts is forbidden, also what is held."""
    problem = draw(problems(**options))
    unit = float(np.abs(problem.gain).max()) / 64
    finite = st.integers(0, 30).map(lambda n: n * unit)
    width = problem.gain.shape[1]
    rows = st.tuples(finite, *[finite | finite | st.just(np.inf)] * (width - 1))
    return by_count(problem, [draw(rows) for _ in range(problem.n_jobs)])


def by_count(problem: AllocationProblem, loss: object) -> AllocationProblem:
    """``problem`` with ``loss`` in place of its losses."""
    bounds = problem.current, problem.min_nodes, problem.max_nodes
    changed = AllocationProblem.by_count(*bounds, problem.gain, np.array(loss), problem.capacity, problem.change_limit)
    changed.validate()
    return changed


def left_on_seven(start: float = 2.0, staying: float = 1.0) -> AllocationProblem:
    """Job 0 may have 1, 2, 4 or 8 nodes, and a reclaim left it 7, which run like 4; job 1 has none of up to 5.

    Job 0 is worth -5 on 0 nodes, 4, 14, 34 on 1, 2, 4, ``40 - staying`` on 7 and 30 on 8. Job 1 makes 7 a node less
    ``start``, and 7 more from 4 nodes on. Of nine nodes (4, 5) is best, worth 34 + 26; next come (4, 4) and (4, 3),
    worth 53, and (7, 2), worth 51.
    """
    inf = np.inf
    return AllocationProblem.by_count(
        current=np.array([7, 0]),
        min_nodes=np.array([1, 1]),
        max_nodes=np.array([8, 5]),
        gain=np.array([[0.0, 10, 20, 20, 40, 40, 40, 40, 80], [0.0, 7, 14, 21, 28, 35, 0, 0, 0]]),
        loss=np.array(
            [
                [5.0, 6.0, 6.0, inf, 6.0, inf, inf, staying, 50.0],
                [0.0, start, start, start, start + 7.0, start + 7.0, 0, 0, 0],
            ]
        ),
        capacity=9,
    )


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
