"""Breakpoints of a tabulated curve: the few points between which it is straight."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

STRAIGHT = 1e-13
"""A second difference below this share of the curve's largest magnitude is rounding, not a kink."""

EXACT = 1e-10
"""Largest interpolation error at any count, as that share; with a larger one every count is kept."""


def kinks(table: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the counts at which ``table`` (value at 0, 1, ..., k) bends, with both ends, ascending.

    Linear interpolation between them gives the table back at every whole count.
    """
    last = table.shape[0] - 1
    if last <= 1:
        return np.arange(last + 1)
    scale = float(np.abs(table).max())
    bends = np.flatnonzero(np.abs(np.diff(table, n=2)) > STRAIGHT * scale) + 1
    points = np.concatenate(([0], bends, [last]))
    counts = np.arange(last + 1)
    error = np.abs(np.interp(counts, points, table[points]) - table).max()
    return points if error <= EXACT * scale else counts
