"""Where the pair of two jobs is in a problem."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay.policies.gavel.shares.share_problem import ShareProblem


class PairRows:
    """Rows of ``problem.pair``, found by its two jobs.

    Parameters
    ----------
    problem
        Its pairs are sorted, as a problem says.
    """

    def __init__(self, problem: ShareProblem) -> None:
        self._n_jobs = problem.n_jobs
        self._key = problem.pair[:, 0] * self._n_jobs + problem.pair[:, 1]

    def of(self, first: NDArray[np.int64] | int, second: NDArray[np.int64] | int) -> NDArray[np.int64]:
        """Row of each pair of positions, in whichever order they come; -1 where the problem has no such pair."""
        key = np.minimum(first, second) * self._n_jobs + np.maximum(first, second)
        if not len(self._key):
            return np.full(np.shape(key), -1, dtype=np.int64)
        row = np.minimum(np.searchsorted(self._key, key), len(self._key) - 1)
        found: NDArray[np.int64] = np.where(self._key[row] == key, row, -1).astype(np.int64)
        return found


def relative_rates(problem: ShareProblem, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """(r, n, 2): rate of each member of these pairs as a fraction of its rate alone; 0 where it cannot run alone."""
    alone = problem.rate[problem.pair[rows]].transpose(0, 2, 1)
    relative: NDArray[np.float64] = np.divide(problem.pair_rate[rows], alone, out=np.zeros_like(alone), where=alone > 0)
    return relative
