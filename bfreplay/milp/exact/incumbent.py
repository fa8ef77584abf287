"""A good answer before the proof: the best one that is two jobs away from the relaxation's."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled

_REACH = 192
"""Largest change of the other job's count that is looked at."""


@compiled
def best_exchange(
    value: NDArray[np.float64], capacity: int, broken: int, counts: NDArray[np.int64]
) -> tuple[float, int, int, int]:
    """Best answer that differs from ``counts`` in job ``broken`` and at most one more job.

    Returns ``(gain over counts, count of broken, other job or -1, its count)``.
    """
    n_jobs, width = value.shape
    width = min(width, capacity + 1)
    reach = min(_REACH, width - 1)
    # best[d + reach]: most that one other job can add by changing its count by exactly d, who, and to what
    best = np.full(2 * reach + 1, -np.inf)
    who = np.full(2 * reach + 1, -1, np.int64)
    best[reach] = 0.0
    used = 0
    for j in range(n_jobs):
        used += counts[j]
        if j == broken:
            continue
        here = counts[j]
        for n in range(max(0, here - reach), min(width - 1, here + reach) + 1):
            gain = value[j, n] - value[j, here]
            if gain > best[n - here + reach]:
                best[n - here + reach] = gain
                who[n - here + reach] = j
    # best change of at most d nodes
    arg = np.empty(2 * reach + 1, np.int64)
    arg[0] = 0
    for d in range(1, 2 * reach + 1):
        arg[d] = d if best[d] > best[arg[d - 1]] else arg[d - 1]
    free = capacity - used
    here = counts[broken]
    top_gain = 0.0
    top_count = here
    top_other = -1
    top_other_count = -1
    for n in range(width):
        own = value[broken, n] - value[broken, here]
        if own == -np.inf:
            continue
        room = free - (n - here)
        if room < -reach:
            break
        d = arg[min(room, reach) + reach]
        if own + best[d] > top_gain:
            top_gain = own + best[d]
            top_count = n
            top_other = who[d]
            top_other_count = counts[top_other] + d - reach if top_other >= 0 else -1
    return top_gain, top_count, top_other, top_other_count
