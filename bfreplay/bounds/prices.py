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

import math
from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled, compiled_inline
from bfreplay.bounds.job_classes import Horizon, JobClass
from bfreplay.milp.charge_rule import preemption_cost, scale_down_cost, scale_up_cost
from bfreplay.milp.exact.relaxation import node_prices


class PricedJob:
    """A job that pays for its nodes, over one part of the window after the other: the most that it can make.

    Parameters
    ----------
    jobs
        Class of the job, whose rescale costs are seconds of the rate before.
    """

    def __init__(self, jobs: JobClass) -> None:
        self._jobs = jobs
        self._held = np.full(jobs.rate.size, -np.inf)
        self._held[0] = 0.0
        self._most = np.zeros(jobs.rate.size)

    def go_on(self, price: NDArray[np.float64], part: Horizon) -> None:
        """Go on over the I intervals of a part, in which a node costs ``price (I,)`` samples/s."""
        _pay(self._jobs, price, part, self._held, self._most)

    @property
    def most(self) -> float:
        """Most samples until now, less the cost of the nodes."""
        return float(self._most.max())


@compiled
def _pay(
    jobs: JobClass, price: NDArray[np.float64], part: Horizon, held: NDArray[np.float64], most: NDArray[np.float64]
) -> None:
    """Go on over I intervals: ``held (K + 1,)`` is the most with so many nodes now, ``most (K + 1,)`` at any time.

    Fewer than ``min_nodes`` make nothing, and so are never worth more than none.
    """
    rate, scale_up_s, scale_down_s = jobs.rate, jobs.scale_up_s, jobs.scale_down_s
    width = rate.size
    up, down, preempted, up_from_least = np.empty((4, width))
    least = least_from(rate)
    for n in range(width):
        up[n], up_from_least[n] = scale_up_cost(rate[n], scale_up_s), scale_up_cost(least[n], scale_up_s)
        down[n], preempted[n] = scale_down_cost(rate[n], scale_down_s), preemption_cost(rate[n], scale_down_s)
    grown, shrunk, from_fewer, from_more = np.empty((4, width))
    for i in range(part.seconds.size):
        seconds, cost, reclaimed = part.seconds[i], price[i], part.reclaimed[i]
        # short loops: each is vectorised by the compiler, but for the two maxima, which do not wait for one another
        for n in range(width):
            grown[n] = held[n] - up[n]
        for n in range(width):
            shrunk[n] = held[n] - down[n]
        if reclaimed > 0:
            for n in range(width):
                grown[n] = max(grown[n], held[n] - (preempted[n] + up_from_least[max(n - reclaimed, 0)]))
                shrunk[n] = max(shrunk[n], held[n] - preempted[n])
        fewer = more = -np.inf
        for n in range(width):
            from_fewer[n] = fewer
            fewer = _larger(grown[n], fewer)
            from_more[width - 1 - n] = more
            more = _larger(shrunk[width - 1 - n], more)
        widest = min(part.idle[i], width - 1)
        for n in range(widest + 1):
            held[n] = _larger(held[n], _larger(from_fewer[n], from_more[n])) + seconds * (rate[n] - cost * n)
        held[widest + 1 :] = -np.inf
        for n in range(width):  # it may never run again: a debt that is not worked off is no loss
            most[n] = _larger(held[n], most[n])


@compiled_inline
def _larger(a: float, b: float) -> float:
    """Return the larger number; ``max`` also looks for nan, which takes longer than all the rest."""
    return a if a > b else b


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
    """Return the most of a job of the class as ``PricedJob`` does, smoothed at a temperature in samples.

    Fills three arrays: ``weight`` and ``total`` ``(I, K + 1)`` are scratch; ``nodes (I,)`` gets the mean count in each
    interval.
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
    worth, spread = np.empty(width), np.empty(width)
    power, part = np.empty(width), np.empty(width)
    power_bits, part_bits = power.view(np.int64), part.view(np.int64)
    above, below, up = np.empty(width), np.empty(width), np.empty(width)
    # what n nodes are worth when interval i begins is level + temperature * log(held[n] * unit)
    held, unit, level = np.ones(width), 1.0, 0.0
    # short loops: each is vectorised by the compiler, or adds up two sums that do not wait for one another
    for i in range(n_intervals - 1, -1, -1):
        widest = min(idle[i], width - 1)
        for n in range(width):
            worth[n] = seconds[i] * (rate[n] - price[i] * n)
        most = 0.0
        for n in range(min_nodes, widest + 1):
            most = max(most, worth[n])
        for n in range(width):  # exp, as 2 ** power * part; least of it matters no more beside the largest, 1
            x = max((worth[n] - most) / temperature, _LEAST_EXPONENT)
            shifted = x * _LOG2_E + _SHIFT  # the whole number is in the low bits
            power[n] = shifted
            shifted -= _SHIFT
            r = (x - shifted * _LN_2_HIGH) - shifted * _LN_2_LOW
            series = 1 / 39916800
            series = series * r + 1 / 3628800
            series = series * r + 1 / 362880
            series = series * r + 1 / 40320
            series = series * r + 1 / 5040
            series = series * r + 1 / 720
            series = series * r + 1 / 120
            series = series * r + 1 / 24
            series = series * r + 1 / 6
            series = series * r + 0.5
            series = series * r + 1.0
            part[n] = series * r + 1.0
        for n in range(width):
            part_bits[n] += power_bits[n] << 52
        here, all_here = weight[i], total[i]
        for n in range(width):
            here[n] = held[n] * unit * part[n]
        here[1 : min(min_nodes, width)] = 0.0
        here[widest + 1 :] = 0.0
        _sums(here, here, below, above)
        every = below[width - 1] + here[width - 1]
        stop = np.exp(-(level + most) / temperature)  # never to run again
        _growing(grow, grow_from_least, preempted, reclaimed[i], up)
        for n in range(width):
            all_here[n] = here[n] + up[n] * above[n] + shrink[n] * below[n] + stop
        held, unit = all_here, 1 / every
        level += most + temperature * np.log(every)
    chance = np.zeros(width)
    chance[0] = 1.0
    for i in range(n_intervals):
        here, all_here = weight[i], total[i]
        _growing(grow, grow_from_least, preempted, reclaimed[i], up)
        for n in range(width):
            spread[n] = chance[n] / all_here[n]
            power[n] = spread[n] * up[n]
            part[n] = spread[n] * shrink[n]
        _sums(power, part, below, above)
        for n in range(width):
            chance[n] = (spread[n] + below[n] + above[n]) * here[n]
        mean = 0.0
        for n in range(width):
            mean += n * chance[n]
        nodes[i] = mean
    return float(level + temperature * np.log(held[0] * unit))


@compiled_inline
def _sums(
    first: NDArray[np.float64], second: NDArray[np.float64], below: NDArray[np.float64], above: NDArray[np.float64]
) -> None:
    """Fill in the sum of ``first`` over all smaller counts, and that of ``second`` over all larger ones."""
    low = high = 0.0
    last = first.size - 1
    for n in range(first.size):
        below[n] = low
        low += first[n]
        above[last - n] = high
        high += second[last - n]


@compiled_inline
def _growing(
    grow: NDArray[np.float64],
    grow_from_least: NDArray[np.float64],
    preempted: NDArray[np.float64],
    reclaimed: int,
    up: NDArray[np.float64],
) -> None:
    """Write exp(-cost of scaling up / temperature) at each count into ``up``."""
    width = grow.size
    up[:] = grow
    if reclaimed > 0:
        for n in range(1, min(reclaimed, width)):
            up[n] = max(grow[n], preempted[n] * grow_from_least[0])
        for n in range(min(reclaimed, width), width):
            up[n] = max(grow[n], preempted[n] * grow_from_least[n - reclaimed])


_LEAST_EXPONENT = -340.0
_LOG2_E, _LN_2_HIGH, _LN_2_LOW = 1.4426950408889634, 0.6931471803691238, 1.9082149292705877e-10
_SHIFT = 6755399441055744.0
"""1.5 * 2 ** 52: a float next to it is a whole number."""

_COOLING = 250.0
"""Temperature of the search: a class's dearest rescale divided by this."""

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
        job = PricedJob(each)
        job.go_on(prices, horizon)
        bound += each.n_jobs * job.most
    return bound


_SHARES = (1.0, 0.5, 0.0)
"""Shares of its price at which a node may be offered: few compete for little."""


class SimplePrices:
    """Bounds from the price of one more node at each number of idle nodes, over one part of the window after the other.

    Parameters
    ----------
    classes
        Classes of the jobs, which may all run at once.
    best : (N + 1,)
        Their best rates on at most 0, 1, ..., N nodes, samples/s; N are the most idle nodes at any time.
    """

    def __init__(self, classes: tuple[JobClass, ...], best: NDArray[np.float64]) -> None:
        self._best, self._price = best, node_prices(best)
        self._jobs = [(share, each, PricedJob(each)) for share in _SHARES for each in classes]
        self._seconds = np.zeros(best.size)  # with so many idle nodes

    def go_on(self, part: Horizon) -> None:
        """Go on over the intervals of a part."""
        np.add.at(self._seconds, part.idle, part.seconds)  # one by one: the parts do not change the sums
        price = self._price[part.idle]
        for share, _, job in self._jobs:
            job.go_on(price * share, part)

    @property
    def free(self) -> float:
        """Samples with every interval at its optimum, and free rescaling."""
        return float((self._best * self._seconds).sum())

    @property
    def lowest(self) -> tuple[float, NDArray[np.float64]]:
        """The lowest bound, and its price of a node at each number of idle nodes, ``(N + 1,)``."""
        nodes = float((self._price * np.arange(self._price.size) * self._seconds).sum())
        bounds = {share: share * nodes for share in _SHARES}
        for share, each, job in self._jobs:
            bounds[share] += each.n_jobs * job.most
        share = min(bounds, key=bounds.__getitem__)
        return bounds[share], self._price * share


def better_prices(
    prices: NDArray[np.float64],
    classes: tuple[JobClass, ...],
    horizon: Horizon,
    evaluations: int,
    progress: SearchProgress | None = None,
) -> NDArray[np.float64]:
    """Search from ``prices`` for prices with a lower bound; return ``prices`` if the log is too long to search.

    L-BFGS on the smoothed bound, kept at prices >= 0 (``_descend``).
    """
    widest = max(each.rate.size for each in classes)
    if horizon.n_intervals * widest > _MOST_STATES:
        return prices
    seconds, idle = horizon.seconds, horizon.idle.astype(np.float64)
    # short intervals bear large prices: a variable each, of about the same effect on the bound
    scale = max(float(prices.mean()), 1e-9) / np.sqrt(seconds)
    unit = max(float((prices * idle * seconds).sum()), 1e-9)
    scratch = {each.rate.size: np.empty((2, horizon.n_intervals, each.rate.size)) for each in classes}
    nodes = np.empty(horizon.n_intervals)
    done = 0

    def soft_bound(variables: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, evaluations)
        at = variables * scale
        value, spare = float((at * idle * seconds).sum()), idle.copy()
        for each in classes:
            fastest = float(each.rate.max())
            dearest = max(scale_up_cost(fastest, each.scale_up_s), scale_down_cost(fastest, each.scale_down_s))
            temperature = max(dearest / _COOLING, _LEAST_S * fastest, _LEAST)
            weight, total = scratch[each.rate.size]
            value += each.n_jobs * soft_most_while_paying(each, at, horizon, temperature, weight, total, nodes)
            spare -= each.n_jobs * nodes
        return value / unit, spare * seconds * scale / unit

    found = _descend(soft_bound, prices / scale, evaluations) * scale
    return found if bound_at(found, classes, horizon) < bound_at(prices, classes, horizon) else prices


_MEMORY = 20
"""Steps that the search remembers of the curvature."""

_ENOUGH = 1e-4
"""Share of the descent that the slope promises, which a step has to bring."""

_STANDSTILL = 1e-10
"""The search ends with a step that brings less than this, relative."""


def _descend(
    function: Callable[[NDArray[np.float64]], tuple[float, NDArray[np.float64]]],
    x: NDArray[np.float64],
    evaluations: int,
) -> NDArray[np.float64]:
    """Minimise a smooth convex ``function``, which returns value and gradient, from ``x`` on, with x >= 0.

    Projected L-BFGS (Nocedal 1980; Bertsekas 1982 on the bound). That of scipy has its sums from a library that starts
    threads for them, which cost more than the search, and whose digits depend on the machine.
    """
    value, slope = function(x)
    left = evaluations - 1
    steps: deque[tuple[NDArray[np.float64], NDArray[np.float64], float]] = deque(maxlen=_MEMORY)
    while left:
        is_free = (x > 0) | (slope < 0)
        down = np.where(is_free, slope, 0.0)
        if not down.any():
            break
        parts = []
        for step, change, curvature in reversed(steps):
            parts.append(_dot(step, down) / curvature)
            down -= parts[-1] * change
        down *= steps[-1][2] / _dot(steps[-1][1], steps[-1][1]) if steps else 1 / math.sqrt(_dot(down, down))
        for (step, change, curvature), part in zip(steps, reversed(parts), strict=True):
            down += step * (part - _dot(change, down) / curvature)
        down = np.where(is_free, down, 0.0)
        length, before = 1.0, value
        while left:
            left -= 1
            at = np.maximum(x - length * down, 0.0)
            value, slope_there = function(at)
            if value <= before + _ENOUGH * _dot(slope, at - x):
                break
            length /= 2
        else:
            break
        curvature = _dot(at - x, slope_there - slope)
        if curvature > 0:
            steps.append((at - x, slope_there - slope, curvature))
        x, slope = at, slope_there
        if before - value <= _STANDSTILL * max(abs(before), 1.0):
            break
    return x


def _dot(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    return float(np.einsum("i,i", a, b))
