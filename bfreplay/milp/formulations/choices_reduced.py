"""The choices that a Lagrangian bound leaves: the smallest model, and the one to prefer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.formulations.choices import choice_model, chosen
from bfreplay.milp.formulations.formulation import NodeMap
from bfreplay.milp.formulations.reduction import reduction
from bfreplay.milp.model import LinearModel
from bfreplay.milp.problem import AllocationProblem


class ChoicesReduced:
    """``choices`` after reduced-cost fixing at the critical price of a node.

    A first answer and a price of a node come from the concave hulls of the f_j (``reduction.reduction``).
    Counts that no better answer can have are left out. A job with one count left is fixed: it is no longer in the
    model, its value is in the objective's constant, and the capacity is less by its nodes. If all are fixed the
    first job stays in, so that the model has a column. An optimal answer survives: any answer better than the first
    one has only counts that are kept, and the first one's counts are kept too. A problem without feasible counts
    gives an infeasible model, in which every job has its least allowed count and no job is fixed.

    Variables: ``y[j, n]`` binary, open job j gets n nodes, for every n that is left.

    Maximise ``constant + sum f_j(n) y[j, n]`` subject to ``sum_n y[j, n] = 1`` for each open job (``one[j]``) and
    ``sum n y[j, n] <= N - nodes of fixed jobs`` (``capacity[0]``).

    Size: A columns and at most J + 1 rows, 2 entries a column at most, where A are the counts left to open jobs. It is
    at most that of ``choices`` and mostly far less, because the gap is about that of one hull segment of one job. At
    300 jobs, 4,000 nodes and 64 nodes a job (1,000 generated decisions, curves as the published ones) half had fewer
    than 180 columns, 998 fewer than 2,000, and the largest 2,532. Where many jobs are alike, many counts tie.

    Source: the reduction of Dyer, Riha and Walker, 1995, and Pisinger, 1995; see ``milp.exact``.
    """

    name = "choices_reduced"
    needs_sos = False
    needs_continuous = False
    change_limited = False

    def build(self, problem: AllocationProblem) -> LinearModel:
        """Build the model; columns ordered by job, then count. Starts from the first answer."""
        left = _left(problem)
        fixed = left.fixed
        worth = float(problem.value[np.flatnonzero(fixed >= 0), fixed[fixed >= 0]].sum())
        return choice_model(
            problem,
            left.offered,
            np.flatnonzero(fixed < 0),
            left.incumbent,
            capacity=problem.capacity - int(fixed[fixed >= 0].sum()),
            constant=worth,
        )

    def read(self, problem: AllocationProblem, x: NDArray[np.float64]) -> tuple[NDArray[np.int64], NodeMap | None]:
        """Return the chosen counts, and the fixed ones. A job with two choices gets their sum, which is judged."""
        left = _left(problem)
        return chosen(left.offered, x) + np.maximum(left.fixed, 0), None


@dataclass(frozen=True, slots=True)
class _Left:
    """Counts offered to open jobs, ``(J, K + 1)``; counts of fixed jobs, -1 for open ones, ``(J,)``; first answer."""

    offered: NDArray[np.bool_]
    fixed: NDArray[np.int64]
    incumbent: NDArray[np.int64] | None


def _left(problem: AllocationProblem) -> _Left:
    """Reduce, and fix. The same for the same problem, so ``read`` needs nothing from ``build``."""
    found = reduction(problem)
    fixed = np.full(problem.n_jobs, -1, dtype=np.int64)
    if found.incumbent is not None:
        decided = found.kept.sum(axis=1) == 1
        decided[0] &= not decided.all()
        fixed[decided] = found.incumbent[decided]
    return _Left(found.kept & (fixed < 0)[:, None], fixed, found.incumbent)
