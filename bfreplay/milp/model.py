"""A mixed-integer linear model as plain arrays, which any back end can take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, slots=True, eq=False)
class SpecialOrderedSet:
    """At most two neighbouring members are non-zero (type 2), or at most one member (type 1)."""

    kind: int
    columns: NDArray[np.int64]
    weights: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ModelSize:
    """Size of a linear model: columns (integer ones among them), rows, matrix entries, special ordered sets."""

    columns: int
    integer_columns: int
    rows: int
    entries: int
    sets: int


@dataclass(frozen=True, slots=True, eq=False)
class LinearModel:
    """Maximise ``objective @ x + objective_constant`` s.t. ``row_lower <= A x <= row_upper`` and bounds.

    ``A`` is given in coordinate form: entry e is ``entry_value[e]`` at (``entry_row[e]``, ``entry_column[e]``);
    no (row, column) pair stands twice. R rows, C columns, E entries, all as arrays so that back ends may pass
    them on as they are. ``start``, when there is one, is a feasible point that a back end may begin from.
    """

    objective: NDArray[np.float64]  # (C,)
    objective_constant: float
    column_lower: NDArray[np.float64]  # (C,)
    column_upper: NDArray[np.float64]  # (C,), inf for none
    is_integer: NDArray[np.bool_]  # (C,)
    column_names: tuple[str, ...]  # (C,)
    row_lower: NDArray[np.float64]  # (R,), -inf for none
    row_upper: NDArray[np.float64]  # (R,), inf for none
    row_names: tuple[str, ...]  # (R,)
    entry_row: NDArray[np.int64]  # (E,)
    entry_column: NDArray[np.int64]  # (E,)
    entry_value: NDArray[np.float64]  # (E,)
    sets: tuple[SpecialOrderedSet, ...] = ()
    start: NDArray[np.float64] | None = None  # (C,)

    def __repr__(self) -> str:
        size = self.size
        integer_part = f"{size.columns:,} columns ({size.integer_columns:,} integer)"
        return f"<LinearModel: {integer_part}, {size.rows:,} rows, {size.entries:,} entries, {size.sets:,} sets>"

    @property
    def size(self) -> ModelSize:
        """Its size in numbers."""
        return ModelSize(
            self.n_columns, int(self.is_integer.sum()), self.n_rows, int(self.entry_value.shape[0]), len(self.sets)
        )

    @property
    def n_columns(self) -> int:
        """C."""
        return int(self.objective.shape[0])

    @property
    def n_rows(self) -> int:
        """R."""
        return int(self.row_lower.shape[0])


def model_fault(model: LinearModel) -> str:
    """Return what is malformed about ``model`` in one sentence, or an empty string.

    A stranger's model goes on to a solver's C code only with arrays of the right kind and length, indices in range,
    and numbers where numbers belong.
    """
    sizes: dict[str, int] = {}
    for array_name, kinds, same_length_as in MODEL_ARRAYS:
        array = getattr(model, array_name)
        if not isinstance(array, np.ndarray) or array.ndim != 1:
            return f"{array_name} is no one-dimensional array"
        if array.dtype.kind not in kinds:
            return f"{array_name} is of type {array.dtype}, expected {_KIND_NAMES[kinds]}"
        if sizes.setdefault(same_length_as, array.shape[0]) != array.shape[0]:
            return f"{array_name} has {array.shape[0]} elements, {same_length_as} has {sizes[same_length_as]}"
    for array_name, size in (("column_names", model.n_columns), ("row_names", model.n_rows)):
        names = getattr(model, array_name)
        if not (isinstance(names, tuple | list) and all(isinstance(array_name, str) for array_name in names)):
            return f"{array_name} is no tuple of strings"
        if len(names) != size:
            return f"{array_name} has {len(names)} names for {size}"
    if not isinstance(model.objective_constant, float | int | np.floating):
        return "objective_constant is no number"
    for array_name in ("objective", "objective_constant", "entry_value"):
        if not np.isfinite(getattr(model, array_name)).all():
            return f"{array_name} holds a number that is not finite"
    if model.start is not None:
        start = model.start
        if not (isinstance(start, np.ndarray) and start.dtype.kind in "fiu" and start.shape == (model.n_columns,)):
            return f"start is no array of {model.n_columns} numbers, one a column"
        if not np.isfinite(start).all():
            return "start holds a number that is not finite"
    for array_name in ("column_lower", "column_upper", "row_lower", "row_upper"):
        if np.isnan(getattr(model, array_name)).any():
            return f"{array_name} holds nan"
    for array_name, size in (("entry_row", model.n_rows), ("entry_column", model.n_columns)):
        if not _in_range(getattr(model, array_name), size):
            return f"{array_name} points outside 0 to {size - 1}"
    if not (
        isinstance(model.sets, tuple | list) and all(isinstance(group_of, SpecialOrderedSet) for group_of in model.sets)
    ):
        return "sets is no tuple of SpecialOrderedSet"
    for group in model.sets:
        if group.kind not in (1, 2):
            return f"a set is of type {group.kind!r}, not 1 or 2"
        columns, weights = np.asarray(group.columns), np.asarray(group.weights)
        if columns.dtype.kind not in "iu" or columns.shape != weights.shape or columns.ndim != 1:
            return "a set's columns and weights are no arrays of equal length"
        if not _in_range(columns, model.n_columns):
            return f"a set's column points outside 0 to {model.n_columns - 1}"
    return ""


def _in_range(index: NDArray[np.int64], size: int) -> bool:
    return index.size == 0 or bool(index.min() >= 0 and index.max() < size)


_KIND_NAMES = {"fiu": "numbers", "iu": "whole numbers", "b": "bool"}
MODEL_ARRAYS = (
    ("objective", "fiu", "objective"),
    ("column_lower", "fiu", "objective"),
    ("column_upper", "fiu", "objective"),
    ("is_integer", "b", "objective"),
    ("row_lower", "fiu", "row_lower"),
    ("row_upper", "fiu", "row_lower"),
    ("entry_row", "iu", "entry_row"),
    ("entry_column", "iu", "entry_row"),
    ("entry_value", "fiu", "entry_row"),
)
"""Name, kinds of dtype, and the array whose length it has."""


@dataclass(frozen=True, slots=True, eq=False)
class Compressed:
    """A sparse matrix by columns (or rows): entries ``start[i]`` to ``start[i + 1]`` are those of column (row) i."""

    start: NDArray[np.int32]  # (C + 1,) or (R + 1,)
    index: NDArray[np.int32]  # (E,): the row (column) of each entry
    value: NDArray[np.float64]  # (E,)


def by_column(model: LinearModel) -> Compressed:
    """Return ``A`` column after column."""
    return _compress(model.entry_column, model.entry_row, model.entry_value, model.n_columns)


def by_row(model: LinearModel) -> Compressed:
    """Return ``A`` row after row."""
    return _compress(model.entry_row, model.entry_column, model.entry_value, model.n_rows)


def _compress(major: NDArray[np.int64], minor: NDArray[np.int64], value: NDArray[np.float64], size: int) -> Compressed:
    order = np.argsort(major, kind="stable")
    start = np.zeros(size + 1, dtype=np.int32)
    np.cumsum(np.bincount(major, minlength=size), out=start[1:])
    return Compressed(start, minor[order].astype(np.int32), value[order].astype(np.float64))


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
        n_added = index[0].shape[0]
        first = len(self.names)
        self.objective.append(np.broadcast_to(np.asarray(objective, dtype=np.float64), (n_added,)))
        self.upper.append(np.broadcast_to(np.asarray(upper, dtype=np.float64), (n_added,)))
        self.integer.append(np.full(n_added, integer))
        self.names.extend(indexed_names(label, *index))
        return np.arange(first, first + n_added)


@dataclass(slots=True)
class Rows:
    """Row bounds, names and entries gathered so far."""

    lower: list[ArrayLike] = field(default_factory=list)
    upper: list[ArrayLike] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    row: list[ArrayLike] = field(default_factory=list)
    column: list[ArrayLike] = field(default_factory=list)
    value: list[ArrayLike] = field(default_factory=list)

    def add_row(self, name: str, lower: float, upper: float, terms: Mapping[int, float]) -> None:
        """Append one row with the factors of columns. Those of value 0 are left out."""
        factors = {column: factor for column, factor in sorted(terms.items()) if factor}
        self.row.append([len(self.names)] * len(factors))
        self.column.append([*factors])
        self.value.append([*factors.values()])
        self.lower.append([lower])
        self.upper.append([upper])
        self.names.append(name)

    def add(self, label: str, size: int, lower: Numbers, upper: Numbers, *index: NDArray[np.int64]) -> int:
        """Append ``size`` rows named ``label[i]``, or by the ``index`` arrays; the number of the first."""
        first = len(self.names)
        self.lower.append(np.broadcast_to(np.asarray(lower, dtype=np.float64), (size,)))
        self.upper.append(np.broadcast_to(np.asarray(upper, dtype=np.float64), (size,)))
        self.names.extend(indexed_names(label, *(index or (np.arange(size),))))
        return first

    def constrain(
        self,
        label: str,
        lower: Numbers,
        upper: Numbers,
        *terms: tuple[NDArray[np.int64], Numbers],
        index: Sequence[NDArray[np.int64]] = (),
    ) -> None:
        """Append R rows ``lower <= sum of terms <= upper``; a term: (columns, factors), ``(R,)`` or ``(R, n)``."""
        n_added = terms[0][0].shape[0]
        row_numbers = self.add(label, n_added, lower, upper, *index) + np.arange(n_added)
        for column, factor in terms:
            self.put(row_numbers if column.ndim == 1 else row_numbers[:, None], column, factor)

    def put(self, row: NDArray[np.int64] | int, column: NDArray[np.int64], value: Numbers) -> None:
        """Entries ``value`` at (``row``, ``column``), broadcast against each other. Those of value 0 are left out."""
        row, column, value = np.broadcast_arrays(row, column, np.asarray(value, dtype=np.float64))
        is_nonzero = value != 0.0
        self.row.append(row[is_nonzero].astype(np.int64))
        self.column.append(column[is_nonzero].astype(np.int64))
        self.value.append(value[is_nonzero])

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


def _concatenate(parts: Sequence[ArrayLike], kind: type) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, kind), *parts], dtype=kind, casting="unsafe")  # a part may be empty


def indexed_names(label: str, *index: NDArray[np.int64]) -> list[str]:
    """``["x[0,0]", "x[0,1]", ...]``: one name for each element of the index arrays."""
    return [f"{label}[{','.join(map(str, place))}]" for place in zip(*(axis.tolist() for axis in index), strict=True)]
