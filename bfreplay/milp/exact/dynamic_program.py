"""The plain dynamic program over counts: slow, short, and the check of everything faster."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def optimum_by_dynamic_program(value: NDArray[np.float64], capacity: int) -> tuple[NDArray[np.int64], float]:
    """Optimal counts and objective for table ``value (J, K + 1)``, in O(J x K x capacity) vector operations.

    ``best[c]`` is the most that the jobs so far can be worth with at most ``c`` nodes. Without a feasible answer
    the objective is ``-inf``.
    """
    n_jobs, width = value.shape
    best = np.zeros(capacity + 1)
    chosen = np.zeros((n_jobs, capacity + 1), dtype=np.int64)
    for j in range(n_jobs):
        following = np.full(capacity + 1, -np.inf)
        for n in range(min(width, capacity + 1)):
            candidate = np.full(capacity + 1, -np.inf)
            candidate[n:] = best[: capacity + 1 - n] + value[j, n]
            better = candidate > following
            following[better] = candidate[better]
            chosen[j, better] = n
        best = following
    counts = np.zeros(n_jobs, dtype=np.int64)
    left = capacity
    for j in range(n_jobs - 1, -1, -1):
        counts[j] = chosen[j, left]
        left -= int(counts[j])
    return counts, float(best[capacity])
