"""Finish-time fairness: no job ends much later than with its own part of the cluster."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from bfreplay.saved_state import restorable
from bfreplay.systems.gavel.shares.linear_program import FeasibleSet, LevelProgram, feasible_set
from bfreplay.systems.gavel.shares.rule_shares import best_throughput, isolated_throughput
from bfreplay.systems.gavel.shares.share_problem import ShareProblem, TimeShares, Variant, VariantPolicy, reference_rate

SAME = 1e-11
"""Relative difference of paces that counts as none."""

MOST_TANGENTS = 100
"""Limit of Newton's method, which needs far fewer."""


@dataclass(frozen=True, slots=True, eq=False)
class Finish:
    """Finish times of jobs at speeds (m,), relative to the speed of each alone.

    The pace of a job is ``1 / rho``, rho being its time from arrival to end over that in isolation.

    Parameters
    ----------
    age_s, left_s, isolated_s : (m,) float64
        Seconds since arrival; remaining at speed 1 (> 0); from start to end in isolation (> 0).
    """

    age_s: NDArray[np.float64]
    left_s: NDArray[np.float64]
    isolated_s: NDArray[np.float64]

    def rho(self, speed: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return rho, (m,); infinite for a job that makes no progress."""
        to_end_s = np.divide(self.left_s, speed, out=np.full(speed.shape, np.inf), where=speed > 0)
        lateness: NDArray[np.float64] = (self.age_s + to_end_s) / self.isolated_s
        return lateness

    def needed_speed(self, pace: float) -> NDArray[np.float64]:
        """Return the speed for ``pace``, 1 for jobs that are never as fast, (m,). Convex in the pace below that."""
        in_time = self.isolated_s - pace * self.age_s
        speed = np.divide(pace * self.left_s, in_time, out=np.ones(in_time.shape), where=in_time > 0)
        return np.minimum(speed, 1.0)

    def slope(self, pace: float) -> NDArray[np.float64]:
        """Return the derivative of the needed speed by the pace, for jobs that can reach it, (m,)."""
        return self.left_s * self.isolated_s / (self.isolated_s - pace * self.age_s) ** 2


def fairest_paces(feasible: FeasibleSet, speed: csr_array, finish: Finish) -> NDArray[np.float64]:
    """Raise the paces of all jobs together, freeze jobs that can go no faster, and continue with the rest.

    So the largest rho is as small as possible, then the next largest. Jobs are frozen, many at once where only their
    own limit stops them, as in ``highest_levels``.

    Parameters
    ----------
    feasible
        B, with c columns.
    speed : (m, c)
        Speed of each job by column.
    finish
        Finish times of these jobs.

    Returns
    -------
    (c,) float64
        Shares.
    """
    program = LevelProgram(feasible, speed)
    fastest = 1 / finish.rho(np.ones(finish.age_s.shape))
    pace, level, frozen = 0.0, np.zeros(fastest.shape), np.zeros(fastest.shape, dtype=np.bool_)
    n_together, n_possible = 1, fastest.size
    while not frozen.all():
        limits = np.sort(fastest[~frozen])
        n_together = min(n_together, limits.size)
        limit = float(limits[n_together - 1])
        if n_together > 1:
            target = np.where(frozen, level, np.maximum(level, finish.needed_speed(limit)))
            if program.rise(level, target)[0] < 1:
                n_possible = n_together - 1
                n_together //= 2
                continue
            pace, level, presses = limit, target, np.zeros_like(frozen)
        else:
            pace, level, presses = _highest_pace(program, finish, (pace, limit), level, frozen)
        if presses.any():
            frozen = frozen | presses
            n_possible = fastest.size
        else:
            frozen = frozen | (fastest <= limit * (1 + SAME))
            n_possible -= n_together
            n_together = max(1, min(2 * n_together, n_possible // 2))
    return program.x


def _highest_pace(
    program: LevelProgram,
    finish: Finish,
    between: tuple[float, float],
    level: NDArray[np.float64],
    frozen: NDArray[np.bool_],
) -> tuple[float, NDArray[np.float64], NDArray[np.bool_]]:
    """Return the highest common pace of the jobs that are not frozen, all speeds there, and the jobs that press.

    A job presses if nodes limit it; none does where only its own limit stops a job.

    With a tangent in place of the needed speed, which is convex, the highest pace is a linear program and an upper
    bound (Newton's method). With a chord it is a lower bound, and can be reached. Both are drawn from the pace reached
    so far, in turns: each error is of the order of its own square or less. For jobs that have just arrived the needed
    speed is linear, and the first tangent is exact.

    Parameters
    ----------
    program
        Linear program of speeds.
    finish
        Finish times of the jobs.
    between
        A feasible pace, and the lowest limit of any job.
    level : (m,) float64
        Speeds at the first of these.
    frozen : (m,) bool
        Jobs that stay at their levels.
    """
    pace, upper_bound = between
    presses = np.zeros_like(frozen)
    for _ in range(MOST_TANGENTS):
        tangent = np.where(frozen, 0.0, finish.slope(pace) * (upper_bound - pace))
        fraction, presses_now = program.rise(level, level + tangent)
        if fraction < 1:
            upper_bound, presses = pace + fraction * (upper_bound - pace), presses_now
        target = np.where(frozen, level, np.maximum(level, finish.needed_speed(upper_bound)))
        fraction, _ = program.rise(level, target)
        if fraction == 1:
            return upper_bound, target, presses
        pace = pace + fraction * (upper_bound - pace)
        # below the chord, which is feasible, by more than rounding
        speed_for_pace = np.minimum(finish.needed_speed(pace), level + fraction * (target - level))
        level = np.where(frozen, level, np.maximum(level, speed_for_pace))
        if upper_bound - pace <= SAME * upper_bound:
            return pace, level, presses
    # speeds of almost finished jobs are below the tolerance of the solver: jobs that press have all they can get
    return pace, level, presses if presses.any() else ~frozen


@restorable
@dataclass(frozen=True, slots=True)
class _Before:
    """Job at the last recomputation: seconds of its work so far in isolation, and its remaining work."""

    isolated_s: float
    steps_left: float
    isolated_rate: float

    def isolated_until(self, steps_left: float) -> float:
        """Return ``D_i`` at this number of remaining steps."""
        if self.isolated_rate == 0:
            return self.isolated_s
        return self.isolated_s + (self.steps_left - steps_left) / self.isolated_rate


class FinishTimeFairness(VariantPolicy):
    """Minimise ``max_i rho_i``, ``rho_i = (t_i + N_i / th_i(X)) / (D_i + N_i / iso_i)`` (Gavel, OSDI'20, section 4.2).

    The numerator is the time of job i from arrival to end if shares stay as they are, the denominator that with an m-th
    of the cluster for itself. ``D_i``, the time of its work so far in isolation, is kept between recomputations for the
    active jobs.

    Many shares have the least maximum, above all where one job is late already. The answer also has the least second
    largest rho, then the third, and so on. (Gavel takes the answer of its interior-point solver.)

    A job that has no steps left, or can run nowhere, does not count in the maximum. The objective is NaN where no job
    counts.

    Parameters
    ----------
    variant
        ``agnostic`` (all types have the rates of one, see ``reference_rate``), ``perf`` or ``packed``, where ``th_i``,
        but not ``iso_i``, is divided by the weight of the job, as in Gavel.
    """

    looks_at_work = True

    def __init__(self, variant: Variant = "perf") -> None:
        super().__init__(variant)
        self._before: dict[int, _Before] = {}

    def _believed_rate(self, problem: ShareProblem) -> NDArray[np.float64]:
        return reference_rate(problem)

    def forget(self) -> None:
        """Reset the work in isolation to 0."""
        self._before = {}

    def isolated_s(self) -> dict[int, float]:
        """Return ``D_i`` at the last recomputation, by number of job."""
        return {job_number: before.isolated_s for job_number, before in self._before.items()}

    def _shares(self, problem: ShareProblem) -> TimeShares:
        alone_rate = isolated_throughput(problem)
        so_far_s = self._remember(problem, alone_rate)
        counts = (problem.steps_left > 0) & (alone_rate > 0)
        to_end_s = np.divide(problem.steps_left, alone_rate, out=np.zeros_like(alone_rate), where=counts)
        weight = problem.weight if self.uses_pairs else np.ones(problem.n_jobs)
        best_rate = np.where(counts, best_throughput(problem, with_pairs=self.uses_pairs), 1.0)
        feasible = feasible_set(problem, with_pairs=self.uses_pairs)
        finish = Finish(
            age_s=problem.age_s[counts],
            left_s=(problem.steps_left * weight / best_rate)[counts],
            isolated_s=(so_far_s + to_end_s)[counts],
        )
        speed = (diags_array(1 / best_rate[counts]) @ feasible.throughput[counts]).tocsr()
        solution = fairest_paces(feasible, speed, finish)
        return feasible.time_shares(
            solution, float(finish.rho(speed @ solution).max()) if counts.any() else float("nan")
        )

    def _remember(self, problem: ShareProblem, alone_rate: NDArray[np.float64]) -> NDArray[np.float64]:
        """Store the values for the next recomputation, and return ``D_i`` (m,)."""
        records = {}
        for job_number, steps, rate in zip(
            problem.job.tolist(), problem.steps_left.tolist(), alone_rate.tolist(), strict=True
        ):
            previous = self._before.get(job_number)
            records[job_number] = _Before(previous.isolated_until(steps) if previous else 0.0, steps, rate)
        self._before = records
        return np.array([records[job_number].isolated_s for job_number in problem.job.tolist()])
