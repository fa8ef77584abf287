"""The priced problem of a job with soft maxima: what it is worth, and how many nodes it would hold on average.

With a temperature ``t > 0`` every maximum over counts becomes ``t log sum exp(. / t)``. The result is smooth in the
prices, and its gradient is known: good prices can be searched for by any quasi-Newton method. Bounds are never taken
from here; they are computed by ``priced`` at the prices found.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.bounds.priced import least_from
from bfreplay.milp.rescale_cost import growth_cost, preemption_cost, shrink_cost


@compiled
def soft_most_while_paying(
    rate: NDArray[np.float64],
    min_nodes: int,
    scale_up_s: float,
    scale_down_s: float,
    price: NDArray[np.float64],
    seconds: NDArray[np.float64],
    idle: NDArray[np.int64],
    reclaimed: NDArray[np.int64],
    temperature: float,
    weight: NDArray[np.float64],
    total: NDArray[np.float64],
    nodes: NDArray[np.float64],
) -> float:
    """Arguments as of ``priced.most_while_paying``, a temperature in samples, and three arrays to be filled.

    ``weight`` and ``total`` ``(I, K + 1)`` are scratch; ``nodes (I,)`` gets the mean count in each interval.
    """
    width, n_intervals = rate.size, seconds.size
    least = least_from(rate)
    up_s, down_s = np.full(width, scale_up_s), np.full(width, scale_down_s)
    grow = np.exp(-growth_cost(rate, up_s) / temperature)
    grow_from_least = np.exp(-growth_cost(least, up_s) / temperature)
    shrink = np.exp(-shrink_cost(rate, down_s) / temperature)
    preempted = np.exp(-preemption_cost(rate, down_s) / temperature)
    held = np.zeros(width)
    during = np.empty(width)
    up = np.empty(width)
    for i in range(n_intervals - 1, -1, -1):
        most = 0.0  # never to run again
        for n in range(width):
            allowed = n == 0 or min_nodes <= n <= idle[i]
            during[n] = held[n] + seconds[i] * (rate[n] - price[i] * n) if allowed else -np.inf
            most = max(most, during[n])
        for n in range(width):
            weight[i, n] = np.exp((during[n] - most) / temperature)
        _growing(grow, grow_from_least, preempted, reclaimed[i], up)
        stop = np.exp(-most / temperature)
        above = 0.0
        for n in range(width - 1, -1, -1):
            total[i, n] = weight[i, n] + up[n] * above + stop
            above += weight[i, n]
        below = 0.0
        for n in range(width):
            total[i, n] += shrink[n] * below
            below += weight[i, n]
            held[n] = most + temperature * np.log(total[i, n])
    chance = np.zeros(width)
    chance[0] = 1.0
    for i in range(n_intervals):
        _growing(grow, grow_from_least, preempted, reclaimed[i], up)
        coming = 0.0
        for n in range(width):
            chance[n] /= total[i, n]
            during[n] = chance[n] + coming
            coming += chance[n] * up[n]
        coming = 0.0
        mean = 0.0
        for n in range(width - 1, -1, -1):
            during[n] = (during[n] + coming) * weight[i, n]
            coming += chance[n] * shrink[n]
            mean += n * during[n]
        nodes[i] = mean
        chance[:] = during
    return float(held[0])


@compiled
def _growing(
    grow: NDArray[np.float64],
    grow_from_least: NDArray[np.float64],
    preempted: NDArray[np.float64],
    reclaimed: int,
    up: NDArray[np.float64],
) -> None:
    """Fill in exp(-cost of growing / temperature) at each count."""
    for n in range(grow.size):
        up[n] = grow[n]
        if reclaimed > 0 and n > 0:
            up[n] = max(up[n], preempted[n] * grow_from_least[max(n - reclaimed, 0)])
