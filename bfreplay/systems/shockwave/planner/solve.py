"""A plan for a window of rounds: finish-time constraints, else weights; then an order of the rounds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from bfreplay.errors import SolverUnavailableError
from bfreplay.milp.backends import BackendAnswer, SolveOptions
from bfreplay.milp.isolation import ModelSolver
from bfreplay.milp.model import LinearModel
from bfreplay.milp.solution import SolverStatus
from bfreplay.saved_state import restorable
from bfreplay.systems.shockwave.planner.options import PlannerOptions
from bfreplay.systems.shockwave.planner.problem import (
    NEGLIGIBLE,
    CountsModel,
    Floor,
    Level,
    PlanProblem,
    RoundValues,
    counts_model,
    least_rounds,
    mean_round_cost,
    order_model,
)

_Assignment = TypeVar("_Assignment")
RemainingTimes: TypeAlias = Callable[[NDArray[np.bool_]], NDArray[np.float64]]


def pack_rounds(problem: PlanProblem, counts: NDArray[np.int64], first: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the rounds in which jobs run, (N, F): up to ``counts (N,)`` each, in rounds with most GPUs free.

    Jobs in ``first (N,)`` are placed before the others, then larger gangs, then longer jobs. Of equally free rounds the
    earlier one is used. If ``counts`` do not fit this way some jobs get less, though another packing may exist.
    """
    plan = np.zeros((problem.n_jobs, problem.n_rounds), dtype=np.bool_)
    free_gpus = np.full(problem.n_rounds, problem.n_gpus)
    for job_index in np.lexsort((-counts, -problem.gang, ~first)).tolist():
        freest = np.argsort(-free_gpus, kind="stable")[: counts[job_index]]
        rounds = freest[free_gpus[freest] >= problem.gang[job_index]]
        plan[job_index, rounds] = True
        free_gpus[rounds] -= problem.gang[job_index]
    return plan


def refill(values: RoundValues, level: Level, plan: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the plan with further rounds on free GPUs for jobs that still gain, largest gain per GPU first.

    Starting from an empty plan, this is the greedy answer.
    """
    problem, plan = values.problem, plan.copy()
    counts, job_index = plan.sum(axis=1), np.arange(problem.n_jobs)
    n_free = problem.n_gpus - problem.gang @ plan
    density = level.weight[:, None] * np.diff(values.utility, axis=1, append=values.utility[:, -1:])
    density = np.where(density > NEGLIGIBLE, density, 0.0) / problem.gang[:, None]
    while True:
        gain = density[job_index, counts]
        fits = ~plan & (problem.gang[:, None] <= n_free)
        gain = np.where(fits.any(axis=1), gain, 0.0)
        best = int(gain.argmax()) if gain.size else 0
        if gain.size == 0 or gain[best] <= 0.0:
            return plan
        # all rounds of equal gain, in the freest rounds
        lower = np.flatnonzero(density[best, counts[best] :] < gain[best] * (1 - NEGLIGIBLE))
        freest = np.argsort(-np.where(fits[best], n_free, -1), kind="stable")[
            : min(int(lower[0]), int(fits[best].sum()))
        ]
        plan[best, freest] = True
        counts[best] += freest.shape[0]
        n_free[freest] -= problem.gang[best]


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
    for running in plan.T:
        jobs = set(np.flatnonzero(running).tolist())
        n_idle = n_gpus - int(gang[running].sum())
        longest_first: Sequence[int] = np.argsort(-remaining_s(running), kind="stable").tolist() if n_idle > 0 else ()
        for job_index in longest_first:
            if job_index not in jobs and gang[job_index] <= n_idle:
                jobs.add(job_index)
                n_idle -= int(gang[job_index])
        rounds.append(tuple(sorted(jobs)))
    return tuple(rounds)


CallName = Literal["fairness", "priority", "order"]
"""Fairness: equal weights, finish-time constraints. Priority: weights instead. Order: the rounds of given counts."""


@restorable
@dataclass(frozen=True, slots=True)
class CallReport:
    """Report of one of the two or three optimisations of a plan.

    Parameters
    ----------
    name
        Name of the optimisation.
    status
        Overall status: ``FEASIBLE`` where a time limit ended a solve, ``NO_SOLUTION`` and ``ERROR`` without an answer.
    objective
        Objective of the answer, recomputed; of the order, the sum that is minimised. NaN without an answer.
    bound
        Proven bound of the objective.
    gap
        Gap between them, relative to the gain over giving no job a round (of the order: to the objective). Of several
        levels, the largest.
    per_round
        Whether the model with single rounds was needed: the relaxation's counts could not be packed.
    greedy
        Whether the greedy answer was used: no solve gave one.
    seconds
        Wall-clock time. Not reproducible.
    message
        Reason for no answer, as text.
    """

    name: CallName
    status: SolverStatus
    objective: float = math.nan
    bound: float = math.nan
    gap: float = math.nan
    per_round: bool = False
    greedy: bool = False
    seconds: float = 0.0
    message: str = ""


@restorable
@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Jobs of each round of the window.

    Parameters
    ----------
    runs : (N, F) bool
        As planned, without filling idle GPUs.
    schedule
        Jobs (their numbers in the problem) of each round, idle GPUs filled.
    calls
        Reports of the optimisations, in order.
    n_levels
        Number of objectives optimised in turn: 1, or 2 with urgent jobs first.
    """

    runs: NDArray[np.bool_]
    schedule: tuple[tuple[int, ...], ...]
    calls: tuple[CallReport, ...]
    n_levels: int


@dataclass(frozen=True, slots=True, eq=False)
class _Solved:
    """Levels solved in turn: the last answer as counts, and as rounds with ``per_round``; a bound for each level."""

    status: SolverStatus
    counts: NDArray[np.int64] | None = None
    runs: NDArray[np.bool_] | None = None
    bounds: tuple[float, ...] = ()
    message: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class _Aim:
    """Objectives to optimise in turn, and the least rounds of each job."""

    values: RoundValues
    levels: tuple[Level, ...]
    least: NDArray[np.int64]

    def gaps(self, counts: NDArray[np.int64], bounds: Sequence[float]) -> list[float]:
        """Return the gap of each level, relative to the gain over ``least``."""
        ratios = []
        for level, bound in zip(self.levels, bounds, strict=False):
            value = self.values.at(level, counts)
            gain = value - self.values.at(level, self.least)
            missing = max(0.0, bound - value)
            ratios.append(missing / gain if gain > 0 else math.inf if missing > ROUNDING * abs(value) else 0.0)
        return ratios


class PlanSolver:
    """Solver of plans with a back end of ``bfreplay.milp``.

    The same problem gives the same plan, unless a time limit ends a solve.

    Parameters
    ----------
    options
        Back end, time limit, gap, weights.

    Raises
    ------
    SolverUnavailableError
        The back end does not work here, or supports no continuous columns.
    """

    def __init__(self, options: PlannerOptions) -> None:
        self._models = ModelSolver(options.backend, "Shockwave's planner")
        if options.k > 0 and not self._models.backend.capabilities.continuous:
            raise SolverUnavailableError(
                f"Shockwave's planner cannot use {self._models.backend.name}: it supports no continuous columns, and "
                "the longest remaining time is one; use another, or k=0"
            )
        self._options = options
        self._limits = SolveOptions(options.time_limit_s, options.relative_gap, threads=1, seed=0)

    def close(self) -> None:
        """End the worker process, if any."""
        self._models.close()

    def plan(self, problem: PlanProblem, remaining_s: RemainingTimes | None = None) -> Plan:
        """Plan the window, and fill idle GPUs by ``remaining_s``, or else by the remaining times of the problem.

        Equal weights are optimised under finish-time constraints; if these cannot be met, the weighted levels without
        them. Then rounds are ordered: jobs with larger weights early. (The published program orders only after weights;
        after constraints it keeps the rounds of the solver.)
        """
        values = RoundValues.of(problem)
        levels: tuple[Level, ...] = (Level(np.ones(problem.n_jobs), problem.k),)
        least_counts = least_rounds(values)
        if least_counts is None:
            assignment, calls = None, [CallReport("fairness", SolverStatus.INFEASIBLE)]
        else:
            assignment, report = _timed(self._best, _Aim(values, levels, least_counts), "fairness")
            calls = [report]
        if assignment is None:
            levels = problem.levels(published=self._options.published_weights)
            assignment, report = _timed(self._best, _Aim(values, levels, np.zeros_like(problem.gang)), "priority")
            calls.append(report)
        if assignment is None:
            nothing = np.zeros((problem.n_jobs, problem.n_rounds), dtype=np.bool_)
            assignment = refill(values, levels[-1], nothing)
        runs, report = _timed(self._order_rounds, problem, levels, assignment)
        schedule = backfill(runs, problem.gang, remaining_s or (lambda _: problem.remaining_s), problem.n_gpus)
        return Plan(runs, schedule, (*calls, report), len(levels))

    def _best(self, aim: _Aim, name: CallName) -> tuple[NDArray[np.bool_] | None, CallReport]:
        """Optimise the levels: over counts, then over rounds where the counts cannot be packed within the gap."""
        main_level = len(aim.levels) - 1
        if aim.values.drown_in(aim.levels[main_level]):
            aim = replace(aim, levels=(*aim.levels, Level(aim.levels[main_level].weight, 0.0)))
        solution, greedy = self._solve_levels(aim, None), name == "priority"
        if solution.counts is None:
            return None, CallReport(name, solution.status, greedy=greedy, message=solution.message)
        assignment = self._pack_counts(aim, solution)
        status, bounds = solution.status, solution.bounds
        lacks_rounds = bool((assignment.sum(axis=1) < aim.least).any())
        largest_gap = max(aim.gaps(assignment.sum(axis=1), bounds))
        per_round = lacks_rounds or largest_gap > max(self._options.relative_gap, ROUNDING)
        if per_round:
            exact = self._solve_levels(aim, assignment)
            if exact.runs is not None:
                assignment, status, bounds = exact.runs, exact.status, tuple(map(min, bounds, exact.bounds))
            elif lacks_rounds:
                return None, CallReport(name, exact.status, per_round=True, greedy=greedy, message=exact.message)
            else:
                status = SolverStatus.FEASIBLE
        counts = assignment.sum(axis=1)
        largest_gap = max(aim.gaps(counts, bounds))
        objective = aim.values.at(aim.levels[main_level], counts)
        return assignment, CallReport(name, status, objective, bounds[main_level], largest_gap, per_round)

    def _pack_counts(self, aim: _Aim, solution: _Solved) -> NDArray[np.bool_]:
        """Pack counts by the rules of packing, and give spare rounds to jobs that gain."""
        assert solution.counts is not None
        problem, levels = aim.values.problem, aim.levels
        no_job = np.zeros(problem.n_jobs, dtype=np.bool_)
        packings = []
        for first in (no_job, levels[0].weight > 0 if len(levels) > 1 else aim.least > 0):
            assignment = refill(aim.values, levels[-1], pack_rounds(problem, solution.counts, first))
            counts = assignment.sum(axis=1)
            n_lacking = int(np.maximum(aim.least - counts, 0).sum())
            packings.append((n_lacking, max(aim.gaps(counts, solution.bounds)), assignment))
            if (counts >= solution.counts).all():
                break
        return min(packings, key=lambda packing: packing[:2])[2]

    def _solve_levels(self, aim: _Aim, start: NDArray[np.bool_] | None) -> _Solved:
        """Solve level after level, each keeping the values before it; over rounds where ``start`` is given."""
        per_round = start is not None
        values, levels, least_counts = aim.values, aim.levels, aim.least
        solution = _Solved(SolverStatus.OPTIMAL)
        floor: Floor | None = None
        for level in levels:
            begin_at = start if start is not None and (start.sum(axis=1) >= least_counts).all() else None
            counts_problem = counts_model(values, level, least_counts, floor, per_round=per_round, start=begin_at)
            answer = self._answer(counts_problem.model)
            result = _counts(values.problem, counts_problem, answer, per_round=per_round)
            if result is None and solution.counts is None:
                claims_answer = answer.solver_status in (SolverStatus.OPTIMAL, SolverStatus.FEASIBLE)
                status = SolverStatus.ERROR if claims_answer else answer.solver_status
                return _Solved(status, message="the answer breaks a rule" if claims_answer else answer.message)
            if result is None:  # the more important levels have an answer
                return replace(
                    solution, status=SolverStatus.FEASIBLE, bounds=(*solution.bounds, *[math.inf] * len(levels))
                )
            (counts, start), bound = result, values.at(level, counts_problem.least) + answer.bound
            status = SolverStatus.FEASIBLE if answer.solver_status is SolverStatus.FEASIBLE else solution.status
            solution = _Solved(status, counts, start, (*solution.bounds, bound))
            if level.k > 0:  # later levels keep the longest remaining time
                least_counts = np.maximum(least_counts, values.rounds_until(values.longest_s(counts)))
            else:
                floor = Floor(level, values.at(level, counts))
        return solution

    def _order_rounds(
        self, problem: PlanProblem, levels: Sequence[Level], assignment: NDArray[np.bool_]
    ) -> tuple[NDArray[np.bool_], CallReport]:
        """Move jobs to early rounds, those of the first level first; return ``assignment`` if that is not solved."""
        counts, floor, bound, status = assignment.sum(axis=1), None, 0.0, SolverStatus.OPTIMAL
        has_rounds = np.flatnonzero(counts)
        if not has_rounds.size:
            return assignment, CallReport("order", SolverStatus.OPTIMAL, 0.0, 0.0, 0.0)
        for level in levels:
            answer = self._answer(order_model(problem, level.weight, counts, floor, assignment))
            if answer.x is None:
                return assignment, CallReport("order", answer.solver_status)
            new_order = np.zeros_like(assignment)
            new_order[has_rounds] = np.rint(answer.x).reshape(-1, problem.n_rounds).astype(np.bool_)
            if (new_order.sum(axis=1) != counts).any() or (problem.gang @ new_order > problem.n_gpus).any():
                return assignment, CallReport("order", SolverStatus.ERROR)
            assignment, bound = new_order, -answer.bound
            floor = level.weight, _lateness(level.weight, assignment)
            status = SolverStatus.FEASIBLE if answer.solver_status is SolverStatus.FEASIBLE else status
        cost = _lateness(levels[-1].weight, assignment)
        largest_gap = max(0.0, cost - bound) / cost if cost > 0 else 0.0
        return assignment, CallReport("order", status, cost, bound, largest_gap)

    def _answer(self, model: LinearModel) -> BackendAnswer:
        return self._models.solve(model, self._limits)


def _timed(optimise: Callable[..., tuple[_Assignment, CallReport]], *arguments: Any) -> tuple[_Assignment, CallReport]:
    """Return the answer of an optimisation, and its report with the seconds that it took."""
    start_s = time.perf_counter()
    assignment, report = optimise(*arguments)
    return assignment, replace(report, seconds=time.perf_counter() - start_s)


ROUNDING = 1e-9
"""Relative gaps up to this are rounding."""


_Counts = tuple[NDArray[np.int64], NDArray[np.bool_] | None]
"""Rounds of each job, and with ``per_round`` which they are."""


def _counts(
    problem: PlanProblem, counts_problem: CountsModel, answer: BackendAnswer, *, per_round: bool
) -> _Counts | None:
    """Return the number of rounds of each job in an answer, and the rounds; None if the answer breaks a rule."""
    if answer.x is None:
        return None
    counts = counts_problem.counts(answer.x)
    if (counts < counts_problem.least).any() or (counts > problem.n_rounds).any():
        return None
    if int(problem.gang @ counts) > problem.n_rounds * problem.n_gpus:
        return None
    if not per_round:
        return counts, None
    n_segments, size = counts_problem.owner.shape[0], problem.n_jobs * problem.n_rounds
    assignment = np.rint(answer.x[n_segments : n_segments + size]).astype(np.bool_).reshape(problem.n_jobs, -1)
    if (assignment.sum(axis=1) != counts).any() or (problem.gang @ assignment > problem.n_gpus).any():
        return None
    return counts, assignment


def _lateness(weight: NDArray[np.float64], assignment: NDArray[np.bool_]) -> float:
    """Return the weighted sum of the mean numbers of the rounds in which jobs run."""
    return float(mean_round_cost(weight, assignment.sum(axis=1)) @ (assignment @ np.arange(assignment.shape[1])))
