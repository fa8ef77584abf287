"""BFTrainer's policy: the counts that maximise the objective over the forward-looking time, rescaling paid."""

from __future__ import annotations

import math

from bfreplay import defaults
from bfreplay.errors import InputError
from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.problem import AllocationProblem
from bfreplay.milp.solver import Solver
from bfreplay.policies.objectives.catalogue import objective_of
from bfreplay.policies.objectives.objective import Objective
from bfreplay.policies.objectives.own import OWN, OwnObjective
from bfreplay.policies.policy import ANY_TRIGGER, Decision, PolicyState

_OWN = OwnObjective()


def problem_of(state: PolicyState, t_fwd_s: float) -> AllocationProblem:
    """The decision of BFTrainer (arXiv:2106.12091, section III) for ``state``, by the jobs' own objectives."""
    return _OWN.problem(state, t_fwd_s)


class BFTrainerPolicy:
    """Allocate by the MILP of BFTrainer at every event, with any solver and any objective.

    Parameters
    ----------
    t_fwd_s
        Forward-looking time: how long a decision is expected to last, > 0. Small values make rescaling dear.
    solver
        Answers each decision; the exact solver by default. A solver without an answer leaves every job as it is.
    objective
        What is maximised, or its spec (see ``objective_of``); each job's own objective curve by default.

    Raises
    ------
    InputError
        ``t_fwd_s`` is not positive, or there is no such solver or objective.
    """

    name = "bftrainer"
    wakes_on = ANY_TRIGGER

    def __init__(
        self, t_fwd_s: float = defaults.T_FWD_S, solver: Solver | None = None, objective: Objective | str = OWN
    ) -> None:
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
        if not (isinstance(objective, str) or hasattr(objective, "problem")):
            raise InputError(
                "this is no objective", value=objective, expected="an objective, or its spec as text",
                fix="name a function of your own by its module: 'my_objective:quick'",
            )  # fmt: skip
        self.t_fwd_s = float(t_fwd_s)
        self.solver: Solver = ExactSolver() if solver is None else solver
        self.objective: Objective = objective_of(objective) if isinstance(objective, str) else objective

    @classmethod
    def from_options(
        cls, *, t_fwd_s: float, solver: Solver, objective: Objective | str | None = None
    ) -> BFTrainerPolicy:
        """All options matter."""
        return cls(t_fwd_s, solver, OWN if objective is None else objective)

    def decide(self, state: PolicyState) -> Decision:
        """Counts of the solver, or the current ones where it has none."""
        solution = self.solver.solve(self.objective.problem(state, self.t_fwd_s))
        counts = solution.counts
        return Decision(state.current.copy() if counts is None else counts, solution)

    def describe(self) -> dict[str, object]:
        """Forward-looking time, solver and objective."""
        return {
            "name": self.name,
            "t_fwd_s": self.t_fwd_s,
            "solver": self.solver.describe(),
            "objective": self.objective.describe(),
        }

    def close(self) -> None:
        """Close the solver."""
        self.solver.close()
