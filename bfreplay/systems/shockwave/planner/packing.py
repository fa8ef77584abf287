"""Packing of round counts into the rounds of a window, and filling of idle GPUs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bfreplay.systems.shockwave.planner.problem import NEGLIGIBLE, Level, PlanProblem, RoundValues

RemainingTimes: TypeAlias = Callable[[NDArray[np.bool_]], NDArray[np.float64]]


def pack_rounds(problem: PlanProblem, counts: NDArray[np.int64], first: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the rounds in which jobs run, (N, F): up to ``counts (N,)`` each, in rounds with most GPUs free.

    Jobs in ``first (N,)`` are placed before the others, then larger gangs, then longer jobs. Of equally free rounds the
    earlier one is used. If ``counts`` do not fit this way some jobs get less, though another packing may exist.
    """
    plan = np.zeros((problem.n_jobs, problem.n_rounds), dtype=np.bool_)
    free = np.full(problem.n_rounds, problem.n_gpus)
    for job in np.lexsort((-counts, -problem.gang, ~first)).tolist():
        freest = np.argsort(-free, kind="stable")[: counts[job]]
        rounds = freest[free[freest] >= problem.gang[job]]
        plan[job, rounds] = True
        free[rounds] -= problem.gang[job]
    return plan


def refill(values: RoundValues, level: Level, plan: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the plan with further rounds on free GPUs for jobs that still gain, largest gain per GPU first.

    Starting from an empty plan, this is the greedy answer.
    """
    problem, plan = values.problem, plan.copy()
    counts, job = plan.sum(axis=1), np.arange(problem.n_jobs)
    free = problem.n_gpus - problem.gang @ plan
    density = level.weight[:, None] * np.diff(values.utility, axis=1, append=values.utility[:, -1:])
    density = np.where(density > NEGLIGIBLE, density, 0.0) / problem.gang[:, None]
    while True:
        gain = density[job, counts]
        fits = ~plan & (problem.gang[:, None] <= free)
        gain = np.where(fits.any(axis=1), gain, 0.0)
        best = int(gain.argmax()) if gain.size else 0
        if gain.size == 0 or gain[best] <= 0.0:
            return plan
        # all rounds of equal gain, in the freest rounds
        same = np.flatnonzero(density[best, counts[best] :] < gain[best] * (1 - NEGLIGIBLE))
        freest = np.argsort(-np.where(fits[best], free, -1), kind="stable")[: min(int(same[0]), int(fits[best].sum()))]
        plan[best, freest] = True
        counts[best] += freest.shape[0]
        free[freest] -= problem.gang[best]


def backfill(
    plan: NDArray[np.bool_], gang: NDArray[np.int64], remaining_s: RemainingTimes, n_gpus: int
) -> tuple[tuple[int, ...], ...]:
    """Return the jobs of each round: those of the plan, then others that fit, longest remaining time first.

    Parameters
    ----------
    plan : (N, F) bool
        Whether each job runs in each round.
    gang : (N,) int64
        GPUs of each job.
    remaining_s
        Remaining time of each job, (N,), given the jobs that run in a round with free GPUs. If equal, the job admitted
        first comes first.
    n_gpus
        Number G of GPUs.

    Returns
    -------
    tuple
        For each round the jobs in ascending order.
    """
    rounds = []
    for runs in plan.T:
        jobs = set(np.flatnonzero(runs).tolist())
        idle = n_gpus - int(gang[runs].sum())
        longest_first: Sequence[int] = np.argsort(-remaining_s(runs), kind="stable").tolist() if idle > 0 else ()
        for job in longest_first:
            if job not in jobs and gang[job] <= idle:
                jobs.add(job)
                idle -= int(gang[job])
        rounds.append(tuple(sorted(jobs)))
    return tuple(rounds)
