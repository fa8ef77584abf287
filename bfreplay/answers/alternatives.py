"""The best whole decisions that there were: of all, of those with a certain count of one job, of those without it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay.errors import BfreplayError
from bfreplay.milp.exact.solver import LARGEST, PROOF_TOLERANCE, optimal_counts
from bfreplay.milp.problem import AllocationProblem


@dataclass(frozen=True, slots=True, eq=False)
class Alternative:
    """One feasible answer to a decision.

    Parameters
    ----------
    counts : (J,) int64
        Nodes per job.
    objective
        What all jobs together are worth by it, recomputed from the problem.
    """

    counts: NDArray[np.int64]
    objective: float


def best_of_all(problem: AllocationProblem) -> Alternative | None:
    """Return the proven optimum; ``None`` when bounds and change limit leave no answer.

    Raises
    ------
    BfreplayError
        Values are too large to calculate with.
    """
    return _best(problem.value, problem.capacity)


def best_with(problem: AllocationProblem, job: int, count: int) -> Alternative | None:
    """Return the best of the answers in which ``job`` has ``count`` nodes; ``None`` where there is none.

    Raises as ``best_of_all``.
    """
    if not 0 <= count < problem.value.shape[1]:
        return None
    value = problem.value.copy()
    kept = value[job, count]
    value[job] = -np.inf
    value[job, count] = kept
    return _best(value, problem.capacity)


def best_without(problem: AllocationProblem, job: int, count: int) -> Alternative | None:
    """Return the best of the answers in which ``job`` has any other number of nodes; ``None`` where there is none.

    The count is barred in the table of values itself, so the answer is as exact as the optimum. Raises as
    ``best_of_all``.
    """
    value = problem.value.copy()
    value[job, count] = -np.inf
    return _best(value, problem.capacity)


def _best(value: NDArray[np.float64], capacity: int) -> Alternative | None:
    if not value.max(initial=0.0) < LARGEST:
        raise _too_large()
    counts, objective, bound, stage = optimal_counts(value, capacity, PROOF_TOLERANCE)
    if stage == -1:
        return None
    if stage < 0 or not (math.isfinite(objective) and math.isfinite(bound)):
        raise _too_large()
    return Alternative(counts, float(objective))


def _too_large() -> BfreplayError:
    return BfreplayError("the objective is no number, or too large for one: check rates and weights")
