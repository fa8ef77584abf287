"""The cluster as an agnostic policy sees it: all nodes of one type."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bfreplay.policies.gavel.shares.share_problem import NO_PAIRS, ShareProblem
from bfreplay.policies.gavel.shares.time_shares import TimeShares


def pooled(problem: ShareProblem, rate: NDArray[np.float64]) -> ShareProblem:
    """Return ``problem`` on one type that has all nodes, at ``rate`` (m,) and without pairs.

    Where every type counts with the same rate, only the time of a job on all types together matters. And whatever time
    f_i the pool allows, the types allow as well: ``X_ij = f_i c_j / C``. So both have the same optimum.
    """
    return replace(
        problem,
        type_names=("any",),
        n_nodes=np.array([problem.n_nodes.sum()], dtype=np.int64),
        rate=rate[:, None],
        price_per_hour=np.array([problem.price_per_hour.mean()]),
        pair=NO_PAIRS,
        pair_rate=np.zeros((0, 1, 2)),
    )


def spread(shares: TimeShares, problem: ShareProblem) -> TimeShares:
    """Split the time on the pool over the types of ``problem`` like their nodes: it favours none of them."""
    split = problem.n_nodes / max(int(problem.n_nodes.sum()), 1)
    return TimeShares(shares.share * split, np.zeros((problem.n_pairs, problem.n_types)), shares.objective)
