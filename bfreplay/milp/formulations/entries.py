"""Collects columns, and rows of a sparse matrix, block by block."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.model import LinearModel, SpecialOrderedSet

Numbers = float | NDArray[np.float64]


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
        self.names.extend(indexed(label, *index))
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
        self.names.extend(indexed(label, *(index or (np.arange(size),))))
        return first

    def put(self, row: NDArray[np.int64] | int, column: NDArray[np.int64], value: Numbers) -> None:
        """Entries ``value`` at (``row``, ``column``), broadcast against each other. Those of value 0 are left out."""
        row, column, value = np.broadcast_arrays(row, column, np.asarray(value, dtype=np.float64))
        there = value != 0.0
        self.row.append(row[there].astype(np.int64))
        self.column.append(column[there].astype(np.int64))
        self.value.append(value[there])

    def model(
        self,
        *,
        objective: NDArray[np.float64],
        column_upper: NDArray[np.float64],
        is_integer: NDArray[np.bool_],
        column_names: list[str],
        objective_constant: float = 0.0,
        sets: tuple[SpecialOrderedSet, ...] = (),
        start: NDArray[np.float64] | None = None,
    ) -> LinearModel:
        """Close the collection, with columns given as arrays; every column's lower bound is 0."""
        return LinearModel(
            objective=objective,
            objective_constant=objective_constant,
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
            start=start,
        )

    def model_of(
        self,
        columns: Columns,
        *,
        objective_constant: float = 0.0,
        sets: tuple[SpecialOrderedSet, ...] = (),
        start: NDArray[np.float64] | None = None,
    ) -> LinearModel:
        """Close both collections, as ``model`` does."""
        return self.model(
            objective=np.concatenate(columns.objective),
            column_upper=np.concatenate(columns.upper),
            is_integer=np.concatenate(columns.integer),
            column_names=columns.names,
            objective_constant=objective_constant,
            sets=sets,
            start=start,
        )


def indexed(label: str, *index: NDArray[np.int64]) -> list[str]:
    """``["x[0,0]", "x[0,1]", ...]``: one name for each element of the index arrays."""
    return [f"{label}[{','.join(map(str, i))}]" for i in zip(*(each.tolist() for each in index), strict=True)]
