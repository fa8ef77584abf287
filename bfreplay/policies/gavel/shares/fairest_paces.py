"""Finish-time fairness as an optimisation: the largest delay as small as can be, then the next, and so on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from bfreplay.policies.gavel.shares.feasible_set import FeasibleSet
from bfreplay.policies.gavel.shares.level_program import LevelProgram

SAME = 1e-11
"""Relative difference of paces that counts as none."""

MOST_TANGENTS = 100
"""Far more than Newton's method needs."""


@dataclass(frozen=True, slots=True, eq=False)
class Finish:
    """When jobs end, at speeds (m,) in parts of what each could do if it were alone.

    The pace of a job is ``1 / rho``, rho being its time from arrival to end over that in isolation.

    Parameters
    ----------
    age_s, left_s, isolated_s : (m,) float64
        Seconds since arrival; to the end, at speed 1 (> 0); from start to end, in isolation (> 0).
    """

    age_s: NDArray[np.float64]
    left_s: NDArray[np.float64]
    isolated_s: NDArray[np.float64]

    def rho(self, speed: NDArray[np.float64]) -> NDArray[np.float64]:
        """(m,); infinite for a job that stands still."""
        left = np.divide(self.left_s, speed, out=np.full(speed.shape, np.inf), where=speed > 0)
        late: NDArray[np.float64] = (self.age_s + left) / self.isolated_s
        return late

    def fastest(self) -> NDArray[np.float64]:
        """(m,): the pace of each job at speed 1."""
        pace: NDArray[np.float64] = 1 / self.rho(np.ones(self.age_s.shape))
        return pace

    def needed(self, pace: float) -> NDArray[np.float64]:
        """(m,): speed for ``pace``, and 1 for jobs that are never as fast. Convex in the pace below that."""
        in_time = self.isolated_s - pace * self.age_s
        speed = np.divide(pace * self.left_s, in_time, out=np.ones(in_time.shape), where=in_time > 0)
        return np.minimum(speed, 1.0)

    def slope(self, pace: float) -> NDArray[np.float64]:
        """(m,): by how much the needed speed grows with the pace, for jobs that can go so fast."""
        growth: NDArray[np.float64] = self.left_s * self.isolated_s / (self.isolated_s - pace * self.age_s) ** 2
        return growth


def fairest_paces(feasible: FeasibleSet, speed: csr_array, finish: Finish) -> NDArray[np.float64]:
    """Raise the paces of all jobs together, freeze those that can go no faster, and go on with the rest.

    So the largest rho is as small as can be, then the next largest. How jobs are frozen, and how those that are alone
    in their way are found many at once, is as in ``highest_levels``.

    Parameters
    ----------
    feasible
        B, with c columns.
    speed : (m, c)
        Speed of each job by column.
    finish
        Of these jobs.

    Returns
    -------
    (c,) float64
        Shares.
    """
    program = LevelProgram(feasible, speed)
    fastest = finish.fastest()
    pace, level, frozen = 0.0, np.zeros(fastest.shape), np.zeros(fastest.shape, dtype=np.bool_)
    n_tried, n_possible = 1, fastest.size
    while not frozen.all():
        limits = np.sort(fastest[~frozen])
        n_tried = min(n_tried, limits.size)
        limit = float(limits[n_tried - 1])
        if n_tried > 1:
            target = np.where(frozen, level, np.maximum(level, finish.needed(limit)))
            if program.rise(level, target)[0] < 1:
                n_possible = n_tried - 1
                n_tried //= 2
                continue
            pace, level, presses = limit, target, np.zeros_like(frozen)
        else:
            pace, level, presses = _highest_pace(program, finish, (pace, limit), level, frozen)
        if presses.any():
            frozen = frozen | presses
            n_possible = fastest.size
        else:
            frozen = frozen | (fastest <= limit * (1 + SAME))
            n_possible -= n_tried
            n_tried = max(1, min(2 * n_tried, n_possible // 2))
    return program.x


def _highest_pace(
    program: LevelProgram,
    finish: Finish,
    between: tuple[float, float],
    level: NDArray[np.float64],
    frozen: NDArray[np.bool_],
) -> tuple[float, NDArray[np.float64], NDArray[np.bool_]]:
    """The highest common pace of the jobs that are not frozen, the speeds of all there, and which press there, if any.

    None presses where only its limit stops a job.

    With a tangent in place of the needed speed, which is convex, the highest pace is a linear program and a bound from
    above (Newton's method). With a chord it is one from below, and can be reached. Both are drawn from the pace reached
    so far, in turns: the error of each is of the order of its own square or less. For jobs that have just arrived the
    needed speed is linear, and the first tangent says it all.

    Parameters
    ----------
    program
        Of speeds.
    finish
        Of the jobs.
    between
        A pace that can be reached, and the lowest limit of any job.
    level : (m,) float64
        Speeds at the first of these.
    frozen : (m,) bool
        Jobs that stay at their levels.
    """
    pace, bound = between
    presses = np.zeros_like(frozen)
    for _ in range(MOST_TANGENTS):
        tangent = np.where(frozen, 0.0, finish.slope(pace) * (bound - pace))
        part, pressing = program.rise(level, level + tangent)
        if part < 1:
            bound, presses = pace + part * (bound - pace), pressing
        target = np.where(frozen, level, np.maximum(level, finish.needed(bound)))
        part, _ = program.rise(level, target)
        if part == 1:
            return bound, target, presses
        pace = pace + part * (bound - pace)
        # below the chord, which was reached, by more than rounding
        needed = np.minimum(finish.needed(pace), level + part * (target - level))
        level = np.where(frozen, level, np.maximum(level, needed))
        if bound - pace <= SAME * bound:
            return pace, level, presses
    # speeds of jobs that are all but done are below what the solver can tell apart: those that press have what they can
    return pace, level, presses if presses.any() else ~frozen
