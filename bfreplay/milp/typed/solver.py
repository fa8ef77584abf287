"""The exact solver of decisions on several types."""

from __future__ import annotations

import math
from time import perf_counter

import numpy as np

from bfreplay import defaults
from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.exact.solver import LARGEST
from bfreplay.milp.solution import ProcessStatus, Quality, Solution, SolverStatus
from bfreplay.milp.typed.optimum import MOST_STATES, optimum_of
from bfreplay.milp.typed.problem import TypedProblem
from bfreplay.milp.typed.solution import TypedSolution
from bfreplay.milp.typed.verify import objective_of, violation
from bfreplay.milp.verify import agrees, magnitude


class TypedExactSolver:
    """Solves every ``TypedProblem`` to proven optimality, without a licence.

    With one type it asks the exact solver of one type. Every other answer is checked against the problem itself. Among
    equally good answers the one it meets first is kept, and it meets them in a fixed order, so the same problem always
    gets the same answer. Decisions that take too large a search, as some on more than four types do, are handed to
    HiGHS, reduced to what is undecided.

    Parameters
    ----------
    time_limit_s
        For HiGHS. After it the best answer so far is given, feasible and not proven, with a bound.
    most_states
        Size of the search at which HiGHS is asked.
    """

    def __init__(self, time_limit_s: float = defaults.TIME_LIMIT_S, most_states: int = MOST_STATES) -> None:
        self.time_limit_s = time_limit_s
        self.most_states = most_states
        self._of_one_type = ExactSolver()

    @property
    def name(self) -> str:
        """``"exact"``."""
        return self._of_one_type.name

    def solve(self, problem: TypedProblem) -> TypedSolution:
        """Optimal types and counts; ``SolverStatus.ERROR`` when the problem's numbers or their sums are not finite."""
        if problem.n_types == 1:
            solution = self._of_one_type.solve(problem.of_type(0))
            types = None if solution.counts is None else (solution.counts > 0) - 1
            return TypedSolution(types, solution)
        started = perf_counter()
        value = problem.value
        built = perf_counter()
        largest = np.abs(value, where=value != -np.inf, out=np.zeros_like(value)).max(initial=0.0)
        if not largest < LARGEST:  # nan as well: it hides from every other comparison
            return self._too_large(built - started)
        found = optimum_of(value, problem.capacity, self.time_limit_s, self.most_states)
        solved = perf_counter()
        fault = violation(problem, found.types, found.counts)
        worth = objective_of(problem, found.types, found.counts)
        scale = max(magnitude(problem.of_type(t)) for t in range(problem.n_types))
        if not fault and not (agrees(found.objective, worth, scale) and worth <= found.bound + 1e-12 * scale):
            fault = f"claims {found.objective:.12g} of at most {found.bound:.12g}, is worth {worth:.12g}"
        status = SolverStatus.OPTIMAL if found.is_proven else SolverStatus.FEASIBLE
        if fault:
            return TypedSolution(None, Solution(
                None, math.nan, math.inf, ProcessStatus.OK, status, Quality.WRONG, self.name,
                built - started, solved - built, fault,
            ))  # fmt: skip
        return TypedSolution(found.types, Solution(
            found.counts, worth, max(found.bound, worth), ProcessStatus.OK, status,
            Quality.PROVEN if found.is_proven else Quality.FEASIBLE, self.name, built - started, solved - built,
            "" if found.is_proven else f"not proven optimal: {found.message}",
        ))  # fmt: skip

    def _too_large(self, build_s: float) -> TypedSolution:
        return TypedSolution(None, Solution(
            None, math.nan, math.inf, ProcessStatus.OK, SolverStatus.ERROR, Quality.NONE, self.name, build_s, 0.0,
            "what the jobs are worth is no number, or too large for one: check rates, weights and the look-ahead",
        ))  # fmt: skip
