"""What a job would get without anybody's choice: the yardsticks of fairness, in closed form."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay.policies.gavel.shares.share_problem import ShareProblem


def proportional_shares(problem: ShareProblem) -> NDArray[np.float64]:
    """(m, n): the time of each job split over types like the cluster, ``c_j / C``."""
    split = problem.n_nodes / max(1, problem.n_nodes.sum())
    return np.repeat(split[None, :], problem.n_jobs, axis=0)


def isolated_shares(problem: ShareProblem) -> NDArray[np.float64]:
    """(m, n): the nodes of each type split evenly among jobs, ``c_j / (m s_i)``, and no more than all the time."""
    even = problem.n_nodes[None, :] / (problem.n_jobs * problem.gang[:, None])
    at_most_one: NDArray[np.float64] = even / np.maximum(1.0, even.sum(axis=1, keepdims=True))
    return at_most_one


def proportional_throughput(problem: ShareProblem, rate: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """(m,) steps/s under ``proportional_shares`` (``p_i``), at ``rate`` (m, n) or the problem's own."""
    total: NDArray[np.float64] = ((problem.rate if rate is None else rate) * proportional_shares(problem)).sum(axis=1)
    return total


def isolated_throughput(problem: ShareProblem, rate: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """(m,) steps/s under ``isolated_shares`` (``iso_i``), at ``rate`` (m, n) or the problem's own."""
    total: NDArray[np.float64] = ((problem.rate if rate is None else rate) * isolated_shares(problem)).sum(axis=1)
    return total
