"""Makespan: the last job ends as early as can be."""

from __future__ import annotations

from dataclasses import replace

from bfreplay.policies.gavel.shares.common_level import highest_common_level
from bfreplay.policies.gavel.shares.linear_program import Optimum
from bfreplay.policies.gavel.shares.pooled_types import pooled, spread
from bfreplay.policies.gavel.shares.share_problem import ShareProblem
from bfreplay.policies.gavel.shares.time_shares import TimeShares
from bfreplay.policies.gavel.shares.variants import Variant, knowledge, reference_rate


class Makespan:
    """Minimise ``max_i N_i / th_i(X)``, in seconds (Gavel, OSDI'20, section 4.2; min_total_duration).

    Its inverse, the largest z with ``th_i(X) >= z N_i`` for all i, is a linear program, solved once and exactly. (Gavel
    bisects for the makespan, to 5 %.)

    The agnostic variant splits a job's time over types like the cluster.

    A job that can run nowhere never ends: it is left out, and gets nothing. Where this is so of all jobs the objective
    is 0: nothing that can be done is left to do.

    Parameters
    ----------
    variant
        ``agnostic``, ``perf`` or ``packed``.
    reference_type
        Whose rates the agnostic variant takes for all types, see ``reference_rate``.
    optimum
        Which of equally good shares, see ``Optimum``.
    """

    runs_only_its_own = False
    looks_at_work = True

    def __init__(
        self, variant: Variant = "perf", reference_type: str | None = None, optimum: Optimum = "central"
    ) -> None:
        known = knowledge(variant)
        self.uses_pairs = known.uses_pairs
        self.shuffles_types = known.shuffles_types
        self._optimum: Optimum = optimum
        self._reference_type = reference_type

    def shares(self, problem: ShareProblem) -> TimeShares:
        """Shares with the least makespan, which is the objective."""
        if self.shuffles_types:
            believed = reference_rate(problem, self._reference_type)[:, 0]
            return spread(self._shares(pooled(problem, believed)), problem)
        return self._shares(problem)

    def _shares(self, problem: ShareProblem) -> TimeShares:
        found = highest_common_level(problem, problem.steps_left, with_pairs=self.uses_pairs, optimum=self._optimum)
        return replace(found, objective=1 / found.objective)

    def forget(self) -> None:
        """Nothing is remembered."""
