"""Upper bounds from prices, and the search for good ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bfreplay.bounds.horizon import Horizon
from bfreplay.bounds.job_classes import JobClass
from bfreplay.bounds.priced import most_while_paying
from bfreplay.bounds.smooth import soft_most_while_paying
from bfreplay.milp.rescale_cost import growth_cost, shrink_cost

_COOLING = (25.0, 80.0, 250.0)
"""Temperatures of the search: a class's dearest rescale divided by these, one after the other."""

_LEAST_S = 1e-3
"""A temperature is at least what a job makes in this time: without rescale costs there is nothing to smooth."""

_LEAST = 1e-10
"""And no less than this many samples, whatever the rates: it divides."""

_MOST_STATES = 40_000_000
"""Intervals times counts that the search may keep in memory, 16 bytes each."""

SearchProgress = Callable[[int, int], None]
"""Called with (evaluations so far, at most so many)."""


def bound_at(prices: NDArray[np.float64], classes: tuple[JobClass, ...], horizon: Horizon) -> float:
    """Upper bound on the samples of all jobs at ``prices`` ``(I,)``, samples/s a node; valid for any >= 0."""
    bound = float((prices * horizon.idle * horizon.seconds).sum())
    for each in classes:
        bound += each.n_jobs * most_while_paying(
            each.rate, each.min_nodes, each.scale_up_s, each.scale_down_s, prices, horizon.seconds, horizon.idle,
            horizon.reclaimed,
        )  # fmt: skip
    return bound


def simple_prices(prices: NDArray[np.float64], classes: tuple[JobClass, ...], horizon: Horizon) -> NDArray[np.float64]:
    """``prices``, half of them, or none: at which the bound is lowest. Few jobs compete for little."""
    return min((prices * part for part in (1.0, 0.5, 0.0)), key=lambda at: bound_at(at, classes, horizon))


def better_prices(
    prices: NDArray[np.float64],
    classes: tuple[JobClass, ...],
    horizon: Horizon,
    evaluations: int,
    progress: SearchProgress | None = None,
) -> NDArray[np.float64]:
    """Prices at which the bound is lower, from ``prices`` on; those themselves where the log is too long to search.

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

    def smoothed(variables: NDArray[np.float64], cooling: float) -> tuple[float, NDArray[np.float64]]:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, evaluations)
        at = variables * scale
        value, spare = float((at * idle * seconds).sum()), idle.copy()
        for each in classes:
            width = each.rate.size
            fastest = float(each.rate.max())
            dearest = max(growth_cost(fastest, each.scale_up_s), shrink_cost(fastest, each.scale_down_s))
            temperature = max(dearest / cooling, _LEAST_S * fastest, _LEAST)
            value += each.n_jobs * soft_most_while_paying(
                each.rate, each.min_nodes, each.scale_up_s, each.scale_down_s, at, seconds,
                horizon.idle, horizon.reclaimed, temperature, scratch[0][:, :width], scratch[1][:, :width], nodes,
            )  # fmt: skip
            spare -= each.n_jobs * nodes
        return value / unit, spare * seconds * scale / unit

    found, best = prices, bound_at(prices, classes, horizon)
    variables = prices / scale
    for stage, cooling in enumerate(_COOLING):
        left = (evaluations - done) // (len(_COOLING) - stage)
        if left < 2:
            break
        variables = minimize(
            smoothed, variables, args=(cooling,), jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * variables.size,
            options={"maxfun": left, "maxiter": left, "maxcor": 20, "ftol": 1e-10, "gtol": 0.0},
        ).x  # fmt: skip
        at = variables * scale
        bound = bound_at(at, classes, horizon)
        if bound < best:
            found, best = at, bound
    return found
