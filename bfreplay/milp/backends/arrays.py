"""Helpers that back ends share: times, one-sided rows, answers that need no solver, the scale of the objective."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.backends.backend import BackendAnswer, ModelRefusedError, SolveOptions
from bfreplay.milp.model import LinearModel
from bfreplay.milp.solution import SolverStatus

TOLERANCE = 1e-9
"""Of integrality, rows and reduced costs. With the 1e-6 that is usual, CBC called 3 of 5,500 small ``published`` models
(non-concave curves) optimal at a wrong value; with this none in 4,000."""


class Stopwatch:
    """Stopwatch for an answer: building from the start on, then solving."""

    def __init__(self) -> None:
        self._started = self._built = time.perf_counter()

    def start_solving(self) -> None:
        """Note that the model is built."""
        self._built = time.perf_counter()

    @property
    def solve_s(self) -> float:
        """Seconds since the model was built."""
        return time.perf_counter() - self._built

    def answer(
        self, status: SolverStatus, x: NDArray[np.float64] | None, objective: float, bound: float, message: str
    ) -> BackendAnswer:
        """Return the answer of a solver that is done now."""
        return BackendAnswer(status, x, objective, bound, message, self._built - self._started, self.solve_s)


def with_one_sided_rows(model: LinearModel) -> tuple[LinearModel, NDArray[np.str_]]:
    """Return the same model in rows of one sense each, for solvers that know no ranges, and these senses.

    ``"="``, or ``">"`` and ``"<"``: a row with two different finite sides becomes two neighbours, one without any is
    left out. Rows keep their order.
    The side of a row is its ``row_upper``, and its ``row_lower`` where the sense is ``">"``.
    """
    equal = model.row_lower == model.row_upper
    below = np.isfinite(model.row_upper)
    above = np.isfinite(model.row_lower) & ~equal
    copies = below.astype(np.int64) + above
    old = np.repeat(np.arange(model.n_rows), copies)
    first = np.cumsum(copies) - copies
    second = np.arange(old.shape[0]) > first[old]
    is_above = above[old] & ~second
    sense = np.where(equal[old], "=", np.where(is_above, ">", "<"))

    again = copies[model.entry_row] == 2
    once = copies[model.entry_row] > 0
    split = replace(
        model,
        row_lower=np.where(sense == "<", -np.inf, model.row_lower[old]),
        row_upper=np.where(sense == ">", np.inf, model.row_upper[old]),
        row_names=tuple(model.row_names[r] for r in old.tolist()),
        entry_row=np.concatenate((first[model.entry_row[once]], first[model.entry_row[again]] + 1)),
        entry_column=np.concatenate((model.entry_column[once], model.entry_column[again])),
        entry_value=np.concatenate((model.entry_value[once], model.entry_value[again])),
    )
    return split, sense


def trivial_answer(model: LinearModel) -> BackendAnswer | None:
    """Return the answer to a model that needs no solver, or on which solvers differ: contradictions, no columns.

    ``None`` where there is something to solve.
    """
    empty = np.bincount(model.entry_row, minlength=model.n_rows) == 0
    excludes_0 = (model.row_lower > 0) | (model.row_upper < 0)
    contradictions = (
        (empty & excludes_0, model.row_names, "row {} has no entries and cannot hold"),
        (_impossible(model.row_lower, model.row_upper), model.row_names, "the sides of row {} exclude each other"),
        (_impossible(model.column_lower, model.column_upper), model.column_names, "column {} has no value"),
    )
    for wrong, names, said in contradictions:
        if wrong.any():
            return BackendAnswer(SolverStatus.INFEASIBLE, message=said.format(names[int(np.argmax(wrong))]))
    if model.n_columns == 0:
        worth = float(model.objective_constant)
        return BackendAnswer(SolverStatus.OPTIMAL, np.zeros(0), worth, worth, "the model has no columns")
    return None


def _impossible(lower: NDArray[np.float64], upper: NDArray[np.float64]) -> NDArray[np.bool_]:
    impossible: NDArray[np.bool_] = (lower > upper) | (lower == np.inf) | (upper == -np.inf)
    return impossible


def unscale(reported: float | None, model: LinearModel, scale: float, absent: float) -> float:
    """Return the reported value of the scaled objective in the model's own; ``absent`` where it reports no number.

    Solvers report infinity as 1e20, 1e30, 1e50, 1e100 or the largest number there is; no scaled objective is as large.
    """
    if reported is None or not math.isfinite(reported) or abs(reported) >= 1e20:
        return absent
    return float(reported) * scale + model.objective_constant


def refuse_sets(model: LinearModel, name: str) -> None:
    """Raise ``ModelRefusedError`` for a model with special ordered sets."""
    if model.sets:
        raise ModelRefusedError(
            f"{name} takes no special ordered sets, and the model has {len(model.sets)}; take a formulation without "
            "(choices_reduced), have the sets reformulated by binaries, or take a back end that takes them (cbc)"
        )


def resolve_unbounded(
    solve: Callable[[LinearModel, SolveOptions], BackendAnswer], model: LinearModel, options: SolveOptions
) -> SolverStatus:
    """Return ``UNBOUNDED`` or ``INFEASIBLE`` for a model that is one of the two, by solving it without an objective."""
    nothing = replace(model, objective=np.zeros(model.n_columns), objective_constant=0.0)
    answer = solve(nothing, options)
    if answer.x is not None:
        return SolverStatus.UNBOUNDED
    return SolverStatus.INFEASIBLE if answer.solver_status is SolverStatus.INFEASIBLE else SolverStatus.UNKNOWN
