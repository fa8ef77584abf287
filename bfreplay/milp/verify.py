"""Re-verification: no answer is believed before it is checked against the problem itself."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.problem import AllocationProblem

RELATIVE_TOLERANCE = 1e-6
"""Largest relative difference between a claimed and a recomputed objective that counts as equal (MILP solvers
work to about 1e-6 themselves)."""


def objective_of(problem: AllocationProblem, counts: NDArray[np.int64]) -> float:
    """``sum_j f_j(counts_j)``, and ``-inf`` when a bound, the capacity or the change limit is broken."""
    if violation(problem, counts):
        return float("-inf")
    return float(problem.value[np.arange(problem.n_jobs), counts].sum())


def violation(problem: AllocationProblem, counts: NDArray[np.int64]) -> str:
    """Return what is wrong with ``counts`` in one sentence, or an empty string when they are feasible.

    Anything may be passed: what is no array of whole numbers is wrong.
    """
    if not isinstance(counts, np.ndarray):
        return f"counts are a {type(counts).__name__}, expected an array"
    if not np.issubdtype(counts.dtype, np.integer):
        return f"counts are of type {counts.dtype}, expected whole numbers (int64)"
    if counts.shape != (problem.n_jobs,):
        return f"counts have shape {counts.shape}, expected ({problem.n_jobs},)"
    if int(counts.sum()) > problem.capacity:
        return f"counts sum to {int(counts.sum())} of {problem.capacity} idle nodes"
    width = problem.gain.shape[1]
    for job_index, count in enumerate(counts.tolist()):
        if not 0 <= count < width or problem.value[job_index, count] == -np.inf:
            allowance = f"0 or {int(problem.min_nodes[job_index])} to {int(problem.max_nodes[job_index])}"
            if problem.change_limit is not None:
                allowance += f", at most {problem.change_limit} from {int(problem.current[job_index])}"
            if 0 <= count < width and np.isinf(problem.loss[job_index, count]):
                allowance += ", and not where the loss is infinite"
            return f"job {job_index} gets {count} nodes, allowed are {allowance}"
    return ""


def magnitude(problem: AllocationProblem) -> float:
    """Return the largest amount that an allowed count is worth or loses, the scale of answers.

    Nothing that no answer can have counts: neither gains beyond the idle nodes nor losses of jobs that hold nothing.
    """
    is_feasible = problem.value > -np.inf
    gain, loss = problem.gain[is_feasible], problem.loss[is_feasible]
    return float(max(np.abs(gain).max(initial=0.0), loss.max(initial=0.0)))


def largest_coefficient(problem: AllocationProblem) -> float:
    """Return the largest gain or loss of the problem, allowed or not, the scale of a solver's arithmetic.

    A model may hold coefficients that no answer can use, and the objective that a solver reports is rounded like them.
    """
    return float(max(np.abs(problem.gain[problem.is_read]).max(initial=0.0), problem.largest_loss))


def agrees(claim: float, true_value: float, scale: float) -> bool:
    """Return whether two objectives are equal to ``RELATIVE_TOLERANCE`` of the larger magnitude (at least ``scale``).

    ``true_value`` is finite; a claim that is not agrees with nothing.
    """
    return math.isfinite(claim) and abs(claim - true_value) <= RELATIVE_TOLERANCE * max(
        scale, abs(claim), abs(true_value)
    )
