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

from bfreplay._compiled import compiled, compiled_inline, copy_into
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

    def advance(self, price: NDArray[np.float64], part: Horizon) -> None:
        """Go on over the I intervals of a part, in which a node costs ``price (I,)`` samples/s."""
        _pay(self._jobs, price, part, self._held, self._most)

    @property
    def most(self) -> float:
        """Most samples until now, less the cost of the nodes."""
        return float(self._most.max())


@compiled
def _pay(
    job_class: JobClass,
    price: NDArray[np.float64],
    horizon: Horizon,
    value_now: NDArray[np.float64],
    best_value: NDArray[np.float64],
) -> None:
    """Go on over I intervals. The most with so many nodes now is ``value_now (K + 1,)``, ``best_value`` at any time.

    Fewer than ``min_nodes`` make nothing, and so are never worth more than none.
    """
    rate, scale_up_s, scale_down_s = job_class.rate, job_class.scale_up_s, job_class.scale_down_s
    width = rate.size
    scale_up, scale_down, preemption, up_from_least = np.empty((4, width))
    least_rate = least_from(rate)
    for count in range(width):
        scale_up[count] = scale_up_cost(rate[count], scale_up_s)
        up_from_least[count] = scale_up_cost(least_rate[count], scale_up_s)
        scale_down[count] = scale_down_cost(rate[count], scale_down_s)
        preemption[count] = preemption_cost(rate[count], scale_down_s)
    after_gain, after_loss, from_fewer, from_more = np.empty((4, width))
    for interval in range(horizon.seconds.size):
        seconds, node_price, reclaims = horizon.seconds[interval], price[interval], horizon.reclaimed[interval]
        # short loops: each is vectorised by the compiler, but for the two maxima, which do not wait for one another
        for count in range(width):
            after_gain[count] = value_now[count] - scale_up[count]
        for count in range(width):
            after_loss[count] = value_now[count] - scale_down[count]
        if reclaims > 0:
            for count in range(width):
                swap_cost = preemption[count] + up_from_least[max(count - reclaims, 0)]
                after_gain[count] = max(after_gain[count], value_now[count] - swap_cost)
                after_loss[count] = max(after_loss[count], value_now[count] - preemption[count])
        best_fewer = best_more = -np.inf
        for count in range(width):
            from_fewer[count] = best_fewer
            best_fewer = _larger(after_gain[count], best_fewer)
            from_more[width - 1 - count] = best_more
            best_more = _larger(after_loss[width - 1 - count], best_more)
        widest = min(horizon.idle[interval], width - 1)
        for count in range(widest + 1):
            profit = seconds * (rate[count] - node_price * count)
            value_now[count] = _larger(value_now[count], _larger(from_fewer[count], from_more[count])) + profit
        value_now[widest + 1 :].fill(-np.inf)
        for count in range(width):  # it may never run again: a debt that is not worked off is no loss
            best_value[count] = _larger(value_now[count], best_value[count])


@compiled_inline
def _larger(first: float, second: float) -> float:
    """Return the larger number; ``max`` also looks for nan, which takes longer than all the rest."""
    return first if first > second else second


@compiled
def least_from(rate: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the least rate at each count or any larger one, ``(K + 1,)``.

    A job that loses nodes pays for the loss. If it scales up at the same instant, it pays by its lower rate after the
    loss, or nothing from zero. That can be less than scaling up from where it was.
    """
    least = rate.copy()
    for count in range(rate.size - 2, -1, -1):
        least[count] = min(least[count], least[count + 1])
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
    min_nodes, idle, reclaims = jobs.min_nodes, horizon.idle, horizon.reclaimed
    width, n_intervals = rate.size, seconds.size
    least_rate = least_from(rate)
    scale_up_s, scale_down_s = np.full(width, jobs.scale_up_s), np.full(width, jobs.scale_down_s)
    grow = np.exp(-scale_up_cost(rate, scale_up_s) / temperature)
    grow_from_least = np.exp(-scale_up_cost(least_rate, scale_up_s) / temperature)
    shrink = np.exp(-scale_down_cost(rate, scale_down_s) / temperature)
    preemption = np.exp(-preemption_cost(rate, scale_down_s) / temperature)
    worth, spread = np.empty(width), np.empty(width)
    power, fraction = np.empty(width), np.empty(width)
    power_bits, fraction_bits = power.view(np.int64), fraction.view(np.int64)
    above, below, scale_up = np.empty(width), np.empty(width), np.empty(width)
    # what n nodes are worth when an interval begins is level + temperature * log(value_now[n] * unit)
    value_now, unit, level = np.ones(width), 1.0, 0.0
    # short loops: each is vectorised by the compiler, or adds up two sums that do not wait for one another
    for interval in range(n_intervals - 1, -1, -1):
        widest = min(idle[interval], width - 1)
        for count in range(width):
            worth[count] = seconds[interval] * (rate[count] - price[interval] * count)
        largest = 0.0
        for count in range(min_nodes, widest + 1):
            largest = max(largest, worth[count])
        for count in range(width):  # exp, as 2 ** power * part; least of it matters no more beside the largest, 1
            exponent = max((worth[count] - largest) / temperature, _LEAST_EXPONENT)
            whole_part = exponent * _LOG2_E + _SHIFT  # the whole number is in the low bits
            power[count] = whole_part
            whole_part -= _SHIFT
            remainder = (exponent - whole_part * _LN_2_HIGH) - whole_part * _LN_2_LOW
            series = 1 / 39916800
            series = series * remainder + 1 / 3628800
            series = series * remainder + 1 / 362880
            series = series * remainder + 1 / 40320
            series = series * remainder + 1 / 5040
            series = series * remainder + 1 / 720
            series = series * remainder + 1 / 120
            series = series * remainder + 1 / 24
            series = series * remainder + 1 / 6
            series = series * remainder + 0.5
            series = series * remainder + 1.0
            fraction[count] = series * remainder + 1.0
        for count in range(width):
            fraction_bits[count] += power_bits[count] << 52
        weight_here, total_here = weight[interval], total[interval]
        for count in range(width):
            weight_here[count] = value_now[count] * unit * fraction[count]
        weight_here[1 : min(min_nodes, width)].fill(0.0)
        weight_here[widest + 1 :].fill(0.0)
        _sums(weight_here, weight_here, below, above)
        weight_sum = below[width - 1] + weight_here[width - 1]
        weight_of_stop = np.exp(-(level + largest) / temperature)  # never to run again
        _growing(grow, grow_from_least, preemption, reclaims[interval], scale_up)
        for count in range(width):
            total_here[count] = (
                weight_here[count] + scale_up[count] * above[count] + shrink[count] * below[count] + weight_of_stop
            )
        value_now, unit = total_here, 1 / weight_sum
        level += largest + temperature * np.log(weight_sum)
    chance = np.zeros(width)
    chance[0] = 1.0
    for interval in range(n_intervals):
        weight_here, total_here = weight[interval], total[interval]
        _growing(grow, grow_from_least, preemption, reclaims[interval], scale_up)
        for count in range(width):
            spread[count] = chance[count] / total_here[count]
            power[count] = spread[count] * scale_up[count]
            fraction[count] = spread[count] * shrink[count]
        _sums(power, fraction, below, above)
        for count in range(width):
            chance[count] = (spread[count] + below[count] + above[count]) * weight_here[count]
        mean_count = 0.0
        for count in range(width):
            mean_count += count * chance[count]
        nodes[interval] = mean_count
    return float(level + temperature * np.log(value_now[0] * unit))


@compiled_inline
def _sums(
    first: NDArray[np.float64], second: NDArray[np.float64], below: NDArray[np.float64], above: NDArray[np.float64]
) -> None:
    """Fill in the sum of ``first`` over all smaller counts, and that of ``second`` over all larger ones."""
    sum_below = sum_above = 0.0
    last_count = first.size - 1
    for count in range(first.size):
        below[count] = sum_below
        sum_below += first[count]
        above[last_count - count] = sum_above
        sum_above += second[last_count - count]


@compiled_inline
def _growing(
    grow: NDArray[np.float64],
    grow_from_least: NDArray[np.float64],
    preemption: NDArray[np.float64],
    reclaims: int,
    scale_up: NDArray[np.float64],
) -> None:
    """Write exp(-cost of scaling up / temperature) at each count into ``scale_up``."""
    width = grow.size
    copy_into(scale_up, grow)
    if reclaims > 0:
        for count in range(1, min(reclaims, width)):
            scale_up[count] = max(grow[count], preemption[count] * grow_from_least[0])
        for count in range(min(reclaims, width), width):
            scale_up[count] = max(grow[count], preemption[count] * grow_from_least[count - reclaims])


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
    for job_class in classes:
        priced_job = PricedJob(job_class)
        priced_job.advance(prices, horizon)
        bound += job_class.n_jobs * priced_job.most
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
        self._jobs = [(share, job_class, PricedJob(job_class)) for share in _SHARES for job_class in classes]
        self._seconds = np.zeros(best.size)  # with so many idle nodes

    def advance(self, part: Horizon) -> None:
        """Go on over the intervals of a part."""
        np.add.at(self._seconds, part.idle, part.seconds)  # one by one: the parts do not change the sums
        price = self._price[part.idle]
        for share, _, priced_job in self._jobs:
            priced_job.advance(price * share, part)

    @property
    def free(self) -> float:
        """Samples with every interval at its optimum, and free rescaling."""
        return float((self._best * self._seconds).sum())

    @property
    def lowest(self) -> tuple[float, NDArray[np.float64]]:
        """The lowest bound, and its price of a node at each number of idle nodes, ``(N + 1,)``."""
        node_cost = float((self._price * np.arange(self._price.size) * self._seconds).sum())
        bounds = {share: share * node_cost for share in _SHARES}
        for share, job_class, priced_job in self._jobs:
            bounds[share] += job_class.n_jobs * priced_job.most
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
    widest = max(job_class.rate.size for job_class in classes)
    if horizon.n_intervals * widest > _MOST_STATES:
        return prices
    seconds, idle_nodes = horizon.seconds, horizon.idle.astype(np.float64)
    # short intervals bear large prices: a variable each, of about the same effect on the bound
    scale = max(float(prices.mean()), 1e-9) / np.sqrt(seconds)
    value_unit = max(float((prices * idle_nodes * seconds).sum()), 1e-9)
    scratch = {job_class.rate.size: np.empty((2, horizon.n_intervals, job_class.rate.size)) for job_class in classes}
    mean_nodes = np.empty(horizon.n_intervals)
    n_evaluations = 0

    def soft_bound(variables: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        nonlocal n_evaluations
        n_evaluations += 1
        if progress is not None:
            progress(n_evaluations, evaluations)
        node_price = variables * scale
        value, spare_nodes = float((node_price * idle_nodes * seconds).sum()), idle_nodes.copy()
        for job_class in classes:
            fastest = float(job_class.rate.max())
            up, down = job_class.scale_up_s, job_class.scale_down_s
            dearest = max(scale_up_cost(fastest, up), scale_down_cost(fastest, down))
            temperature = max(dearest / _COOLING, _LEAST_S * fastest, _LEAST)
            weight, total = scratch[job_class.rate.size]
            value += job_class.n_jobs * soft_most_while_paying(
                job_class, node_price, horizon, temperature, weight, total, mean_nodes
            )
            spare_nodes -= job_class.n_jobs * mean_nodes
        return value / value_unit, spare_nodes * seconds * scale / value_unit

    candidate = _descend(soft_bound, prices / scale, evaluations) * scale
    return candidate if bound_at(candidate, classes, horizon) < bound_at(prices, classes, horizon) else prices


_MEMORY = 20
"""Steps that the search remembers of the curvature."""

_ENOUGH = 1e-4
"""Share of the descent that the slope promises, which a step has to bring."""

_STANDSTILL = 1e-10
"""The search ends with a step that brings less than this, relative."""


def _descend(
    function: Callable[[NDArray[np.float64]], tuple[float, NDArray[np.float64]]],
    point: NDArray[np.float64],
    evaluations: int,
) -> NDArray[np.float64]:
    """Minimise a smooth convex ``function``, which returns value and gradient, from ``point`` on, with x >= 0.

    Projected L-BFGS (Nocedal 1980; Bertsekas 1982 on the bound). That of scipy has its sums from a library that starts
    threads for them, which cost more than the search, and whose digits depend on the machine.
    """
    value, slope = function(point)
    n_more_evaluations = evaluations - 1
    steps: deque[tuple[NDArray[np.float64], NDArray[np.float64], float]] = deque(maxlen=_MEMORY)
    while n_more_evaluations:
        is_free = (point > 0) | (slope < 0)
        descent = np.where(is_free, slope, 0.0)
        if not descent.any():
            break
        projections = []
        for step, change, curvature in reversed(steps):
            projections.append(_dot(step, descent) / curvature)
            descent -= projections[-1] * change
        descent *= steps[-1][2] / _dot(steps[-1][1], steps[-1][1]) if steps else 1 / math.sqrt(_dot(descent, descent))
        for (step, change, curvature), projection in zip(steps, reversed(projections), strict=True):
            descent += step * (projection - _dot(change, descent) / curvature)
        descent = np.where(is_free, descent, 0.0)
        length, value_before = 1.0, value
        while n_more_evaluations:
            n_more_evaluations -= 1
            next_point = np.maximum(point - length * descent, 0.0)
            value, slope_there = function(next_point)
            if value <= value_before + _ENOUGH * _dot(slope, next_point - point):
                break
            length /= 2
        else:
            break
        curvature = _dot(next_point - point, slope_there - slope)
        if curvature > 0:
            steps.append((next_point - point, slope_there - slope, curvature))
        point, slope = next_point, slope_there
        if value_before - value <= _STANDSTILL * max(abs(value_before), 1.0):
            break
    return point


def _dot(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    return float(np.einsum("i,i", first, second))
