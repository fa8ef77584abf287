"""The relaxed optimum at every capacity at once, and what one node more would be worth."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.exact.relaxation import concave_hulls


def hull_counts(value: NDArray[np.float64]) -> NDArray[np.int64]:
    """Counts at the vertices of the concave hull of one row ``(K + 1,)``, from its first allowed count to its peak."""
    points: NDArray[np.int64] = concave_hulls(np.ascontiguousarray(value[None, :]), value.size - 1)[0]
    return points


def relaxed_optima(value: NDArray[np.float64], copies: NDArray[np.int64], capacity: int) -> NDArray[np.float64]:
    """Most that the concave hulls are worth together at each capacity 0, 1, ..., ``capacity``.

    Parameters
    ----------
    value : (J, K + 1)
        What each job is worth at each count, 0 at none; ``-inf`` at counts that it may not have.
    copies : (J,)
        How many jobs each row stands for.
    capacity
        Most nodes.

    Returns
    -------
    (capacity + 1,) array
        An upper bound on the optimum over whole counts at each capacity, and equal to it at the hulls' vertices.
    """
    points, start, stop = concave_hulls(np.ascontiguousarray(value), value.shape[1] - 1)
    row = np.repeat(np.arange(value.shape[0]), stop - start)
    is_segment = np.ones(points.size, np.bool_)
    is_segment[start[start < stop]] = False  # the first vertex of a job ends no segment
    ends = np.flatnonzero(is_segment)
    length = points[ends] - points[ends - 1]
    slope = (value[row[ends], points[ends]] - value[row[ends], points[ends - 1]]) / length
    order = np.argsort(-slope, kind="stable")
    length = length[order] * copies[row[ends]][order]
    nodes = np.concatenate([[0], np.cumsum(length)])
    worth = np.concatenate([[0.0], np.cumsum(slope[order] * length)])
    optima: NDArray[np.float64] = np.interp(np.arange(capacity + 1), nodes, worth)
    return optima


def node_prices(optima: NDArray[np.float64]) -> NDArray[np.float64]:
    """What one node more would be worth at each capacity: slopes of the concave hull of ``optima`` ``(C + 1,)``."""
    points = hull_counts(optima)
    slopes = np.append(np.diff(optima[points]) / np.diff(points), 0.0)
    prices: NDArray[np.float64] = slopes[np.searchsorted(points, np.arange(optima.size), side="right") - 1]
    return prices
