"""What one job could make if it paid for its nodes: the most over all ways through the intervals.

The jobs share the pool. Give every node of interval i a price instead, ``p_i >= 0`` samples/s, and let each job by
itself choose its counts over the whole window: what it makes, less its rescale costs, less what its nodes cost. The sum
over the jobs plus the price of all nodes is an upper bound on what any policy can make, for every choice of prices
(Lagrangian duality; for weakly coupled dynamic programs: Hawkins, 2003). docs/design-choices.md has the proof, and why
the transitions below cost no more than those of the replay.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.milp.rescale_cost import growth_cost, preemption_cost, shrink_cost


@compiled
def most_while_paying(
    rate: NDArray[np.float64],
    min_nodes: int,
    scale_up_s: float,
    scale_down_s: float,
    price: NDArray[np.float64],
    seconds: NDArray[np.float64],
    idle: NDArray[np.int64],
    reclaimed: NDArray[np.int64],
) -> float:
    """Most samples of a job, less what its nodes cost, over I intervals.

    Parameters
    ----------
    rate : (K + 1,)
        Samples/s at each count.
    min_nodes
        Fewest nodes to run on.
    scale_up_s, scale_down_s
        Rescale costs, seconds of the rate before.
    price, seconds, idle, reclaimed : (I,)
        Of each interval the price of a node in samples/s, the length, the idle nodes, of which the job can have no
        more, and the nodes taken back when it begins.
    """
    width = rate.size
    least = least_from(rate)
    held = np.zeros(width)  # worth of coming into the next interval with so many nodes
    during = np.empty(width)  # worth of having so many nodes during this one
    more = np.empty(width)
    for i in range(seconds.size - 1, -1, -1):
        for n in range(width):
            allowed = n == 0 or min_nodes <= n <= idle[i]
            during[n] = held[n] + seconds[i] * (rate[n] - price[i] * n) if allowed else -np.inf
        best = -np.inf
        for n in range(width - 1, -1, -1):
            more[n] = best
            best = max(best, during[n])
        best = -np.inf  # of fewer nodes
        for n in range(width):
            up, down = growth_cost(rate[n], scale_up_s), shrink_cost(rate[n], scale_down_s)
            if reclaimed[i] > 0 and n > 0:
                preempted = preemption_cost(rate[n], scale_down_s)
                up = min(up, preempted + growth_cost(least[max(n - reclaimed[i], 0)], scale_up_s))
                down = min(down, preempted)
            worth = max(during[n], more[n] - up, best - down)
            # or never run again: a debt that is not worked off is no loss
            held[n] = max(worth, 0.0)
            best = max(best, during[n])
    return float(held[0])


@compiled
def least_from(rate: NDArray[np.float64]) -> NDArray[np.float64]:
    """Least rate at each count or any larger one, ``(K + 1,)``.

    A job that loses nodes pays for the loss; should it grow at the same instant, it pays by its lower rate after the
    loss, or nothing from zero. That can be less than growing from where it was.
    """
    least = rate.copy()
    for n in range(rate.size - 2, -1, -1):
        least[n] = min(least[n], least[n + 1])
    return least
