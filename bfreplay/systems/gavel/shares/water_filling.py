"""Water filling: max-min fairness that goes on with those jobs that can still get more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from bfreplay.errors import InputError
from bfreplay.systems.gavel.shares.feasible_set import FeasibleSet, LevelProgram, feasible_set
from bfreplay.systems.gavel.shares.rule_shares import best_throughput, proportional_throughput
from bfreplay.systems.gavel.shares.share_problem import SharePolicy, ShareProblem, TimeShares
from bfreplay.systems.gavel.shares.variants import Variant, VariantPolicy

Growth = Callable[[NDArray[np.bool_]], NDArray[np.float64]]
"""From which jobs are frozen (m,) to the weight (m,) with which the level of each of the others grows (``W_i``)."""

INNER = ("fairness", "fifo")


@dataclass(frozen=True, slots=True)
class Entity:
    """A team, project or user that shares the cluster with others.

    Parameters
    ----------
    weight
        Of the entity among the others, > 0.
    inner
        How its jobs share what it has: ``fairness`` by their weights, ``fifo`` one after the other as they came.

    Raises
    ------
    InputError
        The weight is not a positive number, or there is no such inner policy.
    """

    weight: float
    inner: Literal["fairness", "fifo"] = "fairness"

    def __post_init__(self) -> None:
        if not 0 < self.weight < np.inf:
            raise InputError("An entity needs a weight", value=self.weight, expected="a number > 0")
        if self.inner not in INNER:
            raise InputError("No such policy inside an entity", value=self.inner, expected=f"one of {', '.join(INNER)}")


class Hierarchy:
    """Fairness among entities first, and inside each by its own policy (Gavel, OSDI'20, section 4.3).

    Parameters
    ----------
    entities
        By name.
    entity_of
        The name of the entity of a job, from its number.
    """

    def __init__(self, entities: Mapping[str, Entity], entity_of: Callable[[int], str]) -> None:
        self._position = {name: k for k, name in enumerate(entities)}
        self._weight = np.array([entity.weight for entity in entities.values()], dtype=np.float64)
        self._is_fifo = np.array([entity.inner == "fifo" for entity in entities.values()], dtype=np.bool_)
        self._entity_of = entity_of

    def growth(self, problem: ShareProblem) -> Growth:
        """Weights for the jobs of ``problem``: what an entity has goes to those of its jobs that are not frozen.

        Under fairness each gets ``E_e w_i / sum(w)``, under FIFO the first gets all of ``E_e``. An entity all of whose
        jobs are frozen asks for no more.

        Raises
        ------
        InputError
            A job belongs to an entity that there is not.
        """
        entity = np.array([self._position_of(int(job)) for job in problem.job], dtype=np.int64)
        n_entities, weight = len(self._position), problem.weight

        def growth(frozen: NDArray[np.bool_]) -> NDArray[np.float64]:
            open_weight = np.where(frozen, 0.0, weight)
            together = np.bincount(entity, open_weight, minlength=n_entities)[entity]
            fair = np.divide(open_weight, together, out=np.zeros_like(open_weight), where=together > 0)
            candidates = np.flatnonzero(~frozen)
            first = np.zeros(frozen.shape)
            first[candidates[np.unique(entity[candidates], return_index=True)[1]]] = 1.0
            part: NDArray[np.float64] = np.where(self._is_fifo[entity], first, fair)
            return self._weight[entity] * part

        return growth

    def _position_of(self, job: int) -> int:
        name = self._entity_of(job)
        if name not in self._position:
            raise InputError(
                f"Job {job} belongs to an entity that there is not",
                value=name,
                expected=f"one of {', '.join(self._position)}",
            )
        return self._position[name]


def by_weight(problem: ShareProblem) -> Growth:
    """No entities: each job grows with its own weight until it is frozen."""

    def growth(frozen: NDArray[np.bool_]) -> NDArray[np.float64]:
        grows: NDArray[np.float64] = np.where(frozen, 0.0, problem.weight)
        return grows

    return growth


LOOK_AHEAD = 256
"""Freezings that are foreseen at once, at most. It bounds memory; what comes out does not depend on it."""

AT_ITS_CAP = 1e-9
"""Part of its cap by which a job may stop short of it: caps that are alike but for rounding freeze at once."""


def highest_levels(
    feasible: FeasibleSet, height: csr_array, cap: NDArray[np.float64], growth: Growth, gang: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lexicographic max-min: the lowest level as high as can be, then the next lowest, and so on.

    Levels grow from 0 at the speeds ``growth(frozen) / gang``. A job that cannot rise any more, whatever the others get
    above their levels, is frozen, and speeds are reckoned anew.

    Exact, by linear programs alone. A job whose row has a non-zero dual value is at its level in every optimum
    (complementary slackness), so it can be frozen without a further test; at least one job has one. A job that cannot
    rise and has a dual value of 0 is not missed: the next program rises by nothing and names it, or another such job.

    Jobs that reach their own ``cap`` freeze in an order that is foreseen without any program. How far that foresight
    holds (until nodes run short) is found by bisection, since levels that can be reached together can be reached at
    every earlier moment too: many freezings cost a few programs.

    Parameters
    ----------
    feasible
        B, with c columns.
    height : (m, c)
        Level of each job by column (``th_i / p_i``).
    cap : (m,) float64
        What no level can exceed, from above; 0 for a job that is frozen from the start.
    growth
        Weights.
    gang : (m,) int64
        Nodes that each job uses at once.

    Returns
    -------
    x : (c,) float64
        Columns of the feasible set.
    level : (m,) float64
        Of each job.
    """
    program = LevelProgram(feasible, height)
    level, frozen = np.zeros(cap.shape), cap <= 0
    n_tried, n_possible = 1, LOOK_AHEAD
    while not frozen.all():
        foreseen = _foresee(level, frozen, cap, growth, gang, n_tried)
        n_tried, (target, frozen_there) = len(foreseen), foreseen[-1]
        part, stuck = program.rise(level, target)
        if part == 1:
            level, frozen = target, frozen_there
            n_possible = n_possible - n_tried if n_possible < LOOK_AHEAD else LOOK_AHEAD
            n_tried = max(1, min(2 * n_tried, n_possible // 2))
        elif n_tried > 1:
            n_possible = n_tried - 1
            n_tried //= 2
        else:
            frozen = frozen | stuck
            level = level + part * (target - level)
            n_possible = LOOK_AHEAD
    return program.x, level


def _foresee(
    level: NDArray[np.float64],
    frozen: NDArray[np.bool_],
    cap: NDArray[np.float64],
    growth: Growth,
    gang: NDArray[np.int64],
    n_most: int,
) -> list[tuple[NDArray[np.float64], NDArray[np.bool_]]]:
    """Levels and frozen jobs after each of the next ``n_most`` freezings, if jobs freeze at their own caps only."""
    foreseen: list[tuple[NDArray[np.float64], NDArray[np.bool_]]] = []
    while len(foreseen) < n_most and not frozen.all():
        speed = growth(frozen) / gang
        grows = speed > 0
        needed = (cap[grows] - level[grows]) / speed[grows]
        # never beyond a cap, and never back where rounding put a level above it
        step = max(0.0, float(needed.min()))
        level = level + step * np.where(grows, speed, 0.0)
        frozen = frozen | (grows & (cap - level <= AT_ITS_CAP * cap))
        foreseen.append((level, frozen))
    return foreseen


class WaterFilling(VariantPolicy):
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

    def __init__(self, variant: Variant = "perf", hierarchy: Hierarchy | None = None) -> None:
        super().__init__(variant)
        self._hierarchy = hierarchy

    def _shares(self, problem: ShareProblem) -> TimeShares:
        growth = self._hierarchy.growth(problem) if self._hierarchy else by_weight(problem)
        proportional = proportional_throughput(problem)
        runs = proportional > 0
        unit = np.where(runs, proportional, 1.0)
        feasible = feasible_set(problem, with_pairs=self.uses_pairs)
        height = (diags_array(1 / unit) @ feasible.throughput).tocsr()
        cap = np.where(runs, best_throughput(problem, with_pairs=self.uses_pairs) / unit, 0.0)
        x, level = highest_levels(feasible, height, cap, growth, problem.gang)
        speed = growth(~runs) / problem.gang
        grows = speed > 0
        lowest = float((level[grows] / speed[grows]).min()) if grows.any() else float("nan")
        return feasible.time_shares(x, lowest)


class PriorityClasses(SharePolicy):
    """All jobs of one weight are one entity, which has that weight among the others however many jobs it has.

    Parameters
    ----------
    inner
        How the jobs of an entity share what it has, see ``Entity``.
    """

    def __init__(self, inner: Literal["fairness", "fifo"] = "fairness") -> None:
        self._inner = Entity(1.0, inner).inner

    def shares(self, problem: ShareProblem) -> TimeShares:
        """Water filling under the hierarchy of the weights that there are."""
        weight_of = dict(zip(problem.job.tolist(), problem.weight.tolist(), strict=True))
        entities = {f"{weight:g}": Entity(weight, self._inner) for weight in sorted(set(weight_of.values()))}
        return WaterFilling("perf", Hierarchy(entities, lambda job: f"{weight_of[job]:g}")).shares(problem)
