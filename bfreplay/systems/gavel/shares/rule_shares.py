"""Shares that follow a rule, and the throughputs under them: the units of other policies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay.systems.gavel.shares.share_problem import SharePolicy, ShareProblem, TimeShares


def proportional_shares(problem: ShareProblem) -> NDArray[np.float64]:
    """Return shares with the time of each job split over types like the cluster, ``c_j / C``, (m, n)."""
    split = problem.n_nodes / max(1, problem.n_nodes.sum())
    return np.repeat(split[None, :], problem.n_jobs, axis=0)


def isolated_shares(problem: ShareProblem) -> NDArray[np.float64]:
    """Return shares with the nodes of each type split evenly among jobs, ``c_j / (m s_i)``, sum at most 1, (m, n)."""
    even = problem.n_nodes[None, :] / (problem.n_jobs * problem.gang[:, None])
    at_most_one: NDArray[np.float64] = even / np.maximum(1.0, even.sum(axis=1, keepdims=True))
    return at_most_one


def proportional_throughput(problem: ShareProblem) -> NDArray[np.float64]:
    """Return the steps/s under ``proportional_shares`` (``p_i``), (m,)."""
    total: NDArray[np.float64] = (problem.rate * proportional_shares(problem)).sum(axis=1)
    return total


def isolated_throughput(problem: ShareProblem) -> NDArray[np.float64]:
    """Return the steps/s under ``isolated_shares`` (``iso_i``), (m,)."""
    total: NDArray[np.float64] = (problem.rate * isolated_shares(problem)).sum(axis=1)
    return total


def best_throughput(problem: ShareProblem, *, with_pairs: bool) -> NDArray[np.float64]:
    """Return an upper bound of steps/s, (m,): all the time on a job's best types, as far as nodes suffice.

    On a type with fewer nodes than its gang a job can have ``c_j / s_i`` of the time. With pairs each type counts with
    the best rate alone or beside any other job, so the bound may not be attainable.
    """
    rate = problem.rate.copy()
    if with_pairs:
        for member in (0, 1):
            np.maximum.at(rate, problem.pair[:, member], problem.pair_rate[:, :, member])
    order = np.argsort(-rate, axis=1, kind="stable")
    most = np.minimum(1.0, problem.n_nodes / problem.gang[:, None])
    taken = np.minimum(np.take_along_axis(most, order, axis=1).cumsum(axis=1), 1.0)
    time = np.diff(taken, axis=1, prepend=0.0)
    total: NDArray[np.float64] = (np.take_along_axis(rate, order, axis=1) * time).sum(axis=1)
    return total


class Isolated(SharePolicy):
    """Each job gets its part of every type, as if alone on ``1/m`` of the cluster: ``c_j / (m s_i)``."""

    shuffles_types = True

    def shares(self, problem: ShareProblem) -> TimeShares:
        """Return ``isolated_shares``."""
        return TimeShares(isolated_shares(problem))


class Proportional(SharePolicy):
    """Each job's time is split over types like the cluster, ``c_j / C``: oversubscribed with many jobs."""

    shuffles_types = True

    def shares(self, problem: ShareProblem) -> TimeShares:
        """Return ``proportional_shares``."""
        return TimeShares(proportional_shares(problem))
