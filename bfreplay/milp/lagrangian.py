"""Exact optimum over counts: Lagrangian bound on concave hulls, then a dynamic program over what is undecided.

The problem is a multiple-choice knapsack with unit weights. Its Lagrangian relaxation prices a node at
``price`` and lets every job choose for itself; the best price is the slope at which the concave hulls of the f_j,
filled in order of slope, use up the capacity. With that price

``objective = relaxation - price * (unused nodes) - sum_j loss_j(n_j)``,

``loss_j(n) = max_m (f_j(m) - price * m) - (f_j(n) - price * n) >= 0``, so a count whose loss alone exceeds the gap
between the relaxation and the best known answer is in no better answer (reduced-cost fixing; Dyer, Riha and Walker,
"A hybrid dynamic programming/branch-and-bound algorithm for the multiple-choice knapsack problem", 1995, and
Pisinger, "A minimal algorithm for the multiple-choice knapsack problem", 1995, are the sources of the idea).
Few counts survive; a dynamic program over them finds the optimum or proves that the known answer is it.

Functions here are loops over arrays, compiled by numba. Non-concave f_j are the normal case: the charge for
rescaling puts a spike at the current count of every job.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled

PROOF_TOLERANCE = 8 * float(np.finfo(np.float64).eps)
"""Times J + 2 and the relaxation's magnitude: answers closer than this count as equal. It is what rounding may do to
a sum of so many terms, not a gap that an optimiser may leave."""

OVERFLOW = -2
"""Stage of ``optimal_counts`` when sums of the table's numbers are not finite."""

_EXCHANGE_REACH = 192


@compiled
def concave_hulls(
    value: NDArray[np.float64], capacity: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Upper concave hull of each row of ``value``, from its first allowed count to its (first) maximum.

    Returns ``(points (P,), start (J,), stop (J,))``: the hull of job j has its vertices at the counts
    ``points[start[j]:stop[j]]``, increasing. A job without any allowed count has ``start == stop``.
    """
    n_jobs, width = value.shape
    width = min(width, capacity + 1)
    points = np.empty(n_jobs * width, np.int64)
    start = np.empty(n_jobs, np.int64)
    stop = np.empty(n_jobs, np.int64)
    top = 0
    for j in range(n_jobs):
        start[j] = top
        first = top
        best = -np.inf
        peak = -1
        for n in range(width):
            if value[j, n] > best:
                best = value[j, n]
                peak = n
        for n in range(peak + 1):
            v = value[j, n]
            if v == -np.inf:
                continue
            while top - first >= 2:
                b = points[top - 1]
                a = points[top - 2]
                # b lies strictly below the chord from a to n: it is no vertex
                if (value[j, b] - value[j, a]) * (n - a) < (v - value[j, a]) * (b - a):
                    top -= 1
                else:
                    break
            points[top] = n
            top += 1
        stop[j] = top
    return points[:top].copy(), start, stop


@compiled
def _slope(value: NDArray[np.float64], points: NDArray[np.int64], j: int, p: int) -> float:
    """Value per node of the hull segment of job ``j`` that ends at vertex ``p``."""
    slope: float = (value[j, points[p]] - value[j, points[p - 1]]) / (points[p] - points[p - 1])
    return slope


@compiled
def critical_price(
    value: NDArray[np.float64],
    points: NDArray[np.int64],
    start: NDArray[np.int64],
    stop: NDArray[np.int64],
    capacity: int,
) -> tuple[float, int, NDArray[np.int64]]:
    """Price of a node at which the hulls, filled in order of slope, use up ``capacity``.

    Call it only when the hulls' last vertices need more than ``capacity`` and the first ones do not. Returns
    ``(price, broken, vertex (J,))``: every job stands at a vertex of its hull, the sum of counts is at most
    ``capacity``, and the next segment of job ``broken``, of slope ``price``, is the first that does not fit.
    """
    n_jobs = value.shape[0]
    low = start.copy()  # vertex reached at the upper end of the price bracket (few nodes)
    high = stop - 1  # vertex reached at its lower end (many nodes)
    price_high = 0.0
    price_low = np.inf
    for j in range(n_jobs):
        if high[j] > low[j]:
            price_high = max(price_high, _slope(value, points, j, low[j] + 1))
            price_low = min(price_low, _slope(value, points, j, high[j]))
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
                if _slope(value, points, j, c) > price:
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
    slope = np.empty(n_jobs, np.float64)
    for j in range(n_jobs):
        slope[j] = _slope(value, points, j, low[j] + 1) if low[j] + 1 < stop[j] else -np.inf
    while True:
        broken = 0
        for j in range(1, n_jobs):
            if slope[j] > slope[broken]:
                broken = j
        p = low[broken] + 1
        step = points[p] - points[p - 1]
        if total + step > capacity:
            return slope[broken], broken, low
        total += step
        low[broken] = p
        slope[broken] = _slope(value, points, broken, p + 1) if p + 1 < stop[broken] else -np.inf


@compiled
def _exchange(
    value: NDArray[np.float64], capacity: int, broken: int, counts: NDArray[np.int64]
) -> tuple[float, int, int, int]:
    """Best answer that differs from ``counts`` in job ``broken`` and at most one more job.

    Returns ``(gain over counts, count of broken, other job or -1, its count)``.
    """
    n_jobs, width = value.shape
    width = min(width, capacity + 1)
    reach = min(_EXCHANGE_REACH, width - 1)
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


@compiled
def _undecided(
    value: NDArray[np.float64], capacity: int, price: float, best_at_price: NDArray[np.float64], allowance: float
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Counts that may still be in a better answer: ``(count (A,), loss (A,), offset (J + 1,))``."""
    n_jobs, width = value.shape
    width = min(width, capacity + 1)
    size = 0
    for j in range(n_jobs):
        for n in range(width):
            if best_at_price[j] - (value[j, n] - price * n) <= allowance:
                size += 1
    count = np.empty(size, np.int64)
    loss = np.empty(size, np.float64)
    offset = np.empty(n_jobs + 1, np.int64)
    top = 0
    for j in range(n_jobs):
        offset[j] = top
        for n in range(width):
            lost = best_at_price[j] - (value[j, n] - price * n)
            if lost <= allowance:
                count[top] = n
                loss[top] = max(lost, 0.0)
                top += 1
    offset[n_jobs] = top
    return count, loss, offset


@compiled
def _least_loss(
    count: NDArray[np.int64],
    loss: NDArray[np.float64],
    offset: NDArray[np.int64],
    capacity: int,
    price: float,
    allowance: float,
    answer: NDArray[np.int64],
) -> float:
    """Least total loss over the undecided counts, unused nodes at ``price`` each, if below ``allowance``.

    Writes the counts to ``answer (J,)`` and returns the loss; returns ``inf`` and leaves ``answer`` alone
    when nothing is below the allowance. States are sums of counts; those that cannot end between the
    fewest useful nodes and ``capacity``, or have lost the allowance already, are dropped.
    """
    n_jobs = offset.shape[0] - 1
    size = offset[1:] - offset[:-1]
    order = np.argsort(size, kind="mergesort")  # stable: small choices first, then first come first served
    least_rest = 0
    most_rest = 0
    for j in range(n_jobs):
        least_rest += count[offset[j]]
        most_rest += count[offset[j + 1] - 1]
    spare = capacity if price <= 0.0 else int(min(float(capacity), allowance / price + 1.0))
    first = 0  # states are first .. first + lost.size - 1 nodes
    lost = np.zeros(1, np.float64)
    firsts = np.empty(n_jobs, np.int64)
    starts = np.empty(n_jobs + 1, np.int64)
    choice = np.empty(1024, np.int32)
    filled = 0
    for i in range(n_jobs):
        j = order[i]
        a = offset[j]
        b = offset[j + 1]
        least_rest -= count[a]
        most_rest -= count[b - 1]
        new_first = max(first + count[a], capacity - spare - most_rest)
        new_last = min(first + lost.shape[0] - 1 + count[b - 1], capacity - least_rest)
        if new_last < new_first:
            return np.inf
        new_size = new_last - new_first + 1
        while filled + new_size > choice.shape[0]:
            wider = np.empty(2 * choice.shape[0], np.int32)
            wider[:filled] = choice[:filled]
            choice = wider
        new_lost = np.full(new_size, np.inf)
        firsts[i] = new_first
        starts[i] = filled
        for k in range(a, b):
            shift = first + count[k] - new_first
            from_state = max(0, -shift)
            to_state = min(lost.shape[0], new_size - shift)
            for s in range(from_state, to_state):
                total = lost[s] + loss[k]
                if total < new_lost[s + shift] and total < allowance:
                    new_lost[s + shift] = total
                    choice[filled + s + shift] = k - a
        filled += new_size
        first = new_first
        lost = new_lost
    best = np.inf
    best_state = -1
    for s in range(lost.shape[0]):
        total = lost[s] + price * (capacity - first - s)
        if total < best:
            best = total
            best_state = s
    if not best < allowance:
        return np.inf
    nodes = first + best_state
    for back in range(n_jobs):
        i = n_jobs - 1 - back
        j = order[i]
        n = count[offset[j] + choice[starts[i] + nodes - firsts[i]]]
        answer[j] = n
        nodes -= n
    return best


@compiled
def _objective(value: NDArray[np.float64], counts: NDArray[np.int64]) -> float:
    total = 0.0
    for j in range(value.shape[0]):
        total += value[j, counts[j]]
    return total


@compiled
def optimal_counts(
    value: NDArray[np.float64], capacity: int, tolerance: float
) -> tuple[NDArray[np.int64], float, float, int]:
    """Optimal counts of the allocation problem with table ``value (J, K + 1)`` and ``capacity`` nodes.

    Returns ``(counts (J,), objective, bound, stage)``; ``bound - objective`` is at most ``tolerance * (J + 2)``
    times the relaxation's magnitude. ``stage`` tells where the proof closed: 0 capacity does not bind, 1 relaxation,
    2 exchange, 3 dynamic program; -1: no feasible counts (then ``objective`` is ``-inf``); ``OVERFLOW``: the numbers
    are too large to prove anything.
    """
    n_jobs = value.shape[0]
    counts = np.zeros(n_jobs, np.int64)
    if n_jobs == 0:
        return counts, 0.0, 0.0, 0
    points, start, stop = concave_hulls(value, capacity)
    least = 0
    most = 0
    for j in range(n_jobs):
        if start[j] == stop[j]:
            return counts, -np.inf, -np.inf, -1
        least += points[start[j]]
        most += points[stop[j] - 1]
    if least > capacity:
        return counts, -np.inf, -np.inf, -1
    if most <= capacity:
        for j in range(n_jobs):
            counts[j] = points[stop[j] - 1]
        objective = _objective(value, counts)
        return counts, objective, objective, 0

    price, broken, vertex = critical_price(value, points, start, stop, capacity)
    relaxation = price * capacity
    magnitude = abs(relaxation)
    best_at_price = np.empty(n_jobs, np.float64)
    free = capacity
    for j in range(n_jobs):
        n = points[vertex[j]]
        counts[j] = n
        free -= n
        best_at_price[j] = value[j, n] - price * n
        relaxation += best_at_price[j]
        magnitude += abs(best_at_price[j])
    if not magnitude < np.inf:
        return counts, np.nan, np.inf, OVERFLOW
    slack = tolerance * (n_jobs + 2) * magnitude
    # the broken job takes the part of its next segment that fits, if a count there is worth it
    for n in range(counts[broken] + 1, counts[broken] + free + 1):
        if value[broken, n] > value[broken, counts[broken]]:
            free -= n - counts[broken]
            counts[broken] = n
    objective = _objective(value, counts)
    if relaxation - objective <= slack:
        return counts, objective, max(relaxation, objective), 1

    gain, n, other, other_count = _exchange(value, capacity, broken, counts)
    if gain > 0.0:
        counts[broken] = n
        if other >= 0:
            counts[other] = other_count
        objective = _objective(value, counts)
        if relaxation - objective <= slack:
            return counts, objective, max(relaxation, objective), 2

    allowance = relaxation - objective - slack
    count, loss, offset = _undecided(value, capacity, price, best_at_price, allowance + slack)
    lost = _least_loss(count, loss, offset, capacity, price, allowance, counts)
    if lost < np.inf:
        objective = _objective(value, counts)
    return counts, objective, objective + slack, 3
