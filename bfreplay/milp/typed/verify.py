"""Re-verification of answers on several types: none is believed before it is checked against the problem."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.typed.problem import NO_TYPE, TypedProblem
from bfreplay.milp.verify import violation as violation_of_one_type


def violation(problem: TypedProblem, types: NDArray[np.int64], counts: NDArray[np.int64]) -> str:
    """What is wrong with an answer in one sentence, or an empty string when it is feasible.

    Parameters
    ----------
    problem
        What was asked.
    types : (J,) int64
        Type of each job's nodes, ``NO_TYPE`` for a job without any.
    counts : (J,) int64
        How many.
    """
    for name, array in (("types", types), ("counts", counts)):
        if not (isinstance(array, np.ndarray) and np.issubdtype(array.dtype, np.integer)):
            return f"{name} are no array of whole numbers"
        if array.shape != (problem.n_jobs,):
            return f"{name} have shape {array.shape}, expected ({problem.n_jobs},)"
    wrong = np.where(counts > 0, (types < 0) | (types >= problem.n_types), types != NO_TYPE)
    if wrong.any():
        j = int(np.argmax(wrong))
        return f"job {j} gets {int(counts[j])} nodes of type {int(types[j])} of {problem.n_types}"
    for t in range(problem.n_types):
        fault = violation_of_one_type(problem.of_type(t), np.where(types == t, counts, 0))
        if fault:
            return f"type {t}: {fault}"
    negative = np.flatnonzero(counts < 0)
    return f"job {negative[0]} gets {int(counts[negative[0]])} nodes" if negative.size else ""


def objective_of(problem: TypedProblem, types: NDArray[np.int64], counts: NDArray[np.int64]) -> float:
    """``sum_j f_j(types_j, counts_j)``, and ``-inf`` when a bound or a capacity is broken."""
    if violation(problem, types, counts):
        return float("-inf")
    return float(problem.value[np.arange(problem.n_jobs), np.maximum(types, 0), counts].sum())
