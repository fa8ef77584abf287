"""From a table of values to proven optimal counts: relaxation, incumbent, core."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.milp.exact.core import better_answer, undecided_counts
from bfreplay.milp.exact.incumbent import best_exchange
from bfreplay.milp.exact.relaxation import concave_hulls, critical_price

PROOF_TOLERANCE = 8 * float(np.finfo(np.float64).eps)
"""Times J + 2 and the relaxation's magnitude: answers closer than this count as equal. It is what rounding may do to
a sum of so many terms, not a gap that an optimiser may leave."""

OVERFLOW = -2
"""Stage of ``optimal_counts`` when sums of the table's numbers are not finite."""


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
    2 exchange, 3 core; -1: no feasible counts (then ``objective`` is ``-inf``); ``OVERFLOW``: the numbers
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
    base = np.empty(n_jobs, np.int64)
    free = capacity
    for j in range(n_jobs):
        n = points[vertex[j]]
        base[j] = n
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

    gain, n, other, other_count = best_exchange(value, capacity, broken, counts)
    if gain > 0.0:
        counts[broken] = n
        if other >= 0:
            counts[other] = other_count
        objective = _objective(value, counts)
        if relaxation - objective <= slack:
            return counts, objective, max(relaxation, objective), 2

    allowance = relaxation - objective - slack
    count, loss, offset = undecided_counts(value, capacity, price, best_at_price, allowance + slack)
    if better_answer(count, loss, offset, base, broken, capacity, price, allowance, counts):
        objective = _objective(value, counts)
    return counts, objective, objective + slack, 3
