"""Water filling: raise the levels of all jobs together, freeze those that cannot rise, and go on with the rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from bfreplay.policies.gavel.shares.feasible_set import FeasibleSet
from bfreplay.policies.gavel.shares.hierarchical import Growth
from bfreplay.policies.gavel.shares.level_program import LevelProgram

LOOK_AHEAD = 256
"""Freezings that are foreseen at once, at most. It bounds memory; what comes out does not depend on it."""

AT_ITS_CAP = 1e-9
"""Part of its cap by which a job may stop short of it: caps that are alike but for rounding freeze at once."""


@dataclass(frozen=True, slots=True, eq=False)
class HighestLevels:
    """What water filling came to.

    Parameters
    ----------
    x : (c,) float64
        Columns of the feasible set.
    level : (m,) float64
        Of each job.
    """

    x: NDArray[np.float64]
    level: NDArray[np.float64]


def highest_levels(
    feasible: FeasibleSet, height: csr_array, cap: NDArray[np.float64], growth: Growth, gang: NDArray[np.int64]
) -> HighestLevels:
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
    return HighestLevels(program.x, level)


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
