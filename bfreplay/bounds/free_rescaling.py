"""Every interval at its optimum, as if rescaling were free."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.bounds.job_classes import JobClass
from bfreplay.milp.exact.every_capacity import relaxed_optima

_EXACT_STEPS = 4e8
"""Most steps of the dynamic program over all capacities; beyond it the concave hulls bound it from above."""


def best_rates(classes: tuple[JobClass, ...], most_nodes: int) -> NDArray[np.float64]:
    """Most samples/s that the jobs make together on at most 0, 1, ..., ``most_nodes`` nodes, ``(most_nodes + 1,)``.

    All jobs run at once. Exact, or an upper bound from the curves' concave hulls where exact would take too long.
    """
    steps = sum(each.n_jobs * each.rate.size for each in classes) * (most_nodes + 1)
    if steps > _EXACT_STEPS:
        rate = np.full((len(classes), max(each.rate.size for each in classes)), -np.inf)
        for row, each in zip(rate, classes, strict=True):
            row[: each.rate.size] = reachable(each)
        return relaxed_optima(rate, np.array([each.n_jobs for each in classes]), most_nodes)
    best = np.zeros(most_nodes + 1)
    for each in classes:
        for _ in range(each.n_jobs):
            best = _with_one_more(best, each.rate, each.min_nodes)
    return best


@compiled
def _with_one_more(best: NDArray[np.float64], rate: NDArray[np.float64], min_nodes: int) -> NDArray[np.float64]:
    """The best rates when one more job may run."""
    after = best.copy()
    for nodes in range(best.size):
        for n in range(min_nodes, min(rate.size - 1, nodes) + 1):
            value = best[nodes - n] + rate[n]
            if value > after[nodes]:
                after[nodes] = value
    return after


def reachable(jobs: JobClass) -> NDArray[np.float64]:
    """The rate of a job at each count, ``-inf`` at those that it may not have, ``(K + 1,)``."""
    counts = np.arange(jobs.rate.size)
    return np.where((counts == 0) | (counts >= jobs.min_nodes), jobs.rate, -np.inf)
