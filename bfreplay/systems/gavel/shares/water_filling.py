"""Water filling: max-min fairness that continues with the jobs that can still get more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from bfreplay.systems.gavel.shares.linear_program import FeasibleSet, LevelProgram, feasible_set
from bfreplay.systems.gavel.shares.rule_shares import best_throughput, proportional_throughput
from bfreplay.systems.gavel.shares.share_problem import SharePolicy, ShareProblem, TimeShares, Variant, VariantPolicy

Growth = Callable[[NDArray[np.bool_]], NDArray[np.float64]]
"""Function from the frozen jobs (m,) to the weights (m,) with which the levels of the others grow (``W_i``)."""


@dataclass(frozen=True, slots=True)
class Entity:
    """Team, project or user that shares the cluster with others.

    Parameters
    ----------
    weight
        Weight of the entity among the others, > 0.
    inner
        Policy among its jobs: ``fairness`` by their weights, ``fifo`` one after the other by arrival.
    """

    weight: float
    inner: Literal["fairness", "fifo"] = "fairness"


class Hierarchy:
    """Fairness among entities first, and inside each by its own policy (Gavel, OSDI'20, section 4.3).

    Parameters
    ----------
    entities
        Entities by name.
    entity_of
        Function from the number of a job to the name of its entity.
    """

    def __init__(self, entities: Mapping[str, Entity], entity_of: Callable[[int], str]) -> None:
        self._position = {entity_name: index for index, entity_name in enumerate(entities)}
        self._weight = np.array([entity.weight for entity in entities.values()], dtype=np.float64)
        self._is_fifo = np.array([entity.inner == "fifo" for entity in entities.values()], dtype=np.bool_)
        self._entity_of = entity_of

    def growth(self, problem: ShareProblem) -> Growth:
        """Return the growth of the jobs of ``problem``: an entity's weight goes to its jobs that are not frozen.

        Under fairness each gets ``E_e w_i / sum(w)``, under FIFO the first gets all of ``E_e``. An entity with only
        frozen jobs gets no more.
        """
        entity = np.array([self._position[self._entity_of(job)] for job in problem.job.tolist()], dtype=np.int64)
        n_entities, weight = len(self._position), problem.weight

        def growth(frozen: NDArray[np.bool_]) -> NDArray[np.float64]:
            open_weight = np.where(frozen, 0.0, weight)
            together = np.bincount(entity, open_weight, minlength=n_entities)[entity]
            fair_part = np.divide(open_weight, together, out=np.zeros_like(open_weight), where=together > 0)
            candidates = np.flatnonzero(~frozen)
            first = np.zeros(frozen.shape)
            first[candidates[np.unique(entity[candidates], return_index=True)[1]]] = 1.0
            weight_part: NDArray[np.float64] = np.where(self._is_fifo[entity], first, fair_part)
            return self._weight[entity] * weight_part

        return growth


def by_weight(problem: ShareProblem) -> Growth:
    """Return the growth without entities: each job grows with its own weight until it is frozen."""

    def growth(frozen: NDArray[np.bool_]) -> NDArray[np.float64]:
        return np.where(frozen, 0.0, problem.weight)

    return growth


LOOK_AHEAD = 256
"""Most freezings that are predicted at once. It bounds memory and has no effect on results."""

AT_ITS_CAP = 1e-9
"""Fraction of its cap that a job may be below it: caps that differ by rounding freeze at once."""


def highest_levels(
    feasible: FeasibleSet, height: csr_array, highest: NDArray[np.float64], growth: Growth, gang: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the lexicographic max-min: the lowest level as high as possible, then the next lowest, and so on.

    Levels grow from 0 at the speeds ``growth(frozen) / gang``. A job that cannot rise any more, whatever the others get
    above their levels, is frozen, and speeds are recomputed.

    Exact, by linear programs alone. A job whose row has a non-zero dual value is at its level in every optimum
    (complementary slackness), so it can be frozen without a further test; at least one job has one. A job that cannot
    rise and has a dual value of 0 is found later: the next program rises by nothing and names it, or another such job.

    Jobs that reach their own ``highest`` freeze in an order that is predicted without any program. The prediction holds
    until nodes run short, found by bisection, since levels that are feasible together are so at every earlier moment:
    many freezings cost a few programs.

    Parameters
    ----------
    feasible
        B, with c columns.
    height : (m, c)
        Level of each job by column (``th_i / p_i``).
    highest : (m,) float64
        Upper bound of each level; 0 for a job that is frozen from the start.
    growth
        Weights.
    gang : (m,) int64
        Nodes that each job uses at once.

    Returns
    -------
    x : (c,) float64
        Columns of the feasible set.
    level : (m,) float64
        Level of each job.
    """

    def foresee(
        level: NDArray[np.float64], frozen: NDArray[np.bool_], n_most: int
    ) -> tuple[int, NDArray[np.float64], NDArray[np.bool_]]:
        """Return the number of coming freezings at caps, up to ``n_most``, and levels and frozen jobs after them."""
        n_freezings = 0
        while n_freezings < n_most and not frozen.all():
            speed = growth(frozen) / gang
            is_growing = speed > 0
            steps_to_cap = (highest[is_growing] - level[is_growing]) / speed[is_growing]
            # never beyond a cap, and never back where rounding put a level above it
            next_step = max(0.0, float(steps_to_cap.min()))
            level = level + next_step * np.where(is_growing, speed, 0.0)
            frozen = frozen | (is_growing & (highest - level <= AT_ITS_CAP * highest))
            n_freezings += 1
        return n_freezings, level, frozen

    program = LevelProgram(feasible, height)
    level, frozen = np.zeros(highest.shape), highest <= 0
    n_together, n_possible = 1, LOOK_AHEAD
    while not frozen.all():
        n_together, target, frozen_there = foresee(level, frozen, n_together)
        fraction, stuck = program.rise(level, target)
        if fraction == 1:
            level, frozen = target, frozen_there
            n_possible = n_possible - n_together if n_possible < LOOK_AHEAD else LOOK_AHEAD
            n_together = max(1, min(2 * n_together, n_possible // 2))
        elif n_together > 1:
            n_possible = n_together - 1
            n_together //= 2
        else:
            frozen = frozen | stuck
            level = level + fraction * (target - level)
            n_possible = LOOK_AHEAD
    return program.x, level


class WaterFilling(VariantPolicy):
    """Raise the levels ``th_i(X) / p_i`` together, at speeds ``W_i / s_i`` (Gavel, OSDI'20, section 4.3).

    A job whose level cannot rise any more keeps it and the others go on, until all are at their ends: the
    lexicographic max-min, exactly. ``W_i`` is the job's weight or, under a hierarchy, its part of its entity's weight.

    Gavel uses a mixed-integer program with a big-M constant to find jobs that can still rise, and stops too early where
    levels are small or increments large; linear programs suffice, see ``highest_levels``.

    A job that can run nowhere stays at level 0 and does not count. The objective is the lowest ``(s_i / W_i) th_i /
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

    def __init__(self, variant: Variant = "perf", hierarchy: Hierarchy | None = None) -> None:
        super().__init__(variant)
        self._hierarchy = hierarchy

    def _shares(self, problem: ShareProblem) -> TimeShares:
        growth = self._hierarchy.growth(problem) if self._hierarchy else by_weight(problem)
        proportional = proportional_throughput(problem)
        can_run = proportional > 0
        unit_rate = np.where(can_run, proportional, 1.0)
        feasible = feasible_set(problem, with_pairs=self.uses_pairs)
        height = (diags_array(1 / unit_rate) @ feasible.throughput).tocsr()
        highest = np.where(can_run, best_throughput(problem, with_pairs=self.uses_pairs) / unit_rate, 0.0)
        solution, level = highest_levels(feasible, height, highest, growth, problem.gang)
        speed = growth(~can_run) / problem.gang
        is_growing = speed > 0
        lowest = float((level[is_growing] / speed[is_growing]).min()) if is_growing.any() else float("nan")
        return feasible.time_shares(solution, lowest)


class PriorityClasses(SharePolicy):
    """Jobs of one weight are one entity, which has that weight among the others whatever its number of jobs.

    Parameters
    ----------
    inner
        Policy among the jobs of an entity, see ``Entity``.
    """

    def __init__(self, inner: Literal["fairness", "fifo"] = "fairness") -> None:
        self._inner: Literal["fairness", "fifo"] = inner

    def shares(self, problem: ShareProblem) -> TimeShares:
        """Return water filling under the hierarchy of the weights of ``problem``."""
        weight_of = dict(zip(problem.job.tolist(), problem.weight.tolist(), strict=True))
        entities = {f"{weight:g}": Entity(weight, self._inner) for weight in sorted(set(weight_of.values()))}
        return WaterFilling("perf", Hierarchy(entities, lambda job: f"{weight_of[job]:g}")).shares(problem)
