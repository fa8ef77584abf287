"""The counts that a model's start solution stands for: what the jobs hold now."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.problem import AllocationProblem


def start_counts(problem: AllocationProblem) -> NDArray[np.int64] | None:
    """``(J,)``: every job keeps what it holds, or stops where it may not run on that; ``None`` if it may not either.

    (A job may be left below its minimum by nodes taken back, and held above 0 by a change limit.) The counts are
    feasible: their sum is at most that of ``problem.current``.
    """
    job = np.arange(problem.n_jobs)
    inside = np.minimum(problem.current, problem.gain.shape[1] - 1)
    keeps = (inside == problem.current) & (problem.value[job, inside] > -np.inf)
    if not (keeps | (problem.value[:, 0] > -np.inf)).all():
        return None
    return np.where(keeps, problem.current, 0)
