"""Strategy-proof shares: each job pays for its cost to the others, so false rates bring no advantage."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay.errors import BfreplayError
from bfreplay.systems.gavel.shares.rule_shares import proportional_throughput
from bfreplay.systems.gavel.shares.share_problem import SharePolicy, ShareProblem, TimeShares

MOST_STEPS = 80
"""Limit of steps; 15 to 40 are usual. Some problems stop at rounding, at a gap of 1e-11 a job."""

TO_THE_BORDER = 0.99
"""Largest part of the way to the border of the feasible set in a step."""

FALL = 0.1
"""Factor of the barrier from step to step."""


def largest_product(
    relative: NDArray[np.float64],
    count: NDArray[np.float64],
    gang: NDArray[np.float64],
    n_nodes: NDArray[np.float64],
    largest_gap: float,
) -> tuple[NDArray[np.float64], float]:
    """Maximise ``sum_i k_i log(sum_j a_ij x_ij)`` over x >= 0, ``sum_j x_ij <= 1``, ``sum_i k_i s_i x_ij <= c_j``.

    Each i stands for ``k_i`` equal jobs, which get the same at the optimum, since the logarithm is concave.

    A primal-dual interior-point method (Nocedal and Wright, Numerical Optimization, chapter 19): Newton's on
    ``worth_i speed_i = k_i`` and on ``price * what is left = barrier``, the barrier falling to 0. Only the n rows of
    nodes join the jobs, so a step takes m systems of size n + 2 and one of size n. Where many shares are optimal the
    answer is in their middle; throughputs are the same in all.

    Parameters
    ----------
    relative : (m, n)
        ``a_ij`` >= 0: rates, the best of each job 1.
    count : (m,)
        ``k_i`` > 0.
    gang : (m,)
        ``s_i`` of one job.
    n_nodes : (n,)
        ``c_j`` > 0.
    largest_gap
        Largest distance of the sum of logarithms from the optimum.

    Returns
    -------
    share : (m, n)
        Shares, inside the feasible set.
    gap
        Bound of that distance, from the dual; larger than the given one if the method did not converge.
    """

    def distance() -> float:
        """Return an upper bound of the distance of the sum of logarithms at ``x`` from the optimum.

        The sum is concave, so its gain is at most that of its gradient: a linear program, bounded above by any prices.
        """
        gradient = relative * (count / (relative * share).sum(axis=1))[:, None]
        gain = np.maximum(0.0, (gradient - demand[:, None] * node_price).max(axis=1))
        return float(n_nodes @ node_price + gain.sum() - count.sum())

    n_jobs, n_types = relative.shape
    demand, total = count * gang, n_nodes.sum()
    # inside: a tenth of the time and of the nodes is spare
    share = np.repeat(0.9 * min(1.0, total / demand.sum()) * n_nodes[None, :] / total, n_jobs, axis=0)
    speed, spare_time, spare_nodes = (relative * share).sum(axis=1), 1 - share.sum(axis=1), n_nodes - demand @ share
    worth, share_price, time_price, node_price = count / speed, 1 / share, 1 / spare_time, 1 / spare_nodes
    # of each job: n shares, worth and price of time; to the right, what each price of nodes adds, and the rest
    system, right = np.zeros((n_jobs, n_types + 2, n_types + 2)), np.zeros((n_jobs, n_types + 2, n_types + 1))
    of_shares = np.arange(n_types)
    system[:, of_shares, n_types] = system[:, n_types, of_shares] = relative
    system[:, of_shares, n_types + 1] = system[:, n_types + 1, of_shares] = -1.0
    right[:, of_shares, of_shares] = demand[:, None]
    upper_gap = np.inf
    for _ in range(MOST_STEPS):
        upper_gap = distance()
        if upper_gap <= largest_gap:
            break
        products = (share * share_price).sum() + spare_time @ time_price + spare_nodes @ node_price
        barrier = FALL * products / (n_jobs * n_types + n_jobs + n_types)
        system[:, of_shares, of_shares] = -share_price / share
        system[:, n_types, n_types] = speed / worth
        system[:, n_types + 1, n_types + 1] = spare_time / time_price
        right[:, :n_types, n_types] = (
            demand[:, None] * node_price - barrier / share + time_price[:, None] - worth[:, None] * relative
        )
        right[:, n_types, n_types] = count / worth - speed
        right[:, n_types + 1, n_types] = barrier / time_price - spare_time
        try:
            answer = np.linalg.solve(system, right)
            joint = np.einsum("i,ijk->jk", demand, answer[:, :n_types])
            d_node_price = np.linalg.solve(
                np.diag(spare_nodes / node_price) - joint[:, :n_types],
                joint[:, n_types] + barrier / node_price - spare_nodes,
            )
        except np.linalg.LinAlgError:
            # prices that are not unique end in a singular system; the gap is then the distance from the optimum
            break
        change = answer[:, :, :n_types] @ d_node_price + answer[:, :, n_types]
        d_shares, d_worth, d_time_price = change[:, :n_types], change[:, n_types], change[:, n_types + 1]
        d_share_price = (barrier - share_price * d_shares) / share - share_price
        d_time, d_nodes = -d_shares.sum(axis=1), -(demand @ d_shares)
        moves = (
            (share, d_shares),
            (share_price, d_share_price),
            (worth, d_worth),
            (spare_time, d_time),
            (time_price, d_time_price),
            (spare_nodes, d_nodes),
            (node_price, d_node_price),
        )
        step_size = min(_inside(value, change) for value, change in moves)
        share, share_price, worth, spare_time, time_price, spare_nodes, node_price = (
            value + step_size * change for value, change in moves
        )
        speed = (relative * share).sum(axis=1)
    return share, upper_gap


def _inside(value: NDArray[np.float64], change: NDArray[np.float64]) -> float:
    """Return the longest step, up to 1, after which ``value`` is still above 0 by a margin."""
    fastest = float((change / value).min())
    return 1.0 if fastest >= -TO_THE_BORDER else -TO_THE_BORDER / fastest


GAP = 1e-9
"""Wanted distance of sums of logarithms from the optimum: about the relative error of the payments."""

WORST_GAP = 1e-6
"""Largest accepted distance."""


class StrategyProof(SharePolicy):
    """Maximise the geometric mean of ``(s_i / w_i) th_i(X) / p_i``, then discount (Gavel's strategy-proof policy).

    Job i keeps the part ``prod_k th_k(with i) / th_k(without i)``, over all others k, of its share: the partial
    allocation mechanism (Cole, Gkatzelis and Goel, Mechanism Design for Fair Division, EC 2013). Weights and ``p_i``
    move the mean, but not the shares.

    A job that can run nowhere does not count, and gets nothing. The objective is the mean before discounts, NaN where
    no job can run.
    """

    def shares(self, problem: ShareProblem) -> TimeShares:
        """Return discounted shares."""
        share, discount, mean = discounted_shares(problem)
        return TimeShares(share * discount[:, None], objective=mean)


def discounted_shares(problem: ShareProblem) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Return the shares of the largest product and their discounts.

    Jobs that are alike in rates, but for a factor, and in gangs count as one kind. The product is maximised once for
    all jobs and once without one job of each kind.

    Returns
    -------
    share : (m, n) float64
        Before discounts.
    discount : (m,) float64
        Factor of each job, at most 1; 1 for a job that does not count.
    geometric_mean
        The geometric mean of ``(s_i / w_i) th_i / p_i`` before discounts.

    Raises
    ------
    BfreplayError
        The product was not maximised to the accuracy that is needed.
    """
    usable = problem.n_nodes > 0
    best_rate = problem.rate[:, usable].max(axis=1, initial=0.0)
    can_run = best_rate > 0
    share, discount = np.zeros(problem.rate.shape), np.ones(problem.n_jobs)
    if not can_run.any():
        return share, discount, float("nan")
    relative = problem.rate[np.ix_(can_run, usable)] / best_rate[can_run, None]
    kinds, kind_of_job, count = np.unique(
        np.column_stack([relative, problem.gang[can_run]]), axis=0, return_inverse=True, return_counts=True
    )
    kind_of_job = kind_of_job.reshape(-1)
    relative, gang = np.ascontiguousarray(kinds[:, :-1]), np.ascontiguousarray(kinds[:, -1])
    n_nodes, number = problem.n_nodes[usable].astype(np.float64), count.astype(np.float64)
    share_of_kind, log_throughput = _largest(relative, number, gang, n_nodes)
    factor_of_kind = np.ones(kinds.shape[0])
    for omitted_kind in range(kinds.shape[0]):
        fewer = number.copy()
        fewer[omitted_kind] -= 1
        is_present = fewer > 0
        if is_present.any():
            other_logs = _largest(relative[is_present], fewer[is_present], gang[is_present], n_nodes)[1]
            with_it, without_it = fewer @ log_throughput, fewer[is_present] @ other_logs
            factor_of_kind[omitted_kind] = min(1.0, float(np.exp(with_it - without_it)))
    share[np.ix_(can_run, usable)] = share_of_kind[kind_of_job]
    discount[can_run] = factor_of_kind[kind_of_job]
    level = problem.gang * (problem.rate * share).sum(axis=1) / problem.weight
    geometric_mean = np.exp(np.log(level[can_run] / proportional_throughput(problem)[can_run]).mean())
    return share, discount, float(geometric_mean)


def _largest(
    relative: NDArray[np.float64], count: NDArray[np.float64], gang: NDArray[np.float64], n_nodes: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the shares of the largest product, and the logarithm of each kind's throughput."""
    share, largest_gap = largest_product(relative, count, gang, n_nodes, GAP)
    if not largest_gap <= WORST_GAP:
        raise BfreplayError(f"the maximum product of throughputs is known only to a factor of 1 + {largest_gap:.2g}")
    return share, np.log((relative * share).sum(axis=1))
