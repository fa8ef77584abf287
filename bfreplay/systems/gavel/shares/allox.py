"""Smallest average completion time of jobs on unequal nodes, by an assignment problem (AlloX, EuroSys'20)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from bfreplay import checks
from bfreplay.errors import InputError
from bfreplay.systems.gavel.shares.fifo import keep_slots, shares_of_slots
from bfreplay.systems.gavel.shares.share_problem import SharePolicy, ShareProblem, TimeShares

_NEARLY_NO_RATE = 1e-10
"""Steps/s that the original assumes where a job cannot run."""


class AlloX(SharePolicy):
    """``allox`` of Gavel: jobs in the order with the least mean completion time; a running job runs to its end.

    A job that waits may become the k-th from the end on a node that is free: then its processing time there counts
    k times in the sum of completion times. The assignment of all such jobs to positions on nodes with the smallest
    sum gives the first job on each node; these get all their time there, and keep the node until they leave. The others
    are reassigned next time. See ``keep_slots`` for nodes that go away.

    A job is never put where its rate is 0, unless ``counts_zero_rates``.

    Parameters
    ----------
    alpha
        Fraction of the waiting jobs, the oldest first, that is considered, but at least as many as free nodes. Small
        values bound the wait of old jobs, and the run time, which grows about with the cube of the jobs considered.
    counts_zero_rates
        Do as the original does: a rate of 0 counts as 1e-10 steps/s, so that a job may be put, for good, where it
        cannot run.

    Raises
    ------
    InputError
        If ``alpha`` is not above 0 and at most 1.
    """

    looks_at_work = True
    takes_single_nodes = True

    def __init__(self, *, alpha: float = 1.0, counts_zero_rates: bool = False) -> None:
        self.alpha = checks.number("alpha", alpha, above=0, most=1)
        self.counts_zero_rates = counts_zero_rates
        self.forget()

    def forget(self) -> None:
        """Empty all nodes."""
        self._held: dict[int, int] = {}

    def shares(self, problem: ShareProblem) -> TimeShares:
        """Return shares of 1.

        Raises
        ------
        InputError
            If a job needs more than one node at once.
        """
        require_single_nodes(problem.job.tolist(), problem.gang)
        if self.counts_zero_rates:
            problem = replace(problem, rate=np.maximum(problem.rate, _NEARLY_NO_RATE))
        self._held, free = keep_slots(self._held, problem)
        waiting = self._candidates(problem, free)
        if len(waiting):
            first, type_of = first_on_each_node(
                _processing_time(problem, waiting, free), problem.age_s[waiting], free, self.counts_zero_rates
            )
            for i, j in zip(waiting[first].tolist(), type_of.tolist(), strict=True):
                self._held[int(problem.job[i])] = j
        return TimeShares(shares_of_slots(self._held, problem), np.zeros((problem.n_pairs, problem.n_types)))

    def _candidates(self, problem: ShareProblem, free: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions of jobs that could run on a free node, oldest first."""
        holds = np.isin(problem.job, np.array(list(self._held), dtype=np.int64))
        could_run = (problem.rate[:, free > 0] > 0).any(axis=1)
        waiting = np.flatnonzero(~holds & could_run)
        oldest = waiting[np.argsort(-problem.age_s[waiting], kind="stable")]
        return oldest[: max(int(self.alpha * len(oldest)), int(free.sum()))]


def first_on_each_node(
    processing_time: NDArray[np.float64],
    constant: NDArray[np.float64],
    free: NDArray[np.int64],
    every_position: bool = False,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first job on each node in the assignment with the smallest sum of completion times.

    Position k from the end exists on a type of c nodes only while k <= ceil(m / c): in an optimal assignment no node
    has two jobs more than another of its type, or the first of them would better be the last of the other. So there
    are fewer than m + c columns for a type, not m c, and the optimum is the same.

    Parameters
    ----------
    processing_time : (m, n) float64
        Seconds of each job on each type, inf where it cannot run; each job can run on some type with a free node.
    constant : (m,) float64
        Added to all costs of a job. It only decides between equal optima (nodes of a type are alike): with the age of
        jobs the choice is that of the original.
    free : (n,) int64
        Nodes of each type.
    every_position
        Consider all m positions of each node: gives the original's choice among answers that rounding makes equal.

    Returns
    -------
    job, type_of : (r,) int64
        In the order of nodes, type by type, without nodes that stay empty.
    """
    n_jobs = len(processing_time)
    node_type = np.repeat(np.arange(len(free)), free)
    last_position = -(-n_jobs // np.maximum(free, 1))[node_type]
    if every_position:
        last_position = np.full_like(last_position, n_jobs)
    position = np.concatenate([np.full((last_position >= k).sum(), k) for k in range(1, last_position.max() + 1)])
    node = np.concatenate([np.flatnonzero(last_position >= k) for k in range(1, last_position.max() + 1)])
    cost = position * processing_time[:, node_type[node]] + constant[:, None]
    job, column = linear_sum_assignment(cost)
    # largest position of each node: sorted by node, then by position from the first on
    order = np.lexsort((-position[column], node[column]))
    taken, first = np.unique(node[column][order], return_index=True)
    return job[order][first].astype(np.int64), node_type[taken].astype(np.int64)


def _processing_time(problem: ShareProblem, waiting: NDArray[np.int64], free: NDArray[np.int64]) -> NDArray[np.float64]:
    rate = problem.rate[waiting]
    seconds = np.full(rate.shape, np.inf)
    np.divide(problem.steps_left[waiting][:, None], rate, out=seconds, where=(rate > 0) & (free > 0))
    return seconds


def require_single_nodes(job: Sequence[object], gang: NDArray[np.int64]) -> None:
    """Raise ``InputError`` for the first of the jobs (names or numbers) that uses several nodes at once."""
    for each, nodes in zip(job, gang.tolist(), strict=True):
        if nodes > 1:
            raise InputError(
                f"AlloX cannot schedule job {each!r}, which needs {nodes} nodes at once",
                column="gang",
                value=nodes,
                expected="jobs that run on one node each: AlloX orders jobs on single nodes",
                fix="choose fifo_perf, max_min_fairness_perf or another of Gavel's policies, leave such jobs out, or "
                "give elastic jobs one node each: gang=min",
            )
