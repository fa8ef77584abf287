"""Collects rows of a sparse matrix, block by block."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.model import LinearModel, SpecialOrderedSet


@dataclass(slots=True)
class Rows:
    """Row bounds, names and entries gathered so far."""

    lower: list[NDArray[np.float64]] = field(default_factory=list)
    upper: list[NDArray[np.float64]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    row: list[NDArray[np.int64]] = field(default_factory=list)
    column: list[NDArray[np.int64]] = field(default_factory=list)
    value: list[NDArray[np.float64]] = field(default_factory=list)

    def add(self, label: str, size: int, lower: float | NDArray[np.float64], upper: float | NDArray[np.float64]) -> int:
        """Append ``size`` rows named ``label[i]``; the index of the first."""
        first = len(self.names)
        self.lower.append(np.broadcast_to(np.asarray(lower, dtype=np.float64), (size,)))
        self.upper.append(np.broadcast_to(np.asarray(upper, dtype=np.float64), (size,)))
        self.names.extend([f"{label}[{i}]" for i in range(size)])
        return first

    def put(self, row: NDArray[np.int64] | int, column: NDArray[np.int64], value: float | NDArray[np.float64]) -> None:
        """Entries ``value`` at (``row``, ``column``), broadcast against each other."""
        shape = np.broadcast_shapes(np.shape(row), np.shape(column), np.shape(value))
        self.row.append(np.broadcast_to(np.asarray(row, dtype=np.int64), shape).ravel())
        self.column.append(np.broadcast_to(column, shape).ravel())
        self.value.append(np.broadcast_to(np.asarray(value, dtype=np.float64), shape).ravel())

    def model(
        self,
        *,
        objective: NDArray[np.float64],
        column_upper: NDArray[np.float64],
        is_integer: NDArray[np.bool_],
        column_names: list[str],
        sets: tuple[SpecialOrderedSet, ...] = (),
    ) -> LinearModel:
        """Close the collection; every column's lower bound is 0."""
        return LinearModel(
            objective=objective,
            objective_constant=0.0,
            column_lower=np.zeros_like(objective),
            column_upper=column_upper,
            is_integer=is_integer,
            column_names=tuple(column_names),
            row_lower=np.concatenate(self.lower),
            row_upper=np.concatenate(self.upper),
            row_names=tuple(self.names),
            entry_row=np.concatenate(self.row),
            entry_column=np.concatenate(self.column),
            entry_value=np.concatenate(self.value),
            sets=sets,
        )
