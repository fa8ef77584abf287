"""Shares of time beyond Gavel's: equal ones (Gandiva-Fair), and AlloX for jobs on several nodes."""

from __future__ import annotations

import numpy as np

from bfreplay.systems.gavel.shares.share_problem import SharePolicy, ShareProblem, TimeShares
from bfreplay.systems.gavel.shares.slot_policies import first_on_each_node

ALLOX_ALPHA = 0.2
"""Fraction of the waiting jobs, the oldest first, that AlloX considers (Shockwave's setting)."""


class GandivaFair(SharePolicy):
    """Equal shares of time, ``min(1, G / m)`` for m jobs on G nodes, regardless of the nodes of a job."""

    def shares(self, problem: ShareProblem) -> TimeShares:
        """Return equal shares, split over node types like the nodes."""
        n_nodes = int(problem.n_nodes.sum())
        share_by_type = min(1.0, n_nodes / problem.n_jobs) * problem.n_nodes / max(n_nodes, 1)
        return TimeShares(np.tile(share_by_type, (problem.n_jobs, 1)))


class GangAlloX(SharePolicy):
    """Shockwave's baseline AlloX: a job on g nodes that is matched to one gets ``1 / g`` of the time.

    Jobs on one node keep it until they leave; jobs on several are rematched each time, and keep their last share while
    unmatched. Nodes are of one type. Costs do not include ages, which change no optimum: of equal matches this gives
    the published one.
    """

    looks_at_work = True

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Forget all matches."""
        self._share: dict[int, float] = {}

    def shares(self, problem: ShareProblem) -> TimeShares:
        """Return the shares of this match and of earlier ones."""
        self._share = {job: self._share[job] for job in problem.job.tolist() if job in self._share}
        shares = np.array([self._share.get(job, 0.0) for job in problem.job.tolist()])
        n_free = int(problem.n_nodes.sum()) - int(np.count_nonzero(shares == 1.0))
        waiting = np.flatnonzero((shares != 1.0) & (problem.rate[:, 0] > 0))
        waiting = waiting[np.argsort(-problem.age_s[waiting], kind="stable")]
        waiting = waiting[: max(int(ALLOX_ALPHA * len(waiting)), n_free)]
        if n_free > 0 and len(waiting):
            seconds = (problem.steps_left[waiting] / problem.rate[waiting, 0])[:, None]
            first, _ = first_on_each_node(seconds, np.zeros(len(waiting)), np.array([n_free]), every_position=True)
            shares[waiting[first]] = 1.0 / problem.gang[waiting[first]]
        self._share.update(zip(problem.job.tolist(), shares.tolist(), strict=True))
        return TimeShares(shares[:, None])
