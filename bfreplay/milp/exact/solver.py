"""The exact solver as one of the solvers: in microseconds, without a MILP and without a licence. The default."""

from __future__ import annotations

import math
from time import perf_counter

from bfreplay.milp.exact.optimum import OVERFLOW, PROOF_TOLERANCE, optimal_counts
from bfreplay.milp.problem import AllocationProblem
from bfreplay.milp.solution import ProcessStatus, Quality, Solution, SolverStatus

LARGEST = 1e290
"""What a job may be worth: differences of values times counts, and their sums, must stay finite."""


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

    @property
    def name(self) -> str:
        """``"exact"``, or ``"exact, published limit"``."""
        return "exact, published limit" if self.published_limit else "exact"

    def solve(self, problem: AllocationProblem) -> Solution:
        """Optimal counts; ``SolverStatus.INFEASIBLE`` only when bounds and change limit leave no answer.

        ``SolverStatus.ERROR`` when the problem's numbers, or sums of them, are not finite.
        """
        started = perf_counter()
        if self.published_limit:
            problem = problem.held_to_published_limit()
        value = problem.value
        built = perf_counter()
        if not value.max(initial=0.0) < LARGEST:  # nan as well: it hides from every other comparison
            return self._overflow(built - started, 0.0)
        try:
            counts, objective, bound, stage = optimal_counts(value, problem.capacity, PROOF_TOLERANCE)
        except SystemError as error:  # how numba reports a signal's exception that arrives while compiled code runs
            origin: BaseException | None = error
            while origin is not None and not isinstance(origin, KeyboardInterrupt | SystemExit):
                origin = origin.__cause__ or origin.__context__
            if origin is None:
                raise
            raise origin from None
        solved = perf_counter()
        if stage == OVERFLOW or (stage >= 0 and not (math.isfinite(objective) and math.isfinite(bound))):
            return self._overflow(built - started, solved - built)
        if stage < 0:
            return Solution(
                None, float("nan"), float("-inf"), ProcessStatus.OK, SolverStatus.INFEASIBLE, Quality.NONE, self.name,
                built - started, solved - built, "no counts satisfy the bounds and the change limit",
            )  # fmt: skip
        return Solution(
            counts, objective, bound, ProcessStatus.OK, SolverStatus.OPTIMAL, Quality.PROVEN, self.name,
            built - started, solved - built,
        )  # fmt: skip

    def _overflow(self, build_s: float, solve_s: float) -> Solution:
        return Solution(
            None, math.nan, math.inf, ProcessStatus.OK, SolverStatus.ERROR, Quality.NONE, self.name, build_s, solve_s,
            "what the jobs are worth is no number, or too large for one: check rates, weights and the look-ahead",
        )  # fmt: skip

    def describe(self) -> dict[str, object]:
        """Its name: that is its only option."""
        return {"name": self.name}

    def close(self) -> None:
        """Nothing to release."""
