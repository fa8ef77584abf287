"""Shares that follow a rule: nobody's throughput is looked at."""

from __future__ import annotations

from bfreplay.policies.gavel.shares.normalised import isolated_shares, proportional_shares
from bfreplay.policies.gavel.shares.share_problem import ShareProblem
from bfreplay.policies.gavel.shares.time_shares import TimeShares


class Isolated:
    """Each job gets its part of every type, as if it had a cluster of a size ``1/m`` for itself: ``c_j / (m s_i)``."""

    uses_pairs = False
    runs_only_its_own = False
    looks_at_work = False
    shuffles_types = True

    def shares(self, problem: ShareProblem) -> TimeShares:
        """See ``isolated_shares``."""
        return TimeShares(isolated_shares(problem))

    def forget(self) -> None:
        """Nothing is remembered."""


class Proportional:
    """Each job's time is split over types like the cluster, ``c_j / C``: more than there is, with many jobs."""

    uses_pairs = False
    runs_only_its_own = False
    looks_at_work = False
    shuffles_types = True

    def shares(self, problem: ShareProblem) -> TimeShares:
        """See ``proportional_shares``."""
        return TimeShares(proportional_shares(problem))

    def forget(self) -> None:
        """Nothing is remembered."""
