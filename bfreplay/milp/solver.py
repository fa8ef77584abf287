"""Interface of solvers of an allocation decision."""

from __future__ import annotations

from typing import Protocol

from bfreplay.milp.problem import AllocationProblem
from bfreplay.milp.solution import Solution


class Solver(Protocol):
    """Solver of decisions, one after the other; ``solver_of`` makes one. It may keep a worker process: close it."""

    @property
    def name(self) -> str:
        """Label for tables, e.g. ``"exact"`` or ``"choices on cbc"``."""
        ...

    def solve(self, problem: AllocationProblem) -> Solution:
        """Answer ``problem``. Never raises for a solver's failure: that is a status of the ``Solution``."""
        ...

    def describe(self) -> dict[str, object]:
        """Every option with its value, JSON-ready, for the run's record."""
        ...

    def close(self) -> None:
        """Release what the solver holds; harmless when called twice."""
        ...
