"""Start times, stratified over the log."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_SECOND_US = 1_000_000


def stratified_starts(first_us: int, last_us: int, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return ``n`` times, whole seconds, ascending: one uniformly random in each of ``n`` equal strata.

    Parameters
    ----------
    first_us, last_us
        Earliest and latest start. If fewer than ``n`` whole seconds lie there, each of them is a start.
    n
        Number of starts.
    rng
        Source of randomness.
    """
    first, last = -(-first_us // _SECOND_US), last_us // _SECOND_US
    if last < first:
        return np.array([first_us], np.int64)
    n = min(n, last - first + 1)
    edges = np.linspace(first, last + 1, n + 1)
    drawn = np.floor(edges[:-1] + rng.random(n) * np.diff(edges)).astype(np.int64)
    return np.minimum(drawn, last) * _SECOND_US
