"""BFTrainer's policy: the counts that maximise the objective over the forward-looking time, rescaling paid."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bfreplay import defaults
from bfreplay.errors import InputError
from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.problem import AllocationProblem
from bfreplay.milp.solver import Solver
from bfreplay.policies.policy import ANY_TRIGGER, Decision, PolicyState


def problem_of(state: PolicyState, t_fwd_s: float) -> AllocationProblem:
    """The decision of BFTrainer (arXiv:2106.12091, section III) for ``state``.

    ``gain_j(n) = t_fwd_s * O_j(n)``. While it rescales, a job gives up what it makes now,
    ``r_j = O_j(current_j)``, or nothing if it runs on fewer than ``min_nodes``: so a start from zero is free.
    """
    current: NDArray[np.int64] = np.ascontiguousarray(state.current)
    rate_now = state.objective[np.arange(state.n_jobs), current]
    rate_now = np.where(current >= state.min_nodes, rate_now, 0.0)
    return AllocationProblem(
        current=current,
        min_nodes=np.ascontiguousarray(state.min_nodes),
        max_nodes=np.ascontiguousarray(state.max_nodes),
        gain=t_fwd_s * state.objective,
        scale_up_loss=rate_now * state.scale_up_cost_s,
        scale_down_loss=rate_now * state.scale_down_cost_s,
        capacity=state.n_idle,
    )


class BFTrainerPolicy:
    """Allocate by the MILP of BFTrainer at every event, with any solver.

    Parameters
    ----------
    t_fwd_s
        Forward-looking time: how long a decision is expected to last, > 0. Small values make rescaling dear.
    solver
        Answers each decision; the exact solver by default. A solver without an answer leaves every job as it is.

    Raises
    ------
    InputError
        ``t_fwd_s`` is not positive.
    """

    name = "bftrainer"
    wakes_on = ANY_TRIGGER

    def __init__(self, t_fwd_s: float = defaults.T_FWD_S, solver: Solver | None = None) -> None:
        if not (math.isfinite(t_fwd_s) and t_fwd_s > 0):
            raise InputError(
                "the forward-looking time is not a positive number",
                column="t_fwd_s",
                value=t_fwd_s,
                expected="seconds > 0",
                fix="120 s is a good start; the best value depends on how often nodes are reclaimed",
            )
        if solver is not None and not hasattr(solver, "solve"):
            raise InputError("this is no solver", value=solver, expected="a solver", fix="make one: solver_of('cbc')")
        self.t_fwd_s = float(t_fwd_s)
        self.solver: Solver = ExactSolver() if solver is None else solver

    @classmethod
    def from_options(cls, *, t_fwd_s: float, solver: Solver) -> BFTrainerPolicy:
        """Both options matter."""
        return cls(t_fwd_s, solver)

    def decide(self, state: PolicyState) -> Decision:
        """Counts of the solver, or the current ones where it has none."""
        solution = self.solver.solve(problem_of(state, self.t_fwd_s))
        counts = solution.counts
        return Decision(state.current.copy() if counts is None else counts, solution)

    def describe(self) -> dict[str, object]:
        """Forward-looking time and solver."""
        return {"name": self.name, "t_fwd_s": self.t_fwd_s, "solver": self.solver.describe()}

    def close(self) -> None:
        """Close the solver."""
        self.solver.close()
