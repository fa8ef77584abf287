"""What each count is worth to a job over the next intervals, when nodes have a price in those to come.

A job by itself, with its counts free in every later interval: what it makes, less what rescaling costs it, less what
its nodes cost. That the jobs share the pool is in the prices: what one node more would be worth to all of them at the
pool's size. So a node that will be scarce soon is worth giving up in time, and one that will be gone soon is not worth
growing for.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.milp.rescale_cost import growth_cost, shrink_cost


@compiled
def values_ahead(
    rate: NDArray[np.float64],
    min_nodes: NDArray[np.int64],
    max_nodes: NDArray[np.int64],
    scale_up_s: NDArray[np.float64],
    scale_down_s: NDArray[np.float64],
    price: NDArray[np.float64],
    seconds: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Worth of each count now, mean over S futures, ``(J, K + 1)``; 0 for no nodes.

    Parameters
    ----------
    rate : (J, K + 1)
        Objective per second of each job at each count.
    min_nodes, max_nodes, scale_up_s, scale_down_s : (J,)
        Bounds and rescale costs (seconds of the rate before).
    price, seconds : (S, L)
        Of each future the price of a node in each of its L intervals, and their lengths. The first interval is the
        one that begins now; its price is not read, because the decision knows the pool.
    """
    n_jobs, width = rate.shape
    n_futures, length = seconds.shape
    worth = np.zeros((n_jobs, width))
    held = np.empty(width)
    during = np.empty(width)
    more = np.empty(width)
    for j in range(n_jobs):
        twin = _twin(rate, min_nodes, max_nodes, scale_up_s, scale_down_s, j)
        if twin < j:
            worth[j] = worth[twin]
            continue
        top = max_nodes[j]
        for s in range(n_futures):
            held[:] = 0.0
            for i in range(length - 1, 0, -1):
                for n in range(top + 1):
                    allowed = n == 0 or n >= min_nodes[j]
                    during[n] = held[n] + seconds[s, i] * (rate[j, n] - price[s, i] * n) if allowed else -np.inf
                best = -np.inf
                for n in range(top, -1, -1):
                    more[n] = best
                    best = max(best, during[n])
                best = -np.inf  # of fewer nodes
                for n in range(top + 1):
                    now = rate[j, n]
                    up, down = growth_cost(now, scale_up_s[j]), shrink_cost(now, scale_down_s[j])
                    held[n] = max(during[n], more[n] - up, best - down)
                    best = max(best, during[n])
            for n in range(top + 1):
                worth[j, n] += seconds[s, 0] * rate[j, n] + held[n] - held[0]
        for n in range(top + 1):
            worth[j, n] /= n_futures
    return worth


@compiled
def _twin(
    rate: NDArray[np.float64],
    min_nodes: NDArray[np.int64],
    max_nodes: NDArray[np.int64],
    scale_up_s: NDArray[np.float64],
    scale_down_s: NDArray[np.float64],
    job: int,
) -> int:
    """The first job that is like ``job`` in all that matters: in a campaign all jobs are."""
    for j in range(job):
        is_like = (
            min_nodes[j] == min_nodes[job]
            and max_nodes[j] == max_nodes[job]
            and scale_up_s[j] == scale_up_s[job]
            and scale_down_s[j] == scale_down_s[job]
        )
        for n in range(rate.shape[1]):
            if not is_like:
                break
            is_like = rate[j, n] == rate[job, n]
        if is_like:
            return j
    return job
