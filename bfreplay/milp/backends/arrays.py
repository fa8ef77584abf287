"""Helpers that back ends share: the frame of a solve, rows and sets in the form a solver takes, trivial answers."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bfreplay.errors import InputError
from bfreplay.milp.backends.backend import (
    BackendAnswer,
    Capabilities,
    ModelRefusedError,
    SolveOptions,
    objective_scale,
)
from bfreplay.milp.model import MODEL_ARRAYS, Columns, LinearModel, Rows
from bfreplay.milp.solution import SolverStatus

TOLERANCE = 1e-9
"""Of integrality, rows and reduced costs. With the 1e-6 that is usual, CBC called 3 of 5,500 small ``published`` models
(non-concave curves) optimal at a wrong value; with this none in 4,000."""


ANSWERED = (SolverStatus.OPTIMAL, SolverStatus.FEASIBLE)
"""Statuses with column values."""

WITH_BOUND = (*ANSWERED, SolverStatus.NO_SOLUTION)
"""Statuses with a bound."""


@dataclass(frozen=True, slots=True)
class Report:
    """Result of a solve as the solver reports it.

    Parameters
    ----------
    word
        The solver's own word for its status.
    values, objective, bound
        Functions that return column values, objective and bound; each is called only where the status gives it a
        meaning. The last two are of the scaled objective.
    has_incumbent
        After a limit: there is an answer.
    bounded
        Statuses with which the bound holds.
    """

    word: str
    values: Callable[[], NDArray[np.float64]]
    objective: Callable[[], float | None]
    bound: Callable[[], float | None]
    has_incumbent: bool = False
    bounded: tuple[SolverStatus, ...] = WITH_BOUND


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


class ScaledBackend(ABC):
    """Back end in this process that divides the objective by its largest coefficient before its solver sees it.

    Attributes
    ----------
    title
        Name of the solver.
    statuses
        Meaning of its words, ``None`` for infeasible or unbounded; every other one is ``UNKNOWN``.
    """

    name: str
    title: str
    capabilities: Capabilities
    statuses: ClassVar[Mapping[str, SolverStatus | None]]

    @abstractmethod
    def maximise(self, model: LinearModel, scale: float, options: SolveOptions, stopwatch: Stopwatch) -> Report:
        """Build the model in the solver, with its objective over ``scale``, note the time, and solve it."""

    def solve(self, model: LinearModel, options: SolveOptions) -> BackendAnswer:
        """Build the model in the solver and maximise."""
        stopwatch = Stopwatch()
        if not self.capabilities.sos:
            refuse_sets(model, self.name)
        if (trivial := trivial_answer(model)) is not None:
            return trivial
        scale = objective_scale(model)
        report = self.maximise(model, scale, options, stopwatch)
        message = f"{self.title} says {report.word}"
        status = self.statuses.get(report.word, SolverStatus.UNKNOWN)
        if status is None:
            return BackendAnswer(resolve_unbounded(self.solve, model, options), message=message)
        if status is SolverStatus.NO_SOLUTION and report.has_incumbent:
            status = SolverStatus.FEASIBLE
        column_values, objective, bound = None, math.nan, math.inf
        if status in ANSWERED:
            column_values = report.values()
            objective = unscale(report.objective(), model, scale, math.nan)
        if status in report.bounded:
            bound = unscale(report.bound(), model, scale, math.inf)
        return stopwatch.answer(status, column_values, objective, bound, message)


def with_one_sided_rows(model: LinearModel) -> tuple[LinearModel, NDArray[np.str_]]:
    """Return the same model in rows of one sense each, for solvers that know no ranges, and these senses.

    ``"="``, or ``">"`` and ``"<"``: a row with two different finite sides becomes two neighbours, one without any is
    left out. Rows keep their order.
    The side of a row is its ``row_upper``, and its ``row_lower`` where the sense is ``">"``.
    """
    equal = model.row_lower == model.row_upper
    has_upper = np.isfinite(model.row_upper)
    has_lower = np.isfinite(model.row_lower) & ~equal
    copies = has_upper.astype(np.int64) + has_lower
    old_row = np.repeat(np.arange(model.n_rows), copies)
    first = np.cumsum(copies) - copies
    second = np.arange(old_row.shape[0]) > first[old_row]
    is_above = has_lower[old_row] & ~second
    sense = np.where(equal[old_row], "=", np.where(is_above, ">", "<"))

    is_twice = copies[model.entry_row] == 2
    is_kept = copies[model.entry_row] > 0
    split = replace(
        model,
        row_lower=np.where(sense == "<", -np.inf, model.row_lower[old_row]),
        row_upper=np.where(sense == ">", np.inf, model.row_upper[old_row]),
        row_names=tuple(model.row_names[row_index] for row_index in old_row.tolist()),
        entry_row=np.concatenate((first[model.entry_row[is_kept]], first[model.entry_row[is_twice]] + 1)),
        entry_column=np.concatenate((model.entry_column[is_kept], model.entry_column[is_twice])),
        entry_value=np.concatenate((model.entry_value[is_kept], model.entry_value[is_twice])),
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
    for is_wrong, names, problem in contradictions:
        if is_wrong.any():
            return BackendAnswer(SolverStatus.INFEASIBLE, message=problem.format(names[int(np.argmax(is_wrong))]))
    if model.n_columns == 0:
        constant = float(model.objective_constant)
        return BackendAnswer(SolverStatus.OPTIMAL, np.zeros(0), constant, constant, "the model has no columns")
    return None


def _impossible(lower: NDArray[np.float64], upper: NDArray[np.float64]) -> NDArray[np.bool_]:
    impossible: NDArray[np.bool_] = (lower > upper) | (lower == np.inf) | (upper == -np.inf)
    return impossible


def unscale(value: float | None, model: LinearModel, scale: float, absent: float) -> float:
    """Return the reported value of the scaled objective in the model's own; ``absent`` where it reports no number.

    Solvers report infinity as 1e20, 1e30, 1e50, 1e100 or the largest number there is; no scaled objective is as large.
    """
    if value is None or not math.isfinite(value) or abs(value) >= 1e20:
        return absent
    return float(value) * scale + model.objective_constant


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
    without_objective = replace(model, objective=np.zeros(model.n_columns), objective_constant=0.0)
    answer = solve(without_objective, options)
    if answer.x is not None:
        return SolverStatus.UNBOUNDED
    return SolverStatus.INFEASIBLE if answer.solver_status is SolverStatus.INFEASIBLE else SolverStatus.UNKNOWN


ZERO = 1e-9
"""A member whose start value is no larger counts as zero."""


def without_sets(model: LinearModel) -> LinearModel:
    """Return the same model with a binary for each segment instead of special ordered sets.

    A type 2 set with members ``w_0 .. w_m``, in order of their weights, has m segments; one of them is chosen, and
    only its two ends may be non-zero: ``w_i <= upper_i (z_{i-1} + z_i)`` and ``sum_s z_s = 1``. In a type 1 set
    every member is a segment of its own. The new columns ``set_segment[k, s]`` of set k follow the model's own, so
    that ``x[:C]`` is an answer to ``model``; so do the rows ``set_chosen[k]`` and ``set_member[k, i]``. A set that
    forbids nothing (up to two members of type 2, one of type 1) just goes. ``start`` is continued, and dropped
    where it breaks a set.

    Size: for S sets of B members in all, B - S columns (B for type 1), B + S rows and at most 4 B entries more.

    Raises
    ------
    InputError
        A set that is of another type, or has a member that may be negative or has no finite upper bound.

    Notes
    -----
    Special ordered sets are from Beale and Tomlin, "Special facilities in a general mathematical programming system
    for non-convex problems using ordered sets of variables", 1970. These rows are the textbook convex-combination
    model of piecewise-linear functions; its relaxation is no tighter than that without sets.
    """
    columns, rows, start = Columns(), Rows(), model.start
    for number, group in enumerate(model.sets):
        if group.kind not in (1, 2):
            raise InputError(f"set {number} is of an unknown type", value=group.kind, expected="1 or 2")
        members = np.asarray(group.columns)[np.argsort(group.weights, kind="stable")]
        n_segments = members.shape[0] - group.kind + 1
        if n_segments <= 1:
            continue
        upper = _upper_bounds(model, number, members)
        segment, place = np.arange(n_segments), np.arange(members.shape[0])
        column = model.n_columns + columns.add("set_segment", np.full(n_segments, number), segment)
        rows.put(rows.add("set_chosen", 1, 1.0, 1.0, np.array([number])), column, 1.0)
        member = rows.add("set_member", place.shape[0], -np.inf, 0.0, np.full_like(place, number), place)
        rows.put(member + place, members, 1.0)
        for end in range(group.kind):
            rows.put(member + segment + end, column, -upper[segment + end])
        if start is not None:
            first = _first_of_segment(start[members], group.kind)
            start = None if first is None else np.append(start, segment == min(first, n_segments - 1))
    if not rows.names:
        return replace(model, sets=())
    added = rows.model_of(columns)
    added = replace(added, entry_row=added.entry_row + model.n_rows)
    joined: dict[str, Any] = {
        name: np.concatenate((getattr(model, name), getattr(added, name))) for name, *_ in MODEL_ARRAYS
    }
    joined |= {name: (*getattr(model, name), *getattr(added, name)) for name in ("column_names", "row_names")}
    return replace(model, **joined, sets=(), start=start)


def _upper_bounds(model: LinearModel, number: int, members: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the members' upper bounds, which serve as their big M."""
    lower, upper = model.column_lower[members], model.column_upper[members]
    is_unbounded = ~((lower >= 0.0) & np.isfinite(upper))
    if is_unbounded.any():
        position = int(np.argmax(is_unbounded))
        raise InputError(
            f"a member of set {number} may be negative or has no finite upper bound",
            column=model.column_names[int(members[position])],
            value=(float(lower[position]), float(upper[position])),
            expected="0 <= lower bound, upper bound finite",
            fix="bound the column, or take a solver that takes special ordered sets (bfreplay solvers lists them)",
        )
    return upper


def _first_of_segment(start: NDArray[np.float64], kind: int) -> int | None:
    """Return the first member that is not zero (0 if all are); ``None`` if more are than a set of ``kind`` allows."""
    nonzero = np.flatnonzero(np.abs(start) > ZERO)
    if nonzero.shape[0] == 0:
        return 0
    first, last = int(nonzero[0]), int(nonzero[-1])
    return first if last - first < kind else None
