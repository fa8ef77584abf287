"""Water filling: max-min fairness that goes on with those jobs that can still get more."""

from __future__ import annotations

import numpy as np
from scipy.sparse import diags_array

from bfreplay.policies.gavel.shares.best_rate import best_throughput
from bfreplay.policies.gavel.shares.feasible_set import feasible_set, throughput_matrix
from bfreplay.policies.gavel.shares.hierarchical import Hierarchy, by_weight
from bfreplay.policies.gavel.shares.highest_levels import highest_levels
from bfreplay.policies.gavel.shares.normalised import proportional_throughput
from bfreplay.policies.gavel.shares.pooled_types import pooled, spread
from bfreplay.policies.gavel.shares.share_problem import ShareProblem
from bfreplay.policies.gavel.shares.time_shares import TimeShares
from bfreplay.policies.gavel.shares.variants import Variant, knowledge


class WaterFilling:
    """Raise the levels ``th_i(X) / p_i`` together, at speeds ``W_i / s_i`` (Gavel, OSDI'20, section 4.3).

    A job whose level cannot rise any more keeps it and the others go on, until all are at their ends: the
    lexicographic max-min, exactly. ``W_i`` is the job's weight or, under a hierarchy, its part of its entity's weight.

    Gavel asks a mixed-integer program with a big-M constant who can still rise, and stops too early where levels are
    small or increments large; here linear programs alone tell, see ``highest_levels``.

    A job that can run nowhere stays at level 0 and holds back nobody. The objective is the lowest ``(s_i / W_i) th_i /
    p_i`` of the others that grow from the start: that of max-min fairness.

    The agnostic variant takes every rate for 1, even where a job cannot run, and splits the time of each job over types
    like the cluster.

    Parameters
    ----------
    variant
        ``agnostic``, ``perf`` or ``packed``.
    hierarchy
        Entities above the jobs; by default there are none.
    """

    runs_only_its_own = False
    looks_at_work = False

    def __init__(self, variant: Variant = "perf", hierarchy: Hierarchy | None = None) -> None:
        known = knowledge(variant)
        self.uses_pairs = known.uses_pairs
        self.shuffles_types = known.shuffles_types
        self._hierarchy = hierarchy

    def shares(self, problem: ShareProblem) -> TimeShares:
        """Shares with the lexicographically highest levels."""
        if self.shuffles_types:
            return spread(self._shares(pooled(problem, np.ones(problem.n_jobs))), problem)
        return self._shares(problem)

    def forget(self) -> None:
        """Nothing is remembered."""

    def _shares(self, problem: ShareProblem) -> TimeShares:
        growth = self._hierarchy.growth(problem) if self._hierarchy else by_weight(problem)
        proportional = proportional_throughput(problem)
        runs = proportional > 0
        unit = np.where(runs, proportional, 1.0)
        feasible = feasible_set(problem, with_pairs=self.uses_pairs)
        throughput = throughput_matrix(problem, with_pairs=self.uses_pairs)
        height = (diags_array(1 / unit) @ throughput).tocsr()
        cap = np.where(runs, best_throughput(problem, with_pairs=self.uses_pairs) / unit, 0.0)
        highest = highest_levels(feasible, height, cap, growth, problem.gang)
        speed = growth(~runs) / problem.gang
        grows = speed > 0
        lowest = float((highest.level[grows] / speed[grows]).min()) if grows.any() else float("nan")
        return feasible.time_shares(highest.x, lowest)
