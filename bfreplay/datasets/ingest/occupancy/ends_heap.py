"""Compiled heap of ends, the earliest first.

Plain arrays of times and of the intervals that end then. The order of ends at one time follows from the pushes, and
some rules of assignment depend on it: ``heapq`` would order them otherwise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled


@compiled
def push_end(time_us: int, what: int, size: int, end_us: NDArray[np.int64], ends: NDArray[np.int32]) -> None:
    """Add an end to a heap of ``size`` entries."""
    at = size
    while at > 0 and end_us[(at - 1) // 2] > time_us:
        parent = (at - 1) // 2
        end_us[at], ends[at] = end_us[parent], ends[parent]
        at = parent
    end_us[at], ends[at] = time_us, what


@compiled
def pop_end(size: int, end_us: NDArray[np.int64], ends: NDArray[np.int32]) -> int:
    """Remove the first of the ``size`` entries of a heap, and return what ends then."""
    first = int(ends[0])
    time_us, what = end_us[size - 1], ends[size - 1]
    at = 0
    while 2 * at + 1 < size - 1:
        child = 2 * at + 1
        if child + 1 < size - 1 and end_us[child + 1] < end_us[child]:
            child += 1
        if time_us <= end_us[child]:
            break
        end_us[at], ends[at] = end_us[child], ends[child]
        at = child
    end_us[at], ends[at] = time_us, what
    return first
