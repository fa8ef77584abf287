"""OR-Tools CP-SAT, used directly."""

from __future__ import annotations

import math
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.backends.arrays import TOLERANCE, Stopwatch, refuse_sets, trivial_answer
from bfreplay.milp.backends.backend import (
    BackendAnswer,
    Capabilities,
    ModelRefusedError,
    SolveOptions,
    objective_scale,
    refuse_beside,
    unmet,
)
from bfreplay.milp.model import LinearModel, by_row
from bfreplay.milp.solution import SolverStatus

STATUSES = {
    "OPTIMAL": SolverStatus.OPTIMAL,
    "FEASIBLE": SolverStatus.FEASIBLE,
    "INFEASIBLE": SolverStatus.INFEASIBLE,
    "MODEL_INVALID": SolverStatus.ERROR,
    "UNKNOWN": SolverStatus.NO_SOLUTION,  # CP-SAT's word for a limit without an incumbent
}
"""CP-SAT's status names; every other one is ``UNKNOWN``."""

STEPS = 2.0**32
"""The objective is posed in whole multiples of its largest coefficient / STEPS (2.3e-10 of it), or coarser where the
sum over all columns could leave what CP-SAT can count."""

LARGEST = 2.0**60
"""Largest magnitude that bounds, coefficients and sums of a row may reach: CP-SAT counts in 64 bits."""


class CpSat:
    """CP-SAT in this process, for models that are whole throughout: columns, coefficients, finite bounds.

    Its own scaling of real objectives allows errors of 1e-6, which is all that re-verification forgives, so the
    objective is rounded here, to whole multiples of a 2^-32nd of its largest coefficient. What is reported is the true
    objective of the answer, and a bound that allows for all that rounding may have hidden.
    """

    name = "cp-sat"
    capabilities = Capabilities(sos=False, continuous=False, warm_start=True, licence="Apache-2.0")

    def available(self) -> str:
        """Return which OR-Tools to install; empty for none."""
        return unmet("ortools", ">=9.12.4544,<10", why="others are untried", fix="pip install 'bfreplay[cp-sat]'")

    def version(self) -> str:
        """Return the version, as ``"CP-SAT (ortools 9.15.6755)"``."""
        return f"CP-SAT (ortools {version('ortools')})"

    def solve(self, model: LinearModel, options: SolveOptions) -> BackendAnswer:
        """Build the model in CP-SAT and maximise."""
        stopwatch = Stopwatch()
        refuse_beside("OR-Tools", ("mip.cbc", "highspy"))
        refuse_sets(model, self.name)
        if (known := trivial_answer(model)) is not None:
            return known
        _refuse_what_is_not_whole(model)
        lower, upper = _whole_sides(model.column_lower, model.column_upper)
        rows = _whole_sides(model.row_lower, model.row_upper)
        if (lower > upper).any() or (rows[0] > rows[1]).any():
            return BackendAnswer(SolverStatus.INFEASIBLE, message="no whole number between two bounds, or two sides")
        step = _step(model, lower, upper)
        worth = np.rint(model.objective / step).astype(np.int64)
        posed = _build(model, (lower, upper), rows, worth)

        from ortools.sat.python import cp_model

        solver = cp_model.CpSolver()
        solver.parameters.max_time_in_seconds = options.time_limit_s
        solver.parameters.relative_gap_limit = options.relative_gap
        solver.parameters.absolute_gap_limit = 0.0
        solver.parameters.num_workers = options.threads
        solver.parameters.random_seed = options.seed
        stopwatch.start_solving()
        said = solver.status_name(solver.solve(posed))
        status = STATUSES.get(said, SolverStatus.UNKNOWN)
        x, objective, bound = None, math.nan, math.inf
        if status in (SolverStatus.OPTIMAL, SolverStatus.FEASIBLE):
            x = np.array(solver.response_proto.solution, dtype=np.float64)
            objective = float(model.objective @ x) + model.objective_constant
            claimed = solver.best_objective_bound * step + model.objective_constant
            reach = np.maximum(np.abs(lower), np.abs(upper)).astype(np.float64)
            bound = claimed + float(np.abs(model.objective - worth * step) @ reach)
        return stopwatch.answer(status, x, objective, bound, f"CP-SAT says {said}")


Sides = tuple[NDArray[np.int64], NDArray[np.int64]]


def _build(model: LinearModel, columns: Sides, rows: Sides, worth: NDArray[np.int64]) -> Any:
    """Fill CP-SAT's own message, row by row in bulk."""
    from ortools.sat.python import cp_model

    posed = cp_model.CpModel()
    add_variable = posed.proto.variables.add
    for sides in np.stack(columns, axis=1).tolist():
        add_variable().domain.extend(sides)
    matrix = by_row(model)
    start, index = matrix.start.tolist(), matrix.index.tolist()
    value = np.rint(matrix.value).astype(np.int64).tolist()
    row_lower, row_upper = (side.tolist() for side in rows)
    for r in range(model.n_rows):
        here = slice(start[r], start[r + 1])
        linear = posed.proto.constraints.add().linear
        linear.vars.extend(index[here])
        linear.coeffs.extend(value[here])
        linear.domain.extend([row_lower[r], row_upper[r]])
    used = np.flatnonzero(worth)
    objective = posed.proto.objective  # minimised; the factor tells CP-SAT that its negative is what is meant
    objective.vars.extend(used.tolist())
    objective.coeffs.extend((-worth[used]).tolist())
    objective.scaling_factor = -1.0
    if model.start is not None:
        hint = posed.proto.solution_hint
        hint.vars.extend(range(model.n_columns))
        hint.values.extend(np.rint(model.start).astype(np.int64).tolist())
    return posed


def _refuse_what_is_not_whole(model: LinearModel) -> None:
    """Raise ``ModelRefusedError`` for a model that CP-SAT cannot express."""
    advice = "take a formulation of whole numbers (choices_reduced), or another back end (highs, cbc)"
    if not model.is_integer.all():
        name = model.column_names[int(np.argmin(model.is_integer))]
        raise ModelRefusedError(f"cp-sat takes integer columns only, and {name} is continuous; {advice}")
    fraction = np.abs(model.entry_value - np.rint(model.entry_value)) > TOLERANCE
    if fraction.any():
        e = int(np.argmax(fraction))
        raise ModelRefusedError(
            f"cp-sat takes whole coefficients only, and row {model.row_names[model.entry_row[e]]} has "
            f"{model.entry_value[e]:.9g} times {model.column_names[model.entry_column[e]]}; {advice}"
        )
    reach = np.maximum(np.abs(model.column_lower), np.abs(model.column_upper))
    endless = ~(reach < LARGEST)
    if endless.any():
        c = int(np.argmax(endless))
        raise ModelRefusedError(
            f"cp-sat takes finite bounds only, and {model.column_names[c]} goes from {model.column_lower[c]:g} to "
            f"{model.column_upper[c]:g}; {advice}"
        )
    sums = np.bincount(model.entry_row, np.abs(model.entry_value) * reach[model.entry_column], minlength=model.n_rows)
    if (sums >= LARGEST).any():
        raise ModelRefusedError(
            f"the sum of row {model.row_names[int(np.argmax(sums))]} could exceed the 64 bits that cp-sat counts in; "
            f"{advice}"
        )


def _whole_sides(lower: NDArray[np.float64], upper: NDArray[np.float64]) -> Sides:
    """Return the whole numbers between two sides; infinite sides become as large as CP-SAT can count."""
    up = np.ceil(np.clip(lower, -LARGEST, LARGEST) - TOLERANCE).astype(np.int64)
    down = np.floor(np.clip(upper, -LARGEST, LARGEST) + TOLERANCE).astype(np.int64)
    return up, down


def _step(model: LinearModel, lower: NDArray[np.int64], upper: NDArray[np.int64]) -> float:
    """Return the worth of one unit of CP-SAT's objective: the largest coefficient over a power of two."""
    scale = objective_scale(model)
    reach = np.maximum(np.abs(lower), np.abs(upper)).astype(np.float64)
    total = float(np.abs(model.objective / scale) @ reach)
    steps = min(STEPS, LARGEST / max(total, 1.0))
    return scale / 2.0 ** math.floor(math.log2(steps))
