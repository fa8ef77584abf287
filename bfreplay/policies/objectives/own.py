"""``OwnObjective``: BFTrainer's objective by itself, posed and solved in one call of compiled code.

From one decision to the next most jobs keep their nodes, and so what they are worth at each count. Their rows of the
table, with its concave hulls, are kept; the others are made anew. With many idle nodes that takes a third less time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled, copy_into
from bfreplay.milp.exact.relaxation import Hulls, concave_hulls
from bfreplay.milp.exact.solver import (
    OVERFLOW,
    PROOF_TOLERANCE,
    ExactSolver,
    Optimum,
    is_sound,
    optimum_on,
)
from bfreplay.milp.problem import AllocationProblem, Charges, charge, problem_with_charges
from bfreplay.milp.solution import Solution
from bfreplay.policies.names import OWN
from bfreplay.policies.objectives.objective import horizon_s, problem_with_costs
from bfreplay.policies.state import PolicyState


class OwnObjective:
    """``own`` by itself, the default: its numbers were checked when the jobs came in, and are not checked again."""

    spec = OWN

    def __init__(self) -> None:
        self._rows = _Rows.of(0, 0)

    def problem(self, state: PolicyState, t_fwd_s: float) -> AllocationProblem:
        """``gain_j(n) = t_fwd_s * O_j(n)``.

        While it rescales, a job gives up what it makes now, ``r_j = O_j(current_j)``, or nothing if it runs on fewer
        than ``min_nodes``: so a start from zero is free.
        """
        if state.costs is not None:
            return problem_with_costs(state, horizon_s(state, t_fwd_s) * state.objective, state.objective)
        gain, charges = _pose(*_arguments(state, t_fwd_s))
        return problem_with_charges(state.current, state.min_nodes, state.max_nodes, gain, charges, state.n_idle)

    def optimum(self, state: PolicyState, t_fwd_s: float, solver: ExactSolver) -> Solution:
        """Return ``solver.solve(self.problem(state, t_fwd_s))`` in one call of compiled code: twice as fast."""
        if state.costs is not None:
            return solver.solve(self.problem(state, t_fwd_s))
        rows = self._rows
        if rows.points.shape != state.objective.shape:
            rows = self._rows = _Rows.of(*state.objective.shape)
        return solver.answer_by(_optimum, *_arguments(state, t_fwd_s), PROOF_TOLERANCE, *rows)

    def __reduce__(self) -> tuple[type[OwnObjective], tuple[()]]:
        """Copies make their rows anew."""
        return type(self), ()

    def save_state(self) -> None:
        """Save nothing: the rows can be made anew."""

    def restore_state(self, _: None) -> None:
        """Make all rows anew."""
        self._rows = _Rows.of(0, 0)

    def describe(self) -> dict[str, object]:
        """It has no parameter."""
        return {"spec": self.spec, "terms": [{"name": OWN, "weight": 1.0, "parameters": {}}]}


_MADE_OF = np.dtype(
    [
        ("current", np.int64),
        ("min_nodes", np.int64),
        ("max_nodes", np.int64),
        ("up_s", np.float64),
        ("down_s", np.float64),
        ("t_fwd_s", np.float64),
        ("n_vertices", np.int64),  # of its hull
        ("is_sound", np.bool_),
    ],
    align=True,
)
"""What the row of a job is made of, beside its rate, and what is known of the row."""

_RATE, _VALUE, _WORTH, _SLOPE = range(4)


class _Rows(NamedTuple):
    """Rows of J jobs in the table of the last decision with K or more idle nodes, and their hulls."""

    made_of: NDArray[np.void]  # (J,) of _MADE_OF
    tables: NDArray[np.float64]  # (4, J, K + 1): rate, value; worth and slope at the vertices of each hull
    points: NDArray[np.int64]  # (J, K + 1), vertices

    @classmethod
    def of(cls, n_jobs: int, width: int) -> _Rows:
        """Rows that are all to be made."""
        row_inputs = np.zeros(n_jobs, _MADE_OF)
        row_inputs["current"] = -1
        return cls(row_inputs, np.zeros((4, n_jobs, width)), np.zeros((n_jobs, width), np.int64))


def _arguments(state: PolicyState, t_fwd_s: float) -> tuple[Any, ...]:
    """Return the arguments of ``_pose``."""
    return (
        state.objective,
        state.current,
        state.min_nodes,
        state.max_nodes,
        state.scale_up_cost_s,
        state.scale_down_cost_s,
        float(t_fwd_s),
        state.n_idle,
    )


@compiled
def _pose(
    rate: NDArray[np.float64],
    current: NDArray[np.int64],
    min_nodes: NDArray[np.int64],
    max_nodes: NDArray[np.int64],
    up_s: NDArray[np.float64],
    down_s: NDArray[np.float64],
    t_fwd_s: float,
    n_idle: int,
) -> tuple[NDArray[np.float64], Charges]:
    """Return (gains, charges)."""
    gain = t_fwd_s * rate
    rate_now = np.empty(current.shape[0], np.float64)
    for job in range(current.shape[0]):
        rate_now[job] = rate[job, current[job]]
    return gain, charge(current, min_nodes, max_nodes, gain, rate_now, up_s, down_s, n_idle)


@compiled
def _optimum(
    rate: NDArray[np.float64],
    current: NDArray[np.int64],
    min_nodes: NDArray[np.int64],
    max_nodes: NDArray[np.int64],
    up_s: NDArray[np.float64],
    down_s: NDArray[np.float64],
    t_fwd_s: float,
    n_idle: int,
    tolerance: float,
    row_inputs: NDArray[np.void],
    tables: NDArray[np.float64],
    points: NDArray[np.int64],
) -> Optimum:
    """Return ``optimal_counts`` of the decision, from the rows of the last one; those that differ are made anew."""
    n_jobs, width = rate.shape
    is_kept = n_idle >= width - 1  # else what a job is worth depends on how far it can grow: mostly all rows differ
    most_nodes_held = n_idle
    stale_rows = np.empty(n_jobs, np.int64)
    n_stale = 0
    for job in range(n_jobs):
        most_nodes_held = max(most_nodes_held, current[job])
        differs = not is_kept
        if is_kept:
            inputs = row_inputs[job]
            differs = (
                inputs["current"] != current[job]
                or inputs["min_nodes"] != min_nodes[job]
                or inputs["max_nodes"] != max_nodes[job]
                or inputs["up_s"] != up_s[job]
                or inputs["down_s"] != down_s[job]
                or inputs["t_fwd_s"] != t_fwd_s
            )
            for count in range(width):  # all of them: the compiler compares several at once
                differs |= rate[job, count] != tables[_RATE, job, count]
        if differs:
            stale_rows[n_stale] = job
            n_stale += 1
    # each function below is called at one place: numba compiles a copy of its code for every place
    value_table = tables[_VALUE]
    start = np.arange(n_jobs) * width
    hulls = Hulls(points.ravel(), tables[_WORTH].ravel(), tables[_SLOPE].ravel(), start, start.copy())
    all_sound = True
    if n_stale > 0:
        new_rows = stale_rows[:n_stale]
        n_columns, pool = (width, width) if is_kept else (most_nodes_held + 1, n_idle)
        bounds_of_jobs = current[new_rows], min_nodes[new_rows], max_nodes[new_rows]
        new_rates = rate[:, :n_columns][new_rows]
        new_values = _pose(new_rates, *bounds_of_jobs, up_s[new_rows], down_s[new_rows], t_fwd_s, pool)[1].value
        new_hulls = concave_hulls(new_values, pool)
        if is_kept:
            _keep(new_rows, new_values, new_hulls, row_inputs, tables, points)
            for job in new_rows:
                inputs = row_inputs[job]
                inputs["current"] = current[job]
                inputs["min_nodes"], inputs["max_nodes"] = min_nodes[job], max_nodes[job]
                inputs["up_s"], inputs["down_s"], inputs["t_fwd_s"] = up_s[job], down_s[job], t_fwd_s
                copy_into(tables[_RATE, job], rate[job])
        else:
            value_table, hulls, all_sound = new_values, new_hulls, is_sound(new_values)
    if is_kept:
        for job in range(n_jobs):
            all_sound &= row_inputs[job]["is_sound"]
            hulls.stop[job] += row_inputs[job]["n_vertices"]
    if not all_sound:
        return np.zeros(n_jobs, np.int64), np.nan, np.inf, OVERFLOW
    return optimum_on(hulls, value_table, n_idle, tolerance)


@compiled
def _keep(
    rows: NDArray[np.int64],
    value: NDArray[np.float64],
    hulls: Hulls,
    row_inputs: NDArray[np.void],
    tables: NDArray[np.float64],
    points: NDArray[np.int64],
) -> None:
    """Keep what was made of these rows."""
    for position in range(rows.shape[0]):
        job, hull_begin, hull_end = rows[position], hulls.start[position], hulls.stop[position]
        row_inputs[job]["current"] = -1  # until the row is whole
        row_inputs[job]["n_vertices"] = hull_end - hull_begin
        row_inputs[job]["is_sound"] = is_sound(value[position : position + 1])
        copy_into(tables[_VALUE, job], value[position])
        copy_into(points[job], hulls.points[hull_begin:hull_end])
        copy_into(tables[_WORTH, job], hulls.worth[hull_begin:hull_end])
        copy_into(tables[_SLOPE, job], hulls.slope[hull_begin:hull_end])
