"""Upper bounds from prices, and the search for good ones.

The jobs share the pool. Give every node of interval i a price instead, ``p_i >= 0`` samples/s, and let each job by
itself choose its counts over the whole window: what it makes, less its rescale costs, less what its nodes cost. The sum
over the jobs plus the price of all nodes is an upper bound on what any policy can make, for every choice of prices
(Lagrangian duality; for weakly coupled dynamic programs: Hawkins, 2003). docs/design/bounds.md has the proof, and why
the transitions below cost no more than those of the replay.

Good prices are searched for with soft maxima: with a temperature ``t > 0`` every maximum over counts becomes ``t log
sum exp(. / t)``. The result is smooth in the prices, and its gradient is known: any quasi-Newton method can use it.
Bounds are never taken from there; they are computed exactly at the prices found.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.bounds.job_classes import Horizon, JobClass
from bfreplay.milp.charge_rule import preemption_cost, scale_down_cost, scale_up_cost


@compiled
def most_while_paying(jobs: JobClass, price: NDArray[np.float64], horizon: Horizon) -> float:
    """Return the most samples of a job of the class, less the cost of its nodes, over the I intervals.

    Parameters
    ----------
    jobs
        Class whose rescale costs are seconds of the rate before.
    price : (I,)
        Price of a node in each interval, samples/s.
    horizon
        Intervals, whose idle nodes limit the job.
    """
    rate, min_nodes, scale_up_s, scale_down_s = jobs.rate, jobs.min_nodes, jobs.scale_up_s, jobs.scale_down_s
    seconds, idle, reclaimed = horizon.seconds, horizon.idle, horizon.reclaimed
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
            up, down = scale_up_cost(rate[n], scale_up_s), scale_down_cost(rate[n], scale_down_s)
            if reclaimed[i] > 0 and n > 0:
                preempted = preemption_cost(rate[n], scale_down_s)
                up = min(up, preempted + scale_up_cost(least[max(n - reclaimed[i], 0)], scale_up_s))
                down = min(down, preempted)
            worth = max(during[n], more[n] - up, best - down)
            # or never run again: a debt that is not worked off is no loss
            held[n] = max(worth, 0.0)
            best = max(best, during[n])
    return float(held[0])


@compiled
def least_from(rate: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the least rate at each count or any larger one, ``(K + 1,)``.

    A job that loses nodes pays for the loss. If it scales up at the same instant, it pays by its lower rate after the
    loss, or nothing from zero. That can be less than scaling up from where it was.
    """
    least = rate.copy()
    for n in range(rate.size - 2, -1, -1):
        least[n] = min(least[n], least[n + 1])
    return least


@compiled
def soft_most_while_paying(
    jobs: JobClass,
    price: NDArray[np.float64],
    horizon: Horizon,
    temperature: float,
    weight: NDArray[np.float64],
    total: NDArray[np.float64],
    nodes: NDArray[np.float64],
) -> float:
    """Return the smoothed ``most_while_paying`` at a temperature in samples, and fill three arrays.

    ``weight`` and ``total`` ``(I, K + 1)`` are scratch; ``nodes (I,)`` gets the mean count in each interval.
    """
    rate, seconds = jobs.rate, horizon.seconds
    min_nodes, idle, reclaimed = jobs.min_nodes, horizon.idle, horizon.reclaimed
    width, n_intervals = rate.size, seconds.size
    least = least_from(rate)
    up_s, down_s = np.full(width, jobs.scale_up_s), np.full(width, jobs.scale_down_s)
    grow = np.exp(-scale_up_cost(rate, up_s) / temperature)
    grow_from_least = np.exp(-scale_up_cost(least, up_s) / temperature)
    shrink = np.exp(-scale_down_cost(rate, down_s) / temperature)
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
    """Write exp(-cost of scaling up / temperature) at each count into ``up``."""
    for n in range(grow.size):
        up[n] = grow[n]
        if reclaimed > 0 and n > 0:
            up[n] = max(up[n], preempted[n] * grow_from_least[max(n - reclaimed, 0)])


_COOLING = (25.0, 80.0, 250.0)
"""Temperatures of the search: a class's dearest rescale divided by these, one after the other."""

_LEAST_S = 1e-3
"""A temperature is at least what a job makes in this time: without rescale costs there is nothing to smooth."""

_LEAST = 1e-10
"""Least temperature in samples, whatever the rates: it is a divisor."""

_MOST_STATES = 40_000_000
"""Intervals times counts that the search may keep in memory, 16 bytes each."""

SearchProgress = Callable[[int, int], None]
"""Called with (evaluations so far, most evaluations)."""


def bound_at(prices: NDArray[np.float64], classes: tuple[JobClass, ...], horizon: Horizon) -> float:
    """Return an upper bound on the samples of all jobs at ``prices`` ``(I,)``, samples/s per node, any >= 0."""
    bound = float((prices * horizon.idle * horizon.seconds).sum())
    for each in classes:
        bound += each.n_jobs * most_while_paying(each, prices, horizon)
    return bound


def simple_prices(prices: NDArray[np.float64], classes: tuple[JobClass, ...], horizon: Horizon) -> NDArray[np.float64]:
    """Return ``prices``, half of them, or zeros, whichever gives the lowest bound: few jobs compete for little."""
    return min((prices * part for part in (1.0, 0.5, 0.0)), key=lambda at: bound_at(at, classes, horizon))


def better_prices(
    prices: NDArray[np.float64],
    classes: tuple[JobClass, ...],
    horizon: Horizon,
    evaluations: int,
    progress: SearchProgress | None = None,
) -> NDArray[np.float64]:
    """Search from ``prices`` for prices with a lower bound; return ``prices`` if the log is too long to search.

    L-BFGS-B on the smoothed bound, cooler and cooler.
    """
    from scipy.optimize import minimize

    widest = max(each.rate.size for each in classes)
    if horizon.n_intervals * widest > _MOST_STATES:
        return prices
    seconds, idle = horizon.seconds, horizon.idle.astype(np.float64)
    # short intervals bear large prices: a variable each, of about the same effect on the bound
    scale = max(float(prices.mean()), 1e-9) / np.sqrt(seconds)
    unit = max(float((prices * idle * seconds).sum()), 1e-9)
    scratch = np.empty((2, horizon.n_intervals, widest))
    nodes = np.empty(horizon.n_intervals)
    done = 0

    def smooth_bound(variables: NDArray[np.float64], cooling: float) -> tuple[float, NDArray[np.float64]]:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, evaluations)
        at = variables * scale
        value, spare = float((at * idle * seconds).sum()), idle.copy()
        for each in classes:
            width = each.rate.size
            fastest = float(each.rate.max())
            dearest = max(scale_up_cost(fastest, each.scale_up_s), scale_down_cost(fastest, each.scale_down_s))
            temperature = max(dearest / cooling, _LEAST_S * fastest, _LEAST)
            value += each.n_jobs * soft_most_while_paying(
                each, at, horizon, temperature, scratch[0][:, :width], scratch[1][:, :width], nodes
            )
            spare -= each.n_jobs * nodes
        return value / unit, spare * seconds * scale / unit

    found, best = prices, bound_at(prices, classes, horizon)
    variables = prices / scale
    for stage, cooling in enumerate(_COOLING):
        left = (evaluations - done) // (len(_COOLING) - stage)
        if left < 2:
            break
        variables = minimize(
            smooth_bound, variables, args=(cooling,), jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * prices.size,
            options={"maxfun": left, "maxiter": left, "maxcor": 20, "ftol": 1e-10, "gtol": 0.0},
        ).x  # fmt: skip
        at = variables * scale
        bound = bound_at(at, classes, horizon)
        if bound < best:
            found, best = at, bound
    return found
