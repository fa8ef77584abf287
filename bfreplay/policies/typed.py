"""One decision of BFTrainer's policy on nodes of several types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bfreplay.errors import InputError
from bfreplay.milp.charge_rule import charged_rates, move_cost, rescale_costs, scale_down_cost, scale_up_cost
from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.solution import Solver
from bfreplay.milp.typed.problem import NO_TYPE, TypedProblem
from bfreplay.milp.typed.solver import TypedExactSolver
from bfreplay.policies.forward_time import AutoForwardTime, ForwardTime
from bfreplay.policies.names import OWN
from bfreplay.policies.objectives.built_in import first_node_rate, in_units_of, own, speed_up, throughput
from bfreplay.policies.objectives.objective import Objective
from bfreplay.policies.objectives.own import OwnObjective
from bfreplay.policies.objectives.separable import SeparableObjective
from bfreplay.policies.policy import Decision, Placement
from bfreplay.policies.state import NodesSeen, PolicyState


def place_jobs(nodes: NodesSeen, types: NDArray[np.int64], counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """Nodes of each job, last gained last.

    A job that stays on its type keeps the nodes it has, and gives back the ones it gained last first; one that moves
    gives back all. Then free nodes are taken, lowest number first, jobs in their order.

    Parameters
    ----------
    nodes
        As they are now; ``held(j)`` gives a job's last gained last.
    types : (J,) int64
        Type that each job is to be on, negative for none.
    counts : (J,) int64
        How many nodes of it, feasible.
    """
    is_free = nodes.is_idle.copy()
    kept_nodes: list[NDArray[np.int64]] = []
    for job_index, (node_type, count) in enumerate(zip(types.tolist(), counts.tolist(), strict=True)):
        own_nodes = nodes.held(job_index).astype(np.int64)
        own_nodes = own_nodes[is_free[own_nodes]]  # of two jobs that shared nodes the first keeps them
        stays = own_nodes.size > 0 and nodes.node_type[own_nodes[0]] == node_type
        kept_nodes.append(own_nodes[:count] if stays else own_nodes[:0])
        is_free[kept_nodes[-1]] = False
    free_nodes = [
        np.flatnonzero(is_free & (nodes.node_type == type_index)) for type_index in range(len(nodes.type_names))
    ]
    n_used = [0] * len(free_nodes)
    placement = []
    for of_job, node_type, count in zip(kept_nodes, types.tolist(), counts.tolist(), strict=True):
        missing = count - of_job.size
        if missing > 0:
            of_job = np.concatenate([of_job, free_nodes[node_type][n_used[node_type] : n_used[node_type] + missing]])
            n_used[node_type] += missing
        placement.append(of_job)
    return tuple(placement)


ON_TYPES = (OWN, "throughput", "speed-up")
"""Objectives that can be posed on nodes of several types, and sums of them."""

RatesByType = Callable[[PolicyState, NDArray[np.float64]], NDArray[np.float64]]


def typed_problem(state: PolicyState, objective: Objective, t_fwd_s: float) -> TypedProblem:
    """Pose ``state`` as one decision on all its types: ``gain_j(t, n) = t_fwd_s x V_j(t, n)``.

    ``V`` is what the objective says on one type, with the job's throughput on that type: ``weight x P_t(n)`` for its
    own objective and for throughput, and ``weight x P_t(n) / P(1)`` for speed-up, where ``P(1)`` is the rate of the
    first node of the type that has the highest, so that types can be compared. In a sum every term is divided by its
    largest absolute value over all jobs, types and counts. A rescaling job gives up ``V`` where it is now, as on one
    type.

    Parameters
    ----------
    state
        Of a replay on several types.
    objective
        One of ``ON_TYPES``, or a sum of them.
    t_fwd_s
        How long the decision is expected to last, seconds.

    Raises
    ------
    InputError
        The objective is another one; or a job has an objective curve of its own, which tells no types apart.
    """
    nodes, by_type = types_of(state)
    rates = _rates(state, by_type, objective)
    n_types = by_type.shape[1]
    current_type = current_types(state, nodes)
    current_choice = np.arange(state.n_jobs), np.maximum(current_type, 0), state.current
    rate_now = charged_rates(np.maximum(rates[current_choice], 0.0), state.current, state.min_nodes)
    return TypedProblem(
        current=np.ascontiguousarray(state.current),
        current_type=current_type,
        min_nodes=np.ascontiguousarray(state.min_nodes),
        max_nodes=np.ascontiguousarray(state.max_nodes),
        gain=t_fwd_s * rates,
        scale_up_loss=scale_up_cost(rate_now, state.scale_up_cost_s),
        scale_down_loss=scale_down_cost(rate_now, state.scale_down_cost_s),
        capacity=np.bincount(nodes.node_type[nodes.is_idle], minlength=n_types).astype(np.int64),
    )


def types_of(state: PolicyState) -> tuple[NodesSeen, NDArray[np.float64]]:
    """Nodes of ``state``, and throughput ``(J, T, K + 1)`` on each type.

    Raises
    ------
    ValueError
        The state was made without them.
    """
    if state.nodes is None or state.throughput_by_type is None:
        raise ValueError("the state does not say which nodes there are, or what jobs make on their types")
    return state.nodes, state.throughput_by_type


def current_types(state: PolicyState, nodes: NodesSeen) -> NDArray[np.int64]:
    """``(J,)`` type of the nodes that each job holds, ``NO_TYPE`` where it holds none."""
    types = np.full(state.n_jobs, NO_TYPE, np.int64)
    for job_index in np.flatnonzero(state.current).tolist():
        types[job_index] = nodes.node_type[nodes.held(job_index)[0]]
    return types


def check_objective(objective: Objective) -> None:
    """Raise ``InputError`` for an objective that cannot be posed on several types."""
    if isinstance(objective, OwnObjective):
        return
    if not isinstance(objective, SeparableObjective):
        raise _refusal(objective.spec)
    for term in objective.terms:
        if term.function not in _RATES:
            raise _refusal(str(term.part))


def _rates(state: PolicyState, by_type: NDArray[np.float64], objective: Objective) -> NDArray[np.float64]:
    """``V (J, T, K + 1)``, per second."""
    check_objective(objective)
    if not isinstance(objective, SeparableObjective):
        return _own(state, by_type)
    tables = [_RATES[term.function](state, by_type) for term in objective.terms]
    if len(tables) == 1:
        return objective.terms[0].weight * tables[0]
    is_read = np.arange(by_type.shape[2]) <= state.max_nodes[:, None, None]
    total_rates = np.zeros_like(by_type)
    for term, table in zip(objective.terms, tables, strict=True):
        largest = float(np.abs(table).max(where=is_read, initial=0.0))
        if largest > 0.0:
            total_rates += (term.weight / largest) * table
    return total_rates


def _throughput(state: PolicyState, by_type: NDArray[np.float64]) -> NDArray[np.float64]:
    return state.weight[:, None, None] * by_type


def _own(state: PolicyState, by_type: NDArray[np.float64]) -> NDArray[np.float64]:
    rates = _throughput(state, by_type)
    # without a curve of its own a job's objective is made from its throughput, on the first type or where it is
    is_read = np.arange(by_type.shape[2]) <= state.max_nodes[:, None, None]
    differs = ((state.objective[:, None] != rates) & is_read).any(axis=2).all(axis=1)
    if differs.any():
        job_index = int(np.argmax(differs))
        raise InputError(
            "a job has an objective curve of its own, which does not say what it is worth on which node type",
            row=f"job number {int(state.job[job_index])}, from 0",
            column="objective",
            value=OWN,
            expected="jobs without one, whose objective is their throughput",
            fix="choose --objective throughput or --objective speed-up",
        )
    return rates


def _speed_up(state: PolicyState, by_type: NDArray[np.float64]) -> NDArray[np.float64]:
    n_types = by_type.shape[1]
    first_rates = [first_node_rate(replace(state, throughput=by_type[:, type_index])) for type_index in range(n_types)]
    first_rate = np.max(first_rates, axis=0)
    shares = [in_units_of(by_type[:, type_index], first_rate) for type_index in range(n_types)]
    return _throughput(state, np.stack(shares, axis=1))


_RATES: dict[object, RatesByType] = {own: _own, throughput: _throughput, speed_up: _speed_up}


def _refusal(spec: str) -> InputError:
    return InputError(
        "the objective does not say what a job is worth on which node type",
        column="objective",
        value=spec,
        expected=f"with nodes of several types {', '.join(ON_TYPES)}, or a sum of them",
        fix="choose one of these, or nodes of one type",
    )


def typed_decision(state: PolicyState, forward_time: ForwardTime, objective: Objective, solver: Solver) -> Decision:
    """Types, counts and nodes of the exact solver; where it has no answer every job keeps what it has.

    Raises
    ------
    InputError
        The solver, the objective or the forward-looking time is one that knows nodes of one type only.
    """
    check_types(forward_time, objective, solver)
    t_fwd_s = forward_time.seconds(state)
    answer = TypedExactSolver().solve(typed_problem(state, objective, t_fwd_s))
    nodes, _ = types_of(state)
    types_before = current_types(state, nodes)
    counts, types = answer.solution.counts, answer.types
    if counts is None or types is None:
        counts, types = state.current.copy(), types_before
    forward_time.note_decision(state, counts)
    placement = Placement(place_jobs(nodes, types, counts), restart_s=_restart_s(state, types_before, types, counts))
    return Decision(counts, answer.solution, t_fwd_s, placement)


def _restart_s(
    state: PolicyState, types_before: NDArray[np.int64], types: NDArray[np.int64], counts: NDArray[np.int64]
) -> NDArray[np.float64] | None:
    """Return the remaining charge to jobs that move, in seconds of work at their new rates.

    A move costs a scale-down and a scale-up at the rate before (``TypedProblem``); the replay itself charges what the
    count tells: one of the two, or none where it stays the same.
    """
    moves = (types_before != types) & (counts > 0) & (state.current >= state.min_nodes)
    if not moves.any():
        return None
    _, by_type = types_of(state)
    one_a_second, scale_up_s, scale_down_s = np.ones(state.n_jobs), state.scale_up_cost_s, state.scale_down_cost_s
    charge_s = rescale_costs(one_a_second, state.current, counts, scale_up_s, scale_down_s)
    move_s = move_cost(scale_up_cost(one_a_second, scale_up_s), scale_down_cost(one_a_second, scale_down_s))
    job_index = np.arange(state.n_jobs)
    rate_before = state.throughput[job_index, state.current]
    rate_after = by_type[job_index, np.maximum(types, 0), counts]
    rest_s = np.where(moves, move_s - charge_s, 0.0)
    return rest_s * rate_before / np.where(moves & (rate_after > 0.0), rate_after, np.inf)


def check_types(forward_time: ForwardTime, objective: Objective, solver: Solver) -> None:
    """Raise ``InputError`` for what knows nodes of one type only."""
    check_objective(objective)
    if not isinstance(solver, ExactSolver) or solver.published_limit:
        raise InputError(
            f"the solver {solver.name!r} decides on nodes of one type",
            column="solver",
            value=solver.name,
            expected="the exact solver, with nodes of several types",
            fix="leave --solver out, or choose nodes of one type",
        )
    if isinstance(forward_time, AutoForwardTime):
        raise InputError(
            "the forward-looking time is learnt on nodes of one type",
            column="t_fwd_s",
            value="auto",
            expected="seconds, with nodes of several types",
            fix="give a number: --t-fwd 120",
        )
