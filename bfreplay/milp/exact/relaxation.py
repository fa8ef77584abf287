"""The relaxation of one decision: its bound at one capacity and at every one, and counts from its prices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled, copy_into


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
    for job_index in range(n_jobs):
        start[job_index] = top
        size = 0
        best = -np.inf
        a = b = 0.0  # counts of the last vertex but one and of the last, and what they are worth
        at_a = at_b = 0.0
        for n in range(width):
            v = value[job_index, n]
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
        stop[job_index] = top
        for p in range(start[job_index] + 1, top):
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
    vertex_low = start.copy()  # vertex reached at the upper end of the price bracket (few nodes)
    vertex_high = stop - 1  # vertex reached at its lower end (many nodes)
    price_high = 0.0
    price_low = np.inf
    for j in range(n_jobs):
        if vertex_high[j] > vertex_low[j]:
            price_high = max(price_high, slope[vertex_low[j] + 1])
            price_low = min(price_low, slope[vertex_high[j]])
    middle = np.empty(n_jobs, np.int64)
    for _ in range(60):
        open_segments = 0
        for j in range(n_jobs):
            open_segments += vertex_high[j] - vertex_low[j]
        if open_segments <= 2 * n_jobs:
            break
        price = 0.5 * (price_low + price_high)
        if not price_low < price < price_high:
            break
        total = 0
        for j in range(n_jobs):
            a = vertex_low[j]
            b = vertex_high[j]
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
            copy_into(vertex_low, middle)
        else:
            price_low = price
            copy_into(vertex_high, middle)
    # fill what is left one segment at a time, steepest first, ties to the job that came first
    total = 0
    for j in range(n_jobs):
        total += points[vertex_low[j]]
    following = np.empty(n_jobs, np.float64)  # slope of each job's next segment
    for j in range(n_jobs):
        following[j] = slope[vertex_low[j] + 1] if vertex_low[j] + 1 < stop[j] else -np.inf
    while True:
        cut_job = 0
        for j in range(1, n_jobs):
            if following[j] > following[cut_job]:
                cut_job = j
        p = vertex_low[cut_job] + 1
        step = points[p] - points[p - 1]
        if total + step > capacity:
            return following[cut_job], cut_job, vertex_low
        total += step
        vertex_low[cut_job] = p
        following[cut_job] = slope[p + 1] if p + 1 < stop[cut_job] else -np.inf


def hull_counts(value: NDArray[np.float64]) -> NDArray[np.int64]:
    """Counts at the vertices of the concave hull of one row ``(K + 1,)``, from its first allowed count to its peak."""
    return concave_hulls(np.ascontiguousarray(value[None, :]), value.size - 1).points


def optima_of_hulls(value: NDArray[np.float64], copies: NDArray[np.int64], capacity: int) -> NDArray[np.float64]:
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
    row_of_point = np.repeat(np.arange(value.shape[0]), stop - start)
    is_segment = np.ones(points.size, np.bool_)
    is_segment[start[start < stop]] = False  # the first vertex of a job ends no segment
    ends = np.flatnonzero(is_segment)
    length = points[ends] - points[ends - 1]
    slope = slope[ends]
    order = np.argsort(-slope, kind="stable")
    length = length[order] * copies[row_of_point[ends]][order]
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
    value: NDArray[np.float64], capacity: int, cut_job: int, counts: NDArray[np.int64]
) -> tuple[float, int, int, int]:
    """Best answer that differs from ``counts`` in job ``cut_job`` and at most one more job.

    Returns ``(gain over counts, count of broken, other job or -1, its count)``.
    """
    n_jobs, width = value.shape
    width = min(width, capacity + 1)
    reach = min(_REACH, width - 1)
    # best[d + reach]: most that one other job can add by changing its count by exactly d, who, and to what
    best_gain = np.full(2 * reach + 1, -np.inf)
    best_job = np.full(2 * reach + 1, -1, np.int64)
    best_gain[reach] = 0.0
    n_used = 0
    for job_index in range(n_jobs):
        n_used += counts[job_index]
        if job_index == cut_job:
            continue
        count_now = counts[job_index]
        lowest, above_highest = max(0, count_now - reach), min(width, count_now + reach + 1)
        worth, worth_now = value[job_index, lowest:above_highest], value[job_index, count_now]
        gain_slice, job_slice = best_gain[lowest - count_now + reach :], best_job[lowest - count_now + reach :]
        for n in range(
            above_highest - lowest
        ):  # the same steps at every count: the compiler takes several counts at once
            gain = worth[n] - worth_now
            is_better = gain > gain_slice[n]
            gain_slice[n] = gain if is_better else gain_slice[n]
            job_slice[n] = job_index if is_better else job_slice[n]
    # best change of at most d nodes
    best_change = np.empty(2 * reach + 1, np.int64)
    best_change[0] = 0
    for d in range(1, 2 * reach + 1):
        best_change[d] = d if best_gain[d] > best_gain[best_change[d - 1]] else best_change[d - 1]
    n_free = capacity - n_used
    count_now = counts[cut_job]
    top_gain = 0.0
    top_count = count_now
    top_other = -1
    top_other_count = -1
    for n in range(width):
        own_gain = value[cut_job, n] - value[cut_job, count_now]
        if own_gain == -np.inf:
            continue
        room = n_free - (n - count_now)
        if room < -reach:
            break
        d = best_change[min(room, reach) + reach]
        if own_gain + best_gain[d] > top_gain:
            top_gain = own_gain + best_gain[d]
            top_count = n
            top_other = best_job[d]
            top_other_count = counts[top_other] + d - reach if top_other >= 0 else -1
    return top_gain, top_count, top_other, top_other_count
