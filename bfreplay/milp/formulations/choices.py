"""One binary for every job and every count it may have: a multiple-choice knapsack."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.formulations.entries import Rows
from bfreplay.milp.formulations.formulation import NodeMap
from bfreplay.milp.model import LinearModel
from bfreplay.milp.problem import AllocationProblem


class Choices:
    """Counts as choices; no node names, no special ordered sets, no big M.

    Variables: ``y[j, n]`` binary, job j gets n nodes, for every n with ``f_j(n) > -inf`` (0, and min_nodes to
    max_nodes, as far as capacity and change limit allow).

    Maximise ``sum f_j(n) y[j, n]`` subject to ``sum_n y[j, n] = 1`` for each job (``one[j]``) and
    ``sum n y[j, n] <= capacity`` (``capacity[0]``).

    Size: at most J (min(K, N) + 1) columns, J + 1 rows, 2 entries a column at most. A job without any allowed
    count (a change limit can do that) makes an empty row that demands 1: the model is infeasible, as it should be.

    Source: the multiple-choice knapsack that BFTrainer's equations 1 to 16 (arXiv:2106.12091) are over counts.
    """

    name = "choices"
    needs_sos = False
    needs_continuous = False
    change_limited = False

    def build(self, problem: AllocationProblem) -> LinearModel:
        """Build the model; columns ordered by job, then count."""
        job, count = np.nonzero(problem.value > -np.inf)
        column = np.arange(job.shape[0])
        rows = Rows()
        one = rows.add("one", problem.n_jobs, 1.0, 1.0)
        capacity = rows.add("capacity", 1, -np.inf, float(problem.capacity))
        rows.put(one + job, column, 1.0)
        holds = count > 0
        rows.put(capacity, column[holds], count[holds].astype(np.float64))
        return rows.model(
            objective=problem.value[job, count],
            column_upper=np.ones(column.shape[0]),
            is_integer=np.ones(column.shape[0], dtype=np.bool_),
            column_names=[f"y[{j},{n}]" for j, n in zip(job.tolist(), count.tolist(), strict=True)],
        )

    def read(self, problem: AllocationProblem, x: NDArray[np.float64]) -> tuple[NDArray[np.int64], NodeMap | None]:
        """Return the chosen counts. A job with two choices gets their sum: re-verification judges it."""
        job, count = np.nonzero(problem.value > -np.inf)
        counts = np.zeros(problem.n_jobs, dtype=np.int64)
        np.add.at(counts, job, count * np.rint(x).astype(np.int64))
        return counts, None
