"""One binary for every job and every count it may have: a multiple-choice knapsack."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.formulations.curves import start_counts
from bfreplay.milp.formulations.formulation import NodeMap
from bfreplay.milp.model import Columns, LinearModel, Rows
from bfreplay.milp.problem import AllocationProblem


class Choices:
    """Counts as choices; no node names, no special ordered sets, no big M.

    Variables: ``y[j, n]`` binary, job j gets n nodes, for every n with ``f_j(n) > -inf`` (0, and min_nodes to
    max_nodes, as far as capacity and change limit allow).

    Maximise ``sum f_j(n) y[j, n]`` subject to ``sum_n y[j, n] = 1`` for each job (``one[j]``) and
    ``sum n y[j, n] <= capacity`` (``capacity[0]``).

    Size: at most J (min(K, N) + 1) columns, J + 1 rows, 2 entries a column at most. A job without any allowed
    count (a change limit can do that) has the one column ``y[j, 0]`` with an upper bound of 0: the model is
    infeasible, as it should be.

    Source: the multiple-choice knapsack that BFTrainer's equations 1 to 16 (arXiv:2106.12091) are over counts.
    """

    name = "choices"
    needs_sos = False
    needs_continuous = False
    change_limited = False

    def build(self, problem: AllocationProblem) -> LinearModel:
        """Build the model; columns ordered by job, then count."""
        return choice_model(problem, _offered_counts(problem), np.arange(problem.n_jobs), start_counts(problem))

    def read(self, problem: AllocationProblem, x: NDArray[np.float64]) -> tuple[NDArray[np.int64], NodeMap | None]:
        """Return the chosen counts. A job with two choices gets their sum: re-verification judges it."""
        return chosen_counts(_offered_counts(problem), x), None


def choice_model(
    problem: AllocationProblem,
    offered: NDArray[np.bool_],
    jobs: NDArray[np.int64],
    start: NDArray[np.int64] | None,
    *,
    capacity: int | None = None,
    constant: float = 0.0,
) -> LinearModel:
    """Build the model in which ``jobs`` choose among the ``offered (J, K + 1)`` counts; other jobs are offered none.

    A count that is offered although it is not allowed gets an upper bound of 0.
    ``start`` are counts ``(J,)`` of which those of ``jobs`` are offered; ``capacity`` is what ``jobs`` may use (the
    problem's own by default); ``constant`` is added to the objective.
    """
    job, count = np.nonzero(offered)
    columns, rows = Columns(), Rows()
    worth = problem.value[job, count]
    allowed = worth > -np.inf
    y = columns.add("y", job, count, objective=np.where(allowed, worth, 0.0), upper=allowed.astype(np.float64))
    one = rows.add("one", jobs.shape[0], 1.0, 1.0, jobs)
    rows.put(one + np.searchsorted(jobs, job), y, 1.0)
    room = problem.capacity if capacity is None else capacity
    rows.put(rows.add("capacity", 1, -np.inf, float(room)), y, count.astype(np.float64))
    begins = None if start is None else (start[job] == count).astype(np.float64)
    return rows.model_of(columns, objective_constant=constant, start=begins)


def chosen_counts(offered: NDArray[np.bool_], x: NDArray[np.float64]) -> NDArray[np.int64]:
    """``(J,)``: the counts that column values ``x`` of ``choice_model`` choose; 0 for jobs that are offered none."""
    job, count = np.nonzero(offered)
    counts = np.zeros(offered.shape[0], dtype=np.int64)
    np.add.at(counts, job, count * np.rint(x).astype(np.int64))
    return counts


def _offered_counts(problem: AllocationProblem) -> NDArray[np.bool_]:
    """``(J, K + 1)``: the counts allowed, and 0 for a job that has none."""
    offered = problem.value > -np.inf
    offered[:, 0] |= ~offered.any(axis=1)
    return offered
