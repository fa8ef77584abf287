"""The exact optimum of one decision."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay._compiling import expect_rows
from bfreplay.milp.exact.relaxation import Hulls, best_exchange, concave_hulls, critical_price
from bfreplay.milp.exact.search import Relaxed, better_answer, counts_worth_searching
from bfreplay.milp.problem import AllocationProblem
from bfreplay.milp.solution import Solution, SolverStatus

PROOF_TOLERANCE = 8 * float(np.finfo(np.float64).eps)
"""Times J + 2 and the relaxation's magnitude: answers closer than this count as equal. It is what rounding may do to
a sum of so many terms, not a gap that an optimiser may leave."""

OVERFLOW = -2
"""Stage of ``optimal_counts`` when sums of the table's numbers are not finite."""


LARGEST = 1e290
"""What a job may be worth: differences of values times counts, and their sums, must stay finite."""


@compiled
def _objective(value: NDArray[np.float64], counts: NDArray[np.int64]) -> float:
    total = 0.0
    for job_index in range(value.shape[0]):
        total += value[job_index, counts[job_index]]
    return total


Optimum = tuple[NDArray[np.int64], float, float, int]
"""``(counts (J,), objective, bound, stage)``, as ``optimal_counts`` finds them."""


@compiled
def optimal_counts(value: NDArray[np.float64], capacity: int, tolerance: float) -> Optimum:
    """Optimal counts of the allocation problem with table ``value (J, K + 1)`` and ``capacity`` nodes.

    Returns ``(counts (J,), objective, bound, stage)``; ``bound - objective`` is at most ``tolerance * (J + 2)``
    times the relaxation's magnitude. ``stage`` tells where the proof closed: 0 capacity does not bind, 1 relaxation,
    2 exchange, 3 core; -1: no feasible counts (then ``objective`` is ``-inf``); ``OVERFLOW``: the numbers
    are too large to prove anything.
    """
    if not is_sound(value):
        return np.zeros(value.shape[0], np.int64), np.nan, np.inf, OVERFLOW
    return optimum_on(concave_hulls(value, capacity), value, capacity, tolerance)


@compiled
def is_sound(value: NDArray[np.float64]) -> bool:
    """Return whether what the jobs are worth can be added up; nan cannot."""
    sound = True
    for job_index in range(value.shape[0]):
        for n in range(value.shape[1]):
            sound &= value[job_index, n] < LARGEST  # nan is not: it hides from every other comparison
    return sound


@compiled
def optimum_on(hulls: Hulls, value: NDArray[np.float64], capacity: int, tolerance: float) -> Optimum:
    """Return ``optimal_counts`` of a sound table, from its ``concave_hulls``."""
    n_jobs = value.shape[0]
    counts = np.zeros(n_jobs, np.int64)
    if n_jobs == 0:
        return counts, 0.0, 0.0, 0
    points, start, stop = hulls.points, hulls.start, hulls.stop
    least_nodes = 0
    most_nodes = 0
    for job_index in range(n_jobs):
        if start[job_index] == stop[job_index]:
            return counts, -np.inf, -np.inf, -1
        least_nodes += points[start[job_index]]
        most_nodes += points[stop[job_index] - 1]
    if least_nodes > capacity:
        return counts, -np.inf, -np.inf, -1
    if most_nodes <= capacity:
        for job_index in range(n_jobs):
            counts[job_index] = points[stop[job_index] - 1]
        objective = _objective(value, counts)
        return counts, objective, objective, 0

    price, cut_job, vertex = critical_price(hulls, capacity)
    relaxation = price * capacity
    magnitude = abs(relaxation)
    base = np.empty(n_jobs, np.int64)
    n_free = capacity
    for job_index in range(n_jobs):
        count = points[vertex[job_index]]
        base[job_index] = count
        counts[job_index] = count
        n_free -= count
        best_at_price = value[job_index, count] - price * count
        relaxation += best_at_price
        magnitude += abs(best_at_price)
    if not magnitude < np.inf:
        return counts, np.nan, np.inf, OVERFLOW
    slack = tolerance * (n_jobs + 2) * magnitude
    # the broken job takes the part of its next segment that fits, if a count there is worth it
    for count in range(counts[cut_job] + 1, counts[cut_job] + n_free + 1):
        if value[cut_job, count] > value[cut_job, counts[cut_job]]:
            n_free -= count - counts[cut_job]
            counts[cut_job] = count
    objective = _objective(value, counts)
    if relaxation - objective <= slack:
        return counts, objective, max(relaxation, objective), 1

    gain_of_exchange, count, other_job, other_count = best_exchange(value, capacity, cut_job, counts)
    if gain_of_exchange > 0.0:
        counts[cut_job] = count
        if other_job >= 0:
            counts[other_job] = other_count
        objective = _objective(value, counts)
        if relaxation - objective <= slack:
            return counts, objective, max(relaxation, objective), 2

    allowance = relaxation - objective - slack
    search_space = counts_worth_searching(hulls, vertex, value, capacity, price, allowance + slack)
    if better_answer(search_space, Relaxed(base, cut_job, capacity, price), allowance, counts):
        objective = _objective(value, counts)
    return counts, objective, objective + slack, 3


def too_large(solver: str, build_s: float, solve_s: float = 0.0) -> Solution:
    """Return the answer to numbers too large to prove anything with."""
    reason = "what the jobs are worth is no number, or too large for one: check rates, weights and the look-ahead"
    return Solution.without_answer(solver, SolverStatus.ERROR, reason, build_s, solve_s)


class ExactSolver:
    """Solves every ``AllocationProblem`` to proven optimality over counts (see ``milp.exact``).

    Among equally good answers the one it meets first is kept, and it meets them in a fixed order (jobs first
    come first served, counts increasing), so the same problem always gets the same answer.

    Parameters
    ----------
    published_limit
        Hold every decision to the published model's limit on changes (``published_change_limit``): the exact
        optimum of the model as published, defect included.
    """

    def __init__(self, published_limit: bool = False) -> None:
        self.published_limit = published_limit

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.name}>"

    @property
    def name(self) -> str:
        """``"exact"``, or ``"exact, published limit"``."""
        return "exact, published limit" if self.published_limit else "exact"

    def solve(self, problem: AllocationProblem) -> Solution:
        """Return optimal counts; ``SolverStatus.INFEASIBLE`` only when bounds and change limit leave no answer.

        ``SolverStatus.ERROR`` when the problem's numbers, or sums of them, are not finite.
        """
        start_s = perf_counter()
        if self.published_limit:
            problem = problem.within_published_limit()
        value = problem.value
        expect_rows(value.size)
        return self.answer_by(
            optimal_counts, value, problem.capacity, PROOF_TOLERANCE, build_s=perf_counter() - start_s
        )

    def answer_by(self, find: Callable[..., Optimum], *arguments: Any, build_s: float = 0.0) -> Solution:
        """Return the answer as ``solve`` does, from compiled code that finds the optimum.

        Parameters
        ----------
        find
            ``optimal_counts``, or a function that returns what that returns.
        arguments
            Of ``find``.
        build_s
            Seconds that it took to make them.
        """
        start_s = perf_counter()
        try:
            counts, objective, bound, stage = find(*arguments)
        except SystemError as error:  # how numba reports a signal's exception that arrives while compiled code runs
            origin: BaseException | None = error
            while origin is not None and not isinstance(origin, KeyboardInterrupt | SystemExit):
                origin = origin.__cause__ or origin.__context__
            if origin is None:
                raise
            raise origin from None
        solve_s = perf_counter() - start_s
        if stage == OVERFLOW or (stage >= 0 and not (math.isfinite(objective) and math.isfinite(bound))):
            return too_large(self.name, build_s, solve_s)
        if stage < 0:
            reason = "no counts satisfy the bounds and the change limit"
            no_answer = Solution.without_answer(self.name, SolverStatus.INFEASIBLE, reason, build_s, solve_s)
            return replace(no_answer, bound=-math.inf)
        return Solution.proven(counts, objective, bound, self.name, build_s, solve_s)

    def describe(self) -> dict[str, object]:
        """Return its name, which has its only option."""
        return {"name": self.name}

    def close(self) -> None:
        """Do nothing: there is nothing to release."""
