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
        if (trivial := trivial_answer(model)) is not None:
            return trivial
        _refuse_what_is_not_whole(model)
        lower, upper = _whole_sides(model.column_lower, model.column_upper)
        row_sides = _whole_sides(model.row_lower, model.row_upper)
        if (lower > upper).any() or (row_sides[0] > row_sides[1]).any():
            return BackendAnswer(SolverStatus.INFEASIBLE, message="no whole number between two bounds, or two sides")
        step = _step(model, lower, upper)
        worth = np.rint(model.objective / step).astype(np.int64)
        whole_model = _build(model, (lower, upper), row_sides, worth)

        from ortools.sat.python import cp_model

        solver = cp_model.CpSolver()
        solver.parameters.max_time_in_seconds = options.time_limit_s
        solver.parameters.relative_gap_limit = options.relative_gap
        solver.parameters.absolute_gap_limit = 0.0
        solver.parameters.num_workers = options.threads
        solver.parameters.random_seed = options.seed
        stopwatch.start_solving()
        status_word = solver.status_name(solver.solve(whole_model))
        status = STATUSES.get(status_word, SolverStatus.UNKNOWN)
        column_values, objective, bound = None, math.nan, math.inf
        if status in (SolverStatus.OPTIMAL, SolverStatus.FEASIBLE):
            column_values = np.array(solver.response_proto.solution, dtype=np.float64)
            objective = float(model.objective @ column_values) + model.objective_constant
            claimed_bound = solver.best_objective_bound * step + model.objective_constant
            reach = np.maximum(np.abs(lower), np.abs(upper)).astype(np.float64)
            bound = claimed_bound + float(np.abs(model.objective - worth * step) @ reach)
        return stopwatch.answer(status, column_values, objective, bound, f"CP-SAT says {status_word}")


Sides = tuple[NDArray[np.int64], NDArray[np.int64]]


def _build(model: LinearModel, columns: Sides, row_sides: Sides, worth: NDArray[np.int64]) -> Any:
    """Fill CP-SAT's own message, row by row in bulk."""
    from ortools.sat.python import cp_model

    built_model = cp_model.CpModel()
    add_variable = built_model.proto.variables.add
    for sides in np.stack(columns, axis=1).tolist():
        add_variable().domain.extend(sides)
    matrix = by_row(model)
    start, index = matrix.start.tolist(), matrix.index.tolist()
    value = np.rint(matrix.value).astype(np.int64).tolist()
    row_lower, row_upper = (side.tolist() for side in row_sides)
    for row_index in range(model.n_rows):
        entries = slice(start[row_index], start[row_index + 1])
        linear = built_model.proto.constraints.add().linear
        linear.vars.extend(index[entries])
        linear.coeffs.extend(value[entries])
        linear.domain.extend([row_lower[row_index], row_upper[row_index]])
    has_worth = np.flatnonzero(worth)
    objective = built_model.proto.objective  # minimised; the factor tells CP-SAT that its negative is what is meant
    objective.vars.extend(has_worth.tolist())
    objective.coeffs.extend((-worth[has_worth]).tolist())
    objective.scaling_factor = -1.0
    if model.start is not None:
        hint = built_model.proto.solution_hint
        hint.vars.extend(range(model.n_columns))
        hint.values.extend(np.rint(model.start).astype(np.int64).tolist())
    return built_model


def _refuse_what_is_not_whole(model: LinearModel) -> None:
    """Raise ``ModelRefusedError`` for a model that CP-SAT cannot express."""
    advice = "take a formulation of whole numbers (choices_reduced), or another back end (highs, cbc)"
    if not model.is_integer.all():
        name = model.column_names[int(np.argmin(model.is_integer))]
        raise ModelRefusedError(f"cp-sat takes integer columns only, and {name} is continuous; {advice}")
    fraction = np.abs(model.entry_value - np.rint(model.entry_value)) > TOLERANCE
    if fraction.any():
        entry = int(np.argmax(fraction))
        raise ModelRefusedError(
            f"cp-sat takes whole coefficients only, and row {model.row_names[model.entry_row[entry]]} has "
            f"{model.entry_value[entry]:.9g} times {model.column_names[model.entry_column[entry]]}; {advice}"
        )
    reach = np.maximum(np.abs(model.column_lower), np.abs(model.column_upper))
    endless = ~(reach < LARGEST)
    if endless.any():
        column = int(np.argmax(endless))
        raise ModelRefusedError(
            f"cp-sat takes finite bounds only, and {model.column_names[column]} goes from "
            f"{model.column_lower[column]:g} to {model.column_upper[column]:g}; {advice}"
        )
    sums = np.bincount(model.entry_row, np.abs(model.entry_value) * reach[model.entry_column], minlength=model.n_rows)
    if (sums >= LARGEST).any():
        raise ModelRefusedError(
            f"the sum of row {model.row_names[int(np.argmax(sums))]} could exceed the 64 bits that cp-sat counts in; "
            f"{advice}"
        )


def _whole_sides(lower: NDArray[np.float64], upper: NDArray[np.float64]) -> Sides:
    """Return the whole numbers between two sides; infinite sides become as large as CP-SAT can count."""
    lowest = np.ceil(np.clip(lower, -LARGEST, LARGEST) - TOLERANCE).astype(np.int64)
    highest = np.floor(np.clip(upper, -LARGEST, LARGEST) + TOLERANCE).astype(np.int64)
    return lowest, highest


def _step(model: LinearModel, lower: NDArray[np.int64], upper: NDArray[np.int64]) -> float:
    """Return the worth of one unit of CP-SAT's objective: the largest coefficient over a power of two."""
    scale = objective_scale(model)
    reach = np.maximum(np.abs(lower), np.abs(upper)).astype(np.float64)
    total = float(np.abs(model.objective / scale) @ reach)
    steps = min(STEPS, LARGEST / max(total, 1.0))
    return scale / 2.0 ** math.floor(math.log2(steps))
