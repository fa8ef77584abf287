"""Parts that formulations share: columns, rows, kinks of curves, and the solution that a solve starts from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.model import LinearModel, SpecialOrderedSet
from bfreplay.milp.problem import AllocationProblem


def start_counts(problem: AllocationProblem) -> NDArray[np.int64] | None:
    """``(J,)``: every job keeps what it holds, or stops where it may not run on that; ``None`` if it may not either.

    (A job may be left below its minimum by nodes taken back, and held above 0 by a change limit.) The counts are
    feasible: their sum is at most that of ``problem.current``.
    """
    job = np.arange(problem.n_jobs)
    inside = np.minimum(problem.current, problem.gain.shape[1] - 1)
    keeps = (inside == problem.current) & (problem.value[job, inside] > -np.inf)
    if not (keeps | (problem.value[:, 0] > -np.inf)).all():
        return None
    return np.where(keeps, problem.current, 0)


STRAIGHT = 1e-13
"""A second difference below this share of the curve's largest magnitude is rounding, not a kink."""

EXACT = 1e-10
"""Largest interpolation error at any count, as that share; with a larger one every count is kept."""


def kinks(table: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the counts at which ``table`` (value at 0, 1, ..., k) bends, with both ends, ascending.

    Linear interpolation between them gives the table back at every whole count.
    """
    last = table.shape[0] - 1
    if last <= 1:
        return np.arange(last + 1)
    scale = float(np.abs(table).max())
    bends = np.flatnonzero(np.abs(np.diff(table, n=2)) > STRAIGHT * scale) + 1
    points = np.concatenate(([0], bends, [last]))
    counts = np.arange(last + 1)
    error = np.abs(np.interp(counts, points, table[points]) - table).max()
    return points if error <= EXACT * scale else counts


Numbers = float | NDArray[np.float64] | NDArray[np.int64]


@dataclass(slots=True)
class Columns:
    """Objective, upper bounds, integrality and names of the columns gathered so far; lower bounds are 0."""

    objective: list[NDArray[np.float64]] = field(default_factory=list)
    upper: list[NDArray[np.float64]] = field(default_factory=list)
    integer: list[NDArray[np.bool_]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def add(
        self,
        label: str,
        *index: NDArray[np.int64],
        objective: Numbers = 0.0,
        upper: Numbers = 1.0,
        integer: bool = True,
    ) -> NDArray[np.int64]:
        """Append one column for each element of the ``index`` arrays, which name it; their numbers.

        Binaries unless told otherwise.
        """
        size = index[0].shape[0]
        first = len(self.names)
        self.objective.append(np.broadcast_to(np.asarray(objective, dtype=np.float64), (size,)))
        self.upper.append(np.broadcast_to(np.asarray(upper, dtype=np.float64), (size,)))
        self.integer.append(np.full(size, integer))
        self.names.extend(indexed_names(label, *index))
        return np.arange(first, first + size)


@dataclass(slots=True)
class Rows:
    """Row bounds, names and entries gathered so far."""

    lower: list[NDArray[np.float64]] = field(default_factory=list)
    upper: list[NDArray[np.float64]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    row: list[NDArray[np.int64]] = field(default_factory=list)
    column: list[NDArray[np.int64]] = field(default_factory=list)
    value: list[NDArray[np.float64]] = field(default_factory=list)

    def add(self, label: str, size: int, lower: Numbers, upper: Numbers, *index: NDArray[np.int64]) -> int:
        """Append ``size`` rows named ``label[i]``, or by the ``index`` arrays; the number of the first."""
        first = len(self.names)
        self.lower.append(np.broadcast_to(np.asarray(lower, dtype=np.float64), (size,)))
        self.upper.append(np.broadcast_to(np.asarray(upper, dtype=np.float64), (size,)))
        self.names.extend(indexed_names(label, *(index or (np.arange(size),))))
        return first

    def relate(
        self,
        label: str,
        lower: Numbers,
        upper: Numbers,
        *terms: tuple[NDArray[np.int64], Numbers],
        index: Sequence[NDArray[np.int64]] = (),
    ) -> None:
        """Append R rows ``lower <= sum of terms <= upper``; a term: (columns, factors), ``(R,)`` or ``(R, n)``."""
        size = terms[0][0].shape[0]
        row = self.add(label, size, lower, upper, *index) + np.arange(size)
        for column, factor in terms:
            self.put(row if column.ndim == 1 else row[:, None], column, factor)

    def put(self, row: NDArray[np.int64] | int, column: NDArray[np.int64], value: Numbers) -> None:
        """Entries ``value`` at (``row``, ``column``), broadcast against each other. Those of value 0 are left out."""
        row, column, value = np.broadcast_arrays(row, column, np.asarray(value, dtype=np.float64))
        there = value != 0.0
        self.row.append(row[there].astype(np.int64))
        self.column.append(column[there].astype(np.int64))
        self.value.append(value[there])

    def model_of(
        self,
        columns: Columns,
        *,
        objective_constant: float = 0.0,
        sets: tuple[SpecialOrderedSet, ...] = (),
        start: NDArray[np.float64] | None = None,
    ) -> LinearModel:
        """Return the model of these rows and ``columns``, whose lower bounds are 0."""
        return LinearModel(
            objective=np.concatenate(columns.objective),
            objective_constant=objective_constant,
            column_lower=np.zeros(len(columns.names)),
            column_upper=np.concatenate(columns.upper),
            is_integer=np.concatenate(columns.integer),
            column_names=tuple(columns.names),
            row_lower=_concatenate(self.lower, np.float64),
            row_upper=_concatenate(self.upper, np.float64),
            row_names=tuple(self.names),
            entry_row=_concatenate(self.row, np.int64),
            entry_column=_concatenate(self.column, np.int64),
            entry_value=_concatenate(self.value, np.float64),
            sets=sets,
            start=start,
        )


def _concatenate(parts: list[NDArray[Any]], kind: type) -> NDArray[Any]:
    return np.concatenate(parts) if parts else np.zeros(0, kind)  # a model without rows


def indexed_names(label: str, *index: NDArray[np.int64]) -> list[str]:
    """``["x[0,0]", "x[0,1]", ...]``: one name for each element of the index arrays."""
    return [f"{label}[{','.join(map(str, i))}]" for i in zip(*(each.tolist() for each in index), strict=True)]


@dataclass(frozen=True, slots=True)
class WeightedCurves:
    """The weights of all jobs' breakpoints, B in all, ordered by job, then count.

    Parameters
    ----------
    points
        For each job the counts at its breakpoints, ascending.
    owner, point : (B,) int64
        Job and count of each.
    column : (B,) int64
        Column of its weight.
    curve_row
        First of J rows ``sum_b b weight[j, b] = 0``, to which the caller adds minus the count.
    """

    points: Sequence[NDArray[np.int64]]
    owner: NDArray[np.int64]
    point: NDArray[np.int64]
    column: NDArray[np.int64]
    curve_row: int

    @property
    def sets(self) -> tuple[SpecialOrderedSet, ...]:
        """An SOS2 for each job with more than one breakpoint."""
        ends = np.cumsum([len(each) for each in self.points])
        return tuple(
            SpecialOrderedSet(2, self.column[end - len(each) : end], each.astype(np.float64))
            for end, each in zip(ends.tolist(), self.points, strict=True)
            if len(each) > 1
        )

    def weights_at(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """``(B,)``: the weights that interpolate at ``counts (J,)``, which lie within each job's breakpoints."""
        return np.concatenate([_hats(each, n) for each, n in zip(self.points, counts.tolist(), strict=True)])


def add_weighted_curves(
    columns: Columns, rows: Rows, gain: NDArray[np.float64], points: Sequence[NDArray[np.int64]]
) -> WeightedCurves:
    """Add ``weight[j, b] >= 0``, worth ``gain[j, b]``, and the rows ``convex[j]`` and ``curve[j]``.

    ``sum_b weight[j, b] = 1`` and ``sum_b b weight[j, b] = count_j``, whose right-hand side is left to the caller.
    """
    owner = np.repeat(np.arange(len(points)), [len(each) for each in points])
    point = np.concatenate(points)
    column = columns.add("weight", owner, point, objective=gain[owner, point], integer=False)
    convex = rows.add("convex", len(points), 1.0, 1.0)
    rows.put(convex + owner, column, 1.0)
    curve = rows.add("curve", len(points), 0.0, 0.0)
    rows.put(curve + owner, column, point.astype(np.float64))
    return WeightedCurves(points, owner, point, column, curve)


def _hats(points: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    weight = np.zeros(points.shape[0])
    right = int(np.searchsorted(points, count))
    weight[right] = 1.0
    if points[right] != count:
        share = (count - points[right - 1]) / (points[right] - points[right - 1])
        weight[right - 1 : right + 1] = 1.0 - share, share
    return weight
