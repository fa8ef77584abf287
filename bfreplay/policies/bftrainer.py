"""BFTrainer's policy: the counts that maximise the objective over the forward-looking time, rescaling paid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bfreplay import checks, defaults
from bfreplay.errors import InputError
from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.problem import AllocationProblem
from bfreplay.milp.solution import Solver
from bfreplay.policies.forward_time import FixedForwardTime, ForwardTime, forward_time_of
from bfreplay.policies.names import OWN
from bfreplay.policies.objectives.catalogue import objective_of
from bfreplay.policies.objectives.objective import Objective
from bfreplay.policies.objectives.own import OwnObjective
from bfreplay.policies.objectives.separable import SeparableObjective
from bfreplay.policies.policy import Decision, Policy, PolicyCapabilities, Round
from bfreplay.policies.state import PolicyState

if TYPE_CHECKING:
    from bfreplay.policies.deadlines.admission import DeadlinePlans

_OWN = OwnObjective()


def problem_of(state: PolicyState, t_fwd_s: float) -> AllocationProblem:
    """The decision of BFTrainer (arXiv:2106.12091, section III) for ``state``, by the jobs' own objectives."""
    return _OWN.problem(state, t_fwd_s)


def at_price(state: PolicyState, price_s: float | None) -> PolicyState:
    """Return the state in which every change costs ``price_s`` and nothing else; ``None``: what it does cost."""
    if price_s is None:
        return state
    prices_s = np.full(state.n_jobs, price_s)
    return replace(state, scale_up_cost_s=prices_s, scale_down_cost_s=prices_s, costs=None)


class BFTrainerPolicy(Policy):
    """Allocate by the MILP of BFTrainer at every event, with any solver and any objective.

    On nodes of several types each job gets nodes of one type (``milp.typed``): with the exact solver, a forward-looking
    time in seconds, and an objective that tells types apart (``policies.typed.gains``).

    Parameters
    ----------
    t_fwd_s
        Forward-looking time: how long a decision is expected to last, > 0. Small values make rescaling dear. ``"auto"``
        learns it from the events as they come (``AutoForwardTime``); or a ``ForwardTime`` of your own.
    solver
        Answers each decision; the exact solver by default. A solver without an answer leaves every job as it is.
    objective
        What is maximised, or its spec (see ``objective_of``); each job's own objective curve by default.
    admission
        Decline a job when it comes if it cannot be done by its deadline, or would make one late that is in time
        (``policies.deadlines``): as if the nodes that are idle then stayed so. That is no promise: decisions follow the
        objective, not the plans.
    price_s
        Take this many seconds for the cost of every change, whatever the jobs say; ``None``: what they say.

    Raises
    ------
    InputError
        ``t_fwd_s`` is no time, or there is no such solver or objective.
    """

    name = "bftrainer"
    capabilities = PolicyCapabilities(node_types=True)

    def __init__(
        self,
        t_fwd_s: float | str | ForwardTime = defaults.T_FWD_S,
        solver: Solver | str | None = None,
        objective: Objective | str = OWN,
        *,
        admission: bool = False,
        price_s: float | None = None,
    ) -> None:
        self.forward_time = forward_time_of(t_fwd_s)
        if isinstance(solver, str):
            from bfreplay.milp.named_solvers import solver_of

            solver = solver_of(solver)
        if solver is not None and not hasattr(solver, "solve"):
            raise InputError("this is no solver", value=solver, expected="a name, or an object that solver_of returns")
        if not (isinstance(objective, str) or hasattr(objective, "problem")):
            raise InputError(
                "this is no objective",
                value=objective,
                expected="an objective, or its spec as text",
                fix="name a function of your own by its module: 'my_objective:quick'",
            )
        self.solver: Solver = ExactSolver() if solver is None else solver
        self.objective: Objective = objective_of(objective) if isinstance(objective, str) else objective
        self.price_s = None if price_s is None else checks.number("price_s", price_s, least=0)
        self._plans: DeadlinePlans | None = None
        if admission:
            from bfreplay.policies.deadlines.admission import SLOT_S, DeadlinePlans, fewest_nodes  # most never need it

            self._plans = DeadlinePlans(fewest_nodes(SLOT_S))

    @classmethod
    def from_options(
        cls,
        *,
        t_fwd_s: float | str,
        solver: Solver,
        objective: Objective | str | None = None,
        admission: bool = False,
        price_s: float | None = None,
    ) -> BFTrainerPolicy:
        """Return the policy; all options matter."""
        return cls(t_fwd_s, solver, OWN if objective is None else objective, admission=admission, price_s=price_s)

    def check_types(self, type_names: Sequence[str]) -> None:
        """Raise ``InputError`` for a solver, an objective or a forward-looking time that knows one type only."""
        from bfreplay.policies.typed import check_types  # most runs never need it

        check_types(self.forward_time, self.objective, self.solver)
        if self._plans is not None:
            raise InputError(
                "admission plans on nodes of one type",
                column="admission",
                value=True,
                expected="nodes of one type",
                fix="leave admission out, or choose a node type",
            )

    @property
    def t_fwd_s(self) -> float | None:
        """Forward-looking time of all decisions; ``None`` where they differ."""
        return self.forward_time.t_fwd_s if isinstance(self.forward_time, FixedForwardTime) else None

    @property
    def knows_costs(self) -> bool:
        """False for a price that it is told, a learnt time, and an objective of all jobs together."""
        is_separable = isinstance(self.objective, OwnObjective | SeparableObjective)
        return self.price_s is None and self.t_fwd_s is not None and is_separable

    def decide(self, state: PolicyState) -> Decision:
        """Return the counts of the solver, or the current ones if it has none; 0 for declined jobs."""
        if self._plans is None:
            return self._decide_on_all(state)
        refusals = self._plans.plan_jobs(state, admits=True)[1]
        accepted_rows = np.setdiff1d(np.arange(state.n_jobs), list(refusals))
        if not refusals:
            return self._decide_on_all(state)
        node_counts = np.zeros(state.n_jobs, np.int64)
        decision = self._decide_on_all(state.only(accepted_rows)) if accepted_rows.size else Decision(node_counts[:0])
        node_counts[accepted_rows] = decision.counts
        return replace(decision, counts=node_counts, round=Round(declined=refusals))

    def _decide_on_all(self, state: PolicyState) -> Decision:
        if state.nodes is not None and len(state.nodes.type_names) > 1:
            from bfreplay.policies.typed import typed_decision  # most runs never need it

            return typed_decision(state, self.forward_time, self.objective, self.solver)
        state = at_price(state, self.price_s)
        t_fwd_s = self.forward_time.seconds(state)
        solver, objective = self.solver, self.objective
        if type(objective) is OwnObjective and type(solver) is ExactSolver and not solver.published_limit:
            solution = objective.optimum(state, t_fwd_s, solver)
        else:
            solution = solver.solve(objective.problem(state, t_fwd_s))
        node_counts = state.current.copy() if solution.counts is None else solution.counts
        self.forward_time.note_decision(state, node_counts)
        return Decision(node_counts, solution, t_fwd_s=t_fwd_s)

    def describe(self) -> dict[str, object]:
        """Forward-looking time, solver and objective; ``t_fwd_s`` only where it is one number."""
        t_fwd_s = self.t_fwd_s
        return {
            "name": self.name,
            **({"forward_time": self.forward_time.describe()} if t_fwd_s is None else {"t_fwd_s": t_fwd_s}),
            "solver": self.solver.describe(),
            "objective": self.objective.describe(),
            **({"admission": True} if self._plans is not None else {}),
            **({"price_s": self.price_s} if self.price_s is not None else {}),
        }

    def close(self) -> None:
        """Close the solver, and forget what was learnt."""
        self.solver.close()
        self.forward_time.close()
        if self._plans is not None:
            self._plans.forget()
