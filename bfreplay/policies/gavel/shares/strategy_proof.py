"""Strategy-proof shares: each job pays for what its presence costs the others, so false rates are not worth telling."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay.errors import BfreplayError
from bfreplay.policies.gavel.shares.normalised import proportional_throughput
from bfreplay.policies.gavel.shares.proportional_fairness import largest_product
from bfreplay.policies.gavel.shares.share_problem import ShareProblem
from bfreplay.policies.gavel.shares.time_shares import TimeShares

GAP = 1e-9
"""How near to the optimum sums of logarithms are to be, and so, about, the relative error of what is paid."""

WORST_GAP = 1e-6
"""How near they must be."""


class StrategyProof:
    """Maximise the geometric mean of ``(s_i / w_i) th_i(X) / p_i``, then discount (Gavel's strategy-proof policy).

    Job i keeps the part ``prod_k th_k(with i) / th_k(without i)``, over all others k, of what it gets: the partial
    allocation mechanism (Cole, Gkatzelis and Goel, Mechanism Design for Fair Division, EC 2013). Weights and ``p_i``
    move the mean, but not the shares.

    A job that can run nowhere is left out, and gets nothing. The objective is the mean before discounts; NaN where no
    job can run.
    """

    uses_pairs = False
    runs_only_its_own = False
    looks_at_work = False
    shuffles_types = False

    def shares(self, problem: ShareProblem) -> TimeShares:
        """Discounted shares."""
        share, discount, mean = discounted_shares(problem)
        return TimeShares(share * discount[:, None], np.zeros((problem.n_pairs, problem.n_types)), mean)

    def forget(self) -> None:
        """Nothing is remembered."""


def discounted_shares(problem: ShareProblem) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Shares of the largest product and what they are to be multiplied by.

    Jobs that are alike in rates, but for a factor, and in gangs count as one kind. The product is maximised once for
    all jobs and once without one job of each kind.

    Returns
    -------
    share : (m, n) float64
        Before discounts.
    discount : (m,) float64
        Of each job, at most 1; 1 for a job that is left out.
    mean
        The geometric mean of ``(s_i / w_i) th_i / p_i`` before discounts.

    Raises
    ------
    BfreplayError
        The product was not maximised to the accuracy that is needed.
    """
    usable = problem.n_nodes > 0
    best = problem.rate[:, usable].max(axis=1, initial=0.0)
    runs = best > 0
    share, discount = np.zeros(problem.rate.shape), np.ones(problem.n_jobs)
    if not runs.any():
        return share, discount, float("nan")
    relative = problem.rate[np.ix_(runs, usable)] / best[runs, None]
    kinds, kind, count = np.unique(
        np.column_stack([relative, problem.gang[runs]]), axis=0, return_inverse=True, return_counts=True
    )
    kind = kind.reshape(-1)
    relative, gang = np.ascontiguousarray(kinds[:, :-1]), np.ascontiguousarray(kinds[:, -1])
    n_nodes, number = problem.n_nodes[usable].astype(np.float64), count.astype(np.float64)
    x, logs = _largest(relative, number, gang, n_nodes)
    kept = np.ones(kinds.shape[0])
    for k in range(kinds.shape[0]):
        fewer = number.copy()
        fewer[k] -= 1
        there = fewer > 0
        if there.any():
            alone = _largest(relative[there], fewer[there], gang[there], n_nodes)[1]
            with_it, without_it = fewer @ logs, fewer[there] @ alone
            kept[k] = min(1.0, float(np.exp(with_it - without_it)))
    share[np.ix_(runs, usable)] = x[kind]
    discount[runs] = kept[kind]
    level = problem.gang * (problem.rate * share).sum(axis=1) / problem.weight
    mean = np.exp(np.log(level[runs] / proportional_throughput(problem)[runs]).mean())
    return share, discount, float(mean)


def _largest(
    relative: NDArray[np.float64], count: NDArray[np.float64], gang: NDArray[np.float64], n_nodes: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Shares of the largest product, and the logarithm of each kind's throughput."""
    x, gap = largest_product(relative, count, gang, n_nodes, GAP)
    if not gap <= WORST_GAP:
        raise BfreplayError(f"The product of throughputs was maximised no nearer than to a factor of 1 + {gap:.2g}")
    return x, np.log((relative * x).sum(axis=1))
