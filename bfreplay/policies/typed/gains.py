"""What jobs are worth on nodes of each type: the objectives that can be posed on several types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bfreplay.errors import InputError
from bfreplay.milp.rescale_cost import charged_rates, growth_cost, shrink_cost
from bfreplay.milp.typed import NO_TYPE, TypedProblem
from bfreplay.policies.objectives.curves import first_node_rate, in_units_of
from bfreplay.policies.objectives.objective import Objective
from bfreplay.policies.objectives.own import OWN, OwnObjective, own
from bfreplay.policies.objectives.separable import SeparableObjective
from bfreplay.policies.objectives.speed_up import speed_up
from bfreplay.policies.objectives.throughput import throughput
from bfreplay.policies.policy import NodesSeen, PolicyState

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
    kinds = current_types(state, nodes)
    held = np.arange(state.n_jobs), np.maximum(kinds, 0), state.current
    given_up = charged_rates(np.maximum(rates[held], 0.0), state.current, state.min_nodes)
    return TypedProblem(
        current=np.ascontiguousarray(state.current),
        current_type=kinds,
        min_nodes=np.ascontiguousarray(state.min_nodes),
        max_nodes=np.ascontiguousarray(state.max_nodes),
        gain=t_fwd_s * rates,
        scale_up_loss=growth_cost(given_up, state.scale_up_cost_s),
        scale_down_loss=shrink_cost(given_up, state.scale_down_cost_s),
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
    kinds = np.full(state.n_jobs, NO_TYPE, np.int64)
    for j in np.flatnonzero(state.current).tolist():
        kinds[j] = nodes.node_type[nodes.held(j)[0]]
    return kinds


def check_objective(objective: Objective) -> None:
    """Raise ``InputError`` for an objective that cannot be posed on several types."""
    if isinstance(objective, OwnObjective):
        return
    if not isinstance(objective, SeparableObjective):
        raise _refused(objective.spec)
    for term in objective.terms:
        if term.function not in _RATES:
            raise _refused(str(term.part))


def _rates(state: PolicyState, by_type: NDArray[np.float64], objective: Objective) -> NDArray[np.float64]:
    """``V (J, T, K + 1)``, per second."""
    check_objective(objective)
    if not isinstance(objective, SeparableObjective):
        return _own(state, by_type)
    tables = [_RATES[term.function](state, by_type) for term in objective.terms]
    if len(tables) == 1:
        return objective.terms[0].weight * tables[0]
    is_read = np.arange(by_type.shape[2]) <= state.max_nodes[:, None, None]
    total = np.zeros_like(by_type)
    for term, table in zip(objective.terms, tables, strict=True):
        largest = float(np.abs(table).max(where=is_read, initial=0.0))
        if largest > 0.0:
            total += (term.weight / largest) * table
    return total


def _throughput(state: PolicyState, by_type: NDArray[np.float64]) -> NDArray[np.float64]:
    rates: NDArray[np.float64] = state.weight[:, None, None] * by_type
    return rates


def _own(state: PolicyState, by_type: NDArray[np.float64]) -> NDArray[np.float64]:
    rates = _throughput(state, by_type)
    # without a curve of its own a job's objective is made from its throughput, on the first type or where it is
    is_read = np.arange(by_type.shape[2]) <= state.max_nodes[:, None, None]
    differs = ((state.objective[:, None] != rates) & is_read).any(axis=2).all(axis=1)
    if differs.any():
        j = int(np.argmax(differs))
        raise InputError(
            "a job has an objective curve of its own, which does not say what it is worth on which node type",
            row=f"job number {int(state.job[j])}, from 0", column="objective", value=OWN,
            expected="jobs without one, whose objective is their throughput",
            fix="choose --objective throughput or --objective speed-up",
        )  # fmt: skip
    return rates


def _speed_up(state: PolicyState, by_type: NDArray[np.float64]) -> NDArray[np.float64]:
    n_types = by_type.shape[1]
    first = [first_node_rate(replace(state, throughput=by_type[:, t])) for t in range(n_types)]
    unit = np.max(first, axis=0)
    shares = [in_units_of(by_type[:, t], unit) for t in range(n_types)]
    return _throughput(state, np.stack(shares, axis=1))


_RATES: dict[object, RatesByType] = {own: _own, throughput: _throughput, speed_up: _speed_up}


def _refused(spec: str) -> InputError:
    return InputError(
        "the objective does not say what a job is worth on which node type", column="objective", value=spec,
        expected=f"with nodes of several types {', '.join(ON_TYPES)}, or a sum of them",
        fix="choose one of these, or nodes of one type",
    )  # fmt: skip
