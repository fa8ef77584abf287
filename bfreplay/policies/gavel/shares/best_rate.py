"""How fast a job could be if it were alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay.policies.gavel.shares.share_problem import ShareProblem


def best_throughput(problem: ShareProblem, *, with_pairs: bool) -> NDArray[np.float64]:
    """(m,) steps/s that no feasible shares exceed: all the time on a job's best types, as far as nodes suffice.

    Of a type with fewer nodes than its gang a job can have ``c_j / s_i`` of the time. With pairs each type counts with
    the best rate alone or beside anybody, so it may be more than can be had.
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
