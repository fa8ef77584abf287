"""The answer to one decision, with what is known about how far to trust it, and the interface of solvers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.model import ModelSize
from bfreplay.saved_state import restorable

if TYPE_CHECKING:  # back ends import this module, and their processes start without numba
    from bfreplay.milp.problem import AllocationProblem


class ProcessStatus(StrEnum):
    """Fate of the process (or call) that solved."""

    OK = "ok"
    NOT_NEEDED = "not_needed"  # no job or no node: there is one feasible answer
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"  # our own deadline passed and the worker was killed
    # the back end cannot take this model (size, missing capability), or the formulation this decision
    REFUSED = "refused"


@restorable
class SolverStatus(StrEnum):
    """The solver's own status. Unknown is never success."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"  # stopped early with an incumbent
    NO_SOLUTION = "no_solution"  # stopped early without one
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    ERROR = "error"
    UNKNOWN = "unknown"


class Quality(StrEnum):
    """Result of re-verification, whatever the solver said."""

    PROVEN = "proven"  # feasible, objective recomputed, and no answer is better
    FEASIBLE = "feasible"  # feasible and objective recomputed, but not proven optimal
    WRONG = "wrong"  # infeasible, or its objective is not what it claimed, or called optimal and is not
    NONE = "none"  # there was no answer to check


@dataclass(frozen=True, eq=False)
class Solution:
    """Counts for one ``AllocationProblem`` and three separate statuses.

    Parameters
    ----------
    process_status, solver_status, quality
        End of the solver's process; claim of the solver; quality of the counts as recomputed here.
    counts : (J,) int64 or None
        Nodes per job; ``None`` when there is no answer.
    objective
        Recomputed from the problem, never copied from the solver; ``nan`` without an answer.
    bound
        Proven upper bound on the objective; ``inf`` when nothing is known.
    solver
        Label of what answered, e.g. ``"exact"`` or ``"published on cbc"``.
    build_s, solve_s
        Seconds spent making the model, and solving it.
    message
        For a person to read: why the answer is not proven, and for a fallback's what it replaced and why.
    nodes
        Node-level formulations: for each job the abstract node numbers it gets (see
        ``formulations.node_map``); ``None`` otherwise.
    size
        Of the linear model that was solved; ``None`` where there was none.
    rejected
        The answer (or failure) that this one replaced, when a fallback was used.
    """

    counts: NDArray[np.int64] | None
    objective: float
    bound: float
    process_status: ProcessStatus
    solver_status: SolverStatus
    quality: Quality
    solver: str
    build_s: float = 0.0
    solve_s: float = 0.0
    message: str = ""
    nodes: tuple[tuple[int, ...], ...] | None = None
    size: ModelSize | None = None
    rejected: Solution | None = None

    def __repr__(self) -> str:
        if self.counts is None:
            return f"<Solution: none by {self.solver}: {self.message or self.solver_status}>"
        counts = np.array2string(self.counts, threshold=20)
        return f"<Solution: counts {counts}, objective {self.objective:.6g}, {self.quality} by {self.solver}>"

    @classmethod
    def without_answer(
        cls, solver: str, status: SolverStatus, message: str, build_s: float = 0.0, solve_s: float = 0.0
    ) -> Solution:
        """Return a solution without counts, for the reason in ``message``."""
        return cls(None, math.nan, math.inf, ProcessStatus.OK, status, Quality.NONE, solver, build_s, solve_s, message)

    @classmethod
    def proven(
        cls, counts: NDArray[np.int64], objective: float, bound: float, solver: str, build_s: float, solve_s: float
    ) -> Solution:
        """Return an optimal answer with its proof; the exact solver gives many, and the constructor is slow."""
        solution = cls.__new__(cls)
        vars(solution).update(
            _OF_A_PROOF,
            counts=counts,
            objective=objective,
            bound=bound,
            solver=solver,
            build_s=build_s,
            solve_s=solve_s,
        )
        return solution

    @property
    def gap(self) -> float:
        """``bound - objective`` relative to the larger of 1 and the objective's magnitude; ``inf`` if unknown."""
        if self.counts is None or math.isinf(self.bound):
            return math.inf
        return max(0.0, self.bound - self.objective) / max(1.0, abs(self.objective))


_OF_A_PROOF = {
    "process_status": ProcessStatus.OK, "solver_status": SolverStatus.OPTIMAL, "quality": Quality.PROVEN,
}  # fmt: skip


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
