"""One decision of BFTrainer's policy on nodes of several types."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay.errors import InputError
from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.rescale_cost import growth_cost, move_cost, rescale_costs, shrink_cost
from bfreplay.milp.solver import Solver
from bfreplay.milp.typed import TypedExactSolver
from bfreplay.policies.forward_time import AutoForwardTime, ForwardTime
from bfreplay.policies.objectives.objective import Objective
from bfreplay.policies.policy import Decision, PolicyState
from bfreplay.policies.typed.gains import check_objective, current_types, typed_problem, types_of
from bfreplay.policies.typed.placement import placed


def typed_decision(state: PolicyState, forward_time: ForwardTime, objective: Objective, solver: Solver) -> Decision:
    """Types, counts and nodes of the exact solver; where it has no answer every job keeps what it has.

    Raises
    ------
    InputError
        The solver, the objective or the forward-looking time is one that knows nodes of one type only.
    """
    check_types(forward_time, objective, solver)
    t_fwd_s = forward_time.seconds(state)
    found = TypedExactSolver().solve(typed_problem(state, objective, t_fwd_s))
    nodes, _ = types_of(state)
    before = current_types(state, nodes)
    counts, types = found.solution.counts, found.types
    if counts is None or types is None:
        counts, types = state.current.copy(), before
    forward_time.decided(state, counts)
    return Decision(
        counts, found.solution, assigned=placed(nodes, types, counts), t_fwd_s=t_fwd_s,
        restart_s=_restart_s(state, before, types, counts),
    )  # fmt: skip


def _restart_s(
    state: PolicyState, before: NDArray[np.int64], types: NDArray[np.int64], counts: NDArray[np.int64]
) -> NDArray[np.float64] | None:
    """What is still to be charged to jobs that move, in seconds of work at their new rates.

    A move costs a scale-down and a scale-up at the rate before (``TypedProblem``); the replay itself charges what the
    count tells: one of the two, or none where it stays the same.
    """
    moves = (before != types) & (counts > 0) & (state.current >= state.min_nodes)
    if not moves.any():
        return None
    _, by_type = types_of(state)
    one_a_second, up_s, down_s = np.ones(state.n_jobs), state.scale_up_cost_s, state.scale_down_cost_s
    charged_s = rescale_costs(one_a_second, state.current, counts, up_s, down_s)
    move_s = move_cost(growth_cost(one_a_second, up_s), shrink_cost(one_a_second, down_s))
    row = np.arange(state.n_jobs)
    rate_before = state.throughput[row, state.current]
    rate_after = by_type[row, np.maximum(types, 0), counts]
    owed_s = np.where(moves, move_s - charged_s, 0.0)
    restart_s: NDArray[np.float64] = owed_s * rate_before / np.where(moves & (rate_after > 0.0), rate_after, np.inf)
    return restart_s


def check_types(forward_time: ForwardTime, objective: Objective, solver: Solver) -> None:
    """Raise ``InputError`` for what knows nodes of one type only."""
    check_objective(objective)
    if not isinstance(solver, ExactSolver) or solver.published_limit:
        raise InputError(
            f"the solver {solver.name!r} decides on nodes of one type", column="solver", value=solver.name,
            expected="the exact solver, with nodes of several types",
            fix="leave --solver out, or choose nodes of one type",
        )  # fmt: skip
    if isinstance(forward_time, AutoForwardTime):
        raise InputError(
            "the forward-looking time is learnt on nodes of one type", column="t_fwd_s", value="auto",
            expected="seconds, with nodes of several types", fix="give a number: --t-fwd 120",
        )  # fmt: skip
