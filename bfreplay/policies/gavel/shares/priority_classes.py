"""A hierarchy that needs no more than the jobs' weights: one entity for each priority."""

from __future__ import annotations

from typing import Literal

from bfreplay.policies.gavel.shares.hierarchical import Entity, Hierarchy
from bfreplay.policies.gavel.shares.share_problem import ShareProblem
from bfreplay.policies.gavel.shares.time_shares import TimeShares
from bfreplay.policies.gavel.shares.water_filling import WaterFilling


class PriorityClasses:
    """All jobs of one weight are one entity, which has that weight among the others however many jobs it has.

    Parameters
    ----------
    inner
        How the jobs of an entity share what it has, see ``Entity``.
    """

    uses_pairs = False
    runs_only_its_own = False
    looks_at_work = False
    shuffles_types = False

    def __init__(self, inner: Literal["fairness", "fifo"] = "fairness") -> None:
        self._inner = Entity(1.0, inner).inner

    def shares(self, problem: ShareProblem) -> TimeShares:
        """Water filling under the hierarchy of the weights that there are."""
        weight_of = dict(zip(problem.job.tolist(), problem.weight.tolist(), strict=True))
        entities = {f"{weight:g}": Entity(weight, self._inner) for weight in sorted(set(weight_of.values()))}
        return WaterFilling("perf", Hierarchy(entities, lambda job: f"{weight_of[job]:g}")).shares(problem)

    def forget(self) -> None:
        """Nothing is remembered."""
