"""Max-min fairness: the job that gets least, relative to an equal split of the cluster, gets as much as can be."""

from __future__ import annotations

import numpy as np

from bfreplay.policies.gavel.shares.common_level import highest_common_level
from bfreplay.policies.gavel.shares.linear_program import Optimum
from bfreplay.policies.gavel.shares.normalised import proportional_throughput
from bfreplay.policies.gavel.shares.pooled_types import pooled, spread
from bfreplay.policies.gavel.shares.share_problem import ShareProblem
from bfreplay.policies.gavel.shares.time_shares import TimeShares
from bfreplay.policies.gavel.shares.variants import Variant, knowledge


class MaxMinFairness:
    """Maximise ``min_i (s_i / w_i) th_i(X) / p_i`` (Gavel, OSDI'20, section 4.1; least attained service, LAS).

    ``p_i`` is the throughput of job i alone with its time split over types like the cluster. The agnostic variant takes
    every rate for 1, even where a job cannot run, and splits a job's time over types like the cluster.

    A job that can run nowhere is left out, and gets nothing.

    Parameters
    ----------
    variant
        ``agnostic``, ``perf`` or ``packed``.
    optimum
        Which of equally good shares, see ``Optimum``.
    """

    runs_only_its_own = False
    looks_at_work = False

    def __init__(self, variant: Variant = "perf", optimum: Optimum = "central") -> None:
        known = knowledge(variant)
        self.uses_pairs = known.uses_pairs
        self.shuffles_types = known.shuffles_types
        self._optimum: Optimum = optimum

    def shares(self, problem: ShareProblem) -> TimeShares:
        """Shares with the highest minimum, which is the objective."""
        if self.shuffles_types:
            return spread(self._shares(pooled(problem, np.ones(problem.n_jobs))), problem)
        return self._shares(problem)

    def _shares(self, problem: ShareProblem) -> TimeShares:
        unit = problem.weight / problem.gang * proportional_throughput(problem)
        return highest_common_level(problem, unit, with_pairs=self.uses_pairs, optimum=self._optimum)

    def forget(self) -> None:
        """Nothing is remembered."""
