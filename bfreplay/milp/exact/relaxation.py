"""The relaxation of one decision: its bound at one capacity and at every one, and counts from its prices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled


class Hulls(NamedTuple):
    """Upper concave hulls of what J jobs are worth: that of job j has the vertices ``start[j]`` to ``stop[j] - 1``.

    A job without any allowed count has ``start == stop``.
    """

    points: NDArray[np.int64]  # (P,) counts of the vertices, increasing in each hull
    worth: NDArray[np.float64]  # (P,) at them
    slope: NDArray[np.float64]  # (P,) per node, of the segment that ends there; not to be read at the first of a job
    start: NDArray[np.int64]  # (J,)
    stop: NDArray[np.int64]  # (J,)


@compiled
def concave_hulls(value: NDArray[np.float64], capacity: int) -> Hulls:
    """Upper concave hull of each row of ``value``, from its first allowed count to its (first) maximum."""
    n_jobs, width = value.shape
    width = min(width, capacity + 1)
    points = np.empty(n_jobs * width, np.int64)
    worth = np.empty(n_jobs * width, np.float64)
    slope = np.empty(n_jobs * width, np.float64)
    start = np.empty(n_jobs, np.int64)
    stop = np.empty(n_jobs, np.int64)
    top = 0
    for j in range(n_jobs):
        start[j] = top
        size = 0
        best = -np.inf
        a = b = 0.0  # counts of the last vertex but one and of the last, and what they are worth
        at_a = at_b = 0.0
        for n in range(width):
            v = value[j, n]
            if not v > best:  # every vertex is worth more than all counts below it
                continue
            best = v
            # b lies strictly below the chord from a to n: it is no vertex
            while size >= 2 and (at_b - at_a) * (n - a) < (v - at_a) * (b - a):
                size -= 1
                top -= 1
                b, at_b = a, at_a
                if size >= 2:
                    a, at_a = float(points[top - 2]), worth[top - 2]
            points[top] = n
            worth[top] = v
            top += 1
            size += 1
            a, at_a = b, at_b
            b, at_b = float(n), v
        stop[j] = top
        for p in range(start[j] + 1, top):
            slope[p] = (worth[p] - worth[p - 1]) / (points[p] - points[p - 1])
    return Hulls(points[:top], worth[:top], slope[:top], start, stop)


@compiled
def critical_price(hulls: Hulls, capacity: int) -> tuple[float, int, NDArray[np.int64]]:
    """Price of a node at which the hulls, filled in order of slope, use up ``capacity``.

    Call it only when the hulls' last vertices need more than ``capacity`` and the first ones do not. Returns
    ``(price, broken, vertex (J,))``: every job stands at a vertex of its hull, the sum of counts is at most
    ``capacity``, and the next segment of job ``broken``, of slope ``price``, is the first that does not fit.
    """
    points, _, slope, start, stop = hulls
    n_jobs = start.shape[0]
    low = start.copy()  # vertex reached at the upper end of the price bracket (few nodes)
    high = stop - 1  # vertex reached at its lower end (many nodes)
    price_high = 0.0
    price_low = np.inf
    for j in range(n_jobs):
        if high[j] > low[j]:
            price_high = max(price_high, slope[low[j] + 1])
            price_low = min(price_low, slope[high[j]])
    middle = np.empty(n_jobs, np.int64)
    for _ in range(60):
        open_segments = 0
        for j in range(n_jobs):
            open_segments += high[j] - low[j]
        if open_segments <= 2 * n_jobs:
            break
        price = 0.5 * (price_low + price_high)
        if not price_low < price < price_high:
            break
        total = 0
        for j in range(n_jobs):
            a = low[j]
            b = high[j]
            while a < b:  # last vertex whose segment is worth more than the price
                c = (a + b + 1) // 2
                if slope[c] > price:
                    a = c
                else:
                    b = c - 1
            middle[j] = a
            total += points[a]
        if total <= capacity:
            price_high = price
            low[:] = middle
        else:
            price_low = price
            high[:] = middle
    # fill what is left one segment at a time, steepest first, ties to the job that came first
    total = 0
    for j in range(n_jobs):
        total += points[low[j]]
    following = np.empty(n_jobs, np.float64)  # slope of each job's next segment
    for j in range(n_jobs):
        following[j] = slope[low[j] + 1] if low[j] + 1 < stop[j] else -np.inf
    while True:
        broken = 0
        for j in range(1, n_jobs):
            if following[j] > following[broken]:
                broken = j
        p = low[broken] + 1
        step = points[p] - points[p - 1]
        if total + step > capacity:
            return following[broken], broken, low
        total += step
        low[broken] = p
        following[broken] = slope[p + 1] if p + 1 < stop[broken] else -np.inf


def hull_counts(value: NDArray[np.float64]) -> NDArray[np.int64]:
    """Counts at the vertices of the concave hull of one row ``(K + 1,)``, from its first allowed count to its peak."""
    return concave_hulls(np.ascontiguousarray(value[None, :]), value.size - 1).points


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
    hulls = concave_hulls(np.ascontiguousarray(value), value.shape[1] - 1)
    points, _, slope, start, stop = hulls
    row = np.repeat(np.arange(value.shape[0]), stop - start)
    is_segment = np.ones(points.size, np.bool_)
    is_segment[start[start < stop]] = False  # the first vertex of a job ends no segment
    ends = np.flatnonzero(is_segment)
    length = points[ends] - points[ends - 1]
    slope = slope[ends]
    order = np.argsort(-slope, kind="stable")
    length = length[order] * copies[row[ends]][order]
    nodes = np.concatenate([[0], np.cumsum(length)])
    worth = np.concatenate([[0.0], np.cumsum(slope[order] * length)])
    optima: NDArray[np.float64] = np.interp(np.arange(capacity + 1), nodes, worth)
    return optima


def node_prices(optima: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the value of one more node at each capacity: slopes of the concave hull of ``optima`` ``(C + 1,)``."""
    points = hull_counts(optima)
    slopes = np.append(np.diff(optima[points]) / np.diff(points), 0.0)
    prices: NDArray[np.float64] = slopes[np.searchsorted(points, np.arange(optima.size), side="right") - 1]
    return prices


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
        low, after = max(0, here - reach), min(width, here + reach + 1)
        worth, worth_here = value[j, low:after], value[j, here]
        best_there, who_there = best[low - here + reach :], who[low - here + reach :]
        for n in range(after - low):  # the same steps at every count: the compiler takes several counts at once
            gain = worth[n] - worth_here
            is_better = gain > best_there[n]
            best_there[n] = gain if is_better else best_there[n]
            who_there[n] = j if is_better else who_there[n]
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
