"""Decisions of realistic shape for benchmarks: generated curves, a previous optimum; and a plain way to solve them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp import AllocationProblem, ExactSolver


def realistic(n_jobs: int, n_idle: int, max_nodes: int, t_fwd_s: float, rng: np.random.Generator) -> AllocationProblem:
    """Seven models' curves, measured at powers of two and linear between, as BFTrainer's ImageNet set is."""
    points = _measured_at(max_nodes)
    models = []
    for _ in range(7):
        single = rng.uniform(1_000, 10_000)
        rates = single * points ** rng.uniform(0.75, 1.0) * rng.uniform(0.97, 1.03, points.size)
        models.append(np.interp(np.arange(max_nodes + 1), points, rates))
    return _after_an_earlier_one(np.array([models[j % 7] for j in range(n_jobs)]), n_idle, t_fwd_s, rng)


def distinct(n_jobs: int, n_idle: int, max_nodes: int, t_fwd_s: float, rng: np.random.Generator) -> AllocationProblem:
    """Every job with a curve of its own, measured at every count with noise: neither concave nor shared."""
    count = np.arange(max_nodes + 1)
    single = rng.uniform(1_000, 10_000, (n_jobs, 1))
    rates = single * count ** rng.uniform(0.6, 1.0, (n_jobs, 1)) * rng.uniform(0.97, 1.03, (n_jobs, count.size))
    return _after_an_earlier_one(rates, n_idle, t_fwd_s, rng)


def _measured_at(max_nodes: int) -> NDArray[np.int64]:
    return np.unique(np.append(2 ** np.arange(int(np.log2(max_nodes)) + 1), [0, max_nodes]))


def _after_an_earlier_one(
    rates: NDArray[np.float64], n_idle: int, t_fwd_s: float, rng: np.random.Generator
) -> AllocationProblem:
    """The jobs hold the optimum for a pool of about the same size, from which some have lost nodes."""
    n_jobs, max_nodes = rates.shape[0], rates.shape[1] - 1
    none = np.zeros(n_jobs, dtype=np.int64)
    bounds = (np.ones(n_jobs, dtype=np.int64), np.full(n_jobs, max_nodes, dtype=np.int64))
    before = int(n_idle * rng.uniform(0.9, 1.1))
    earlier = ExactSolver().solve(AllocationProblem(none, *bounds, t_fwd_s * rates, none * 0.0, none * 0.0, before))
    assert earlier.counts is not None
    lost = rng.integers(0, 2, n_jobs) * rng.integers(0, 10, n_jobs)
    current = np.maximum(earlier.counts - lost, 0)
    capacity = max(n_idle, int(current.sum()))
    rate_now = rates[np.arange(n_jobs), current]
    return AllocationProblem(current, *bounds, t_fwd_s * rates, 18 * rate_now, 11 * rate_now, capacity)


def optimum_by_dynamic_program(value: NDArray[np.float64], capacity: int) -> tuple[NDArray[np.int64], float]:
    """Optimal counts and objective for table ``value (J, K + 1)``, in O(J x K x capacity) vector operations.

    ``best[c]`` is the most that the jobs so far can be worth with at most ``c`` nodes. Without a feasible answer
    the objective is ``-inf``.
    """
    n_jobs, width = value.shape
    best = np.zeros(capacity + 1)
    chosen = np.zeros((n_jobs, capacity + 1), dtype=np.int64)
    for j in range(n_jobs):
        following = np.full(capacity + 1, -np.inf)
        for n in range(min(width, capacity + 1)):
            candidate = np.full(capacity + 1, -np.inf)
            candidate[n:] = best[: capacity + 1 - n] + value[j, n]
            better = candidate > following
            following[better] = candidate[better]
            chosen[j, better] = n
        best = following
    counts = np.zeros(n_jobs, dtype=np.int64)
    left = capacity
    for j in range(n_jobs - 1, -1, -1):
        counts[j] = chosen[j, left]
        left -= int(counts[j])
    return counts, float(best[capacity])
