"""A mixed-integer linear model as plain arrays, which any back end can take."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class SpecialOrderedSet:
    """At most two neighbouring members are non-zero (type 2), or at most one member (type 1)."""

    kind: int
    columns: NDArray[np.int64]
    weights: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class LinearModel:
    """Maximise ``objective @ x + objective_constant`` s.t. ``row_lower <= A x <= row_upper`` and bounds.

    ``A`` is given in coordinate form: entry e is ``entry_value[e]`` at (``entry_row[e]``, ``entry_column[e]``);
    no (row, column) pair stands twice. R rows, C columns, E entries, all as arrays so that back ends may pass
    them on as they are.
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

    @property
    def n_columns(self) -> int:
        """C."""
        return int(self.objective.shape[0])

    @property
    def n_rows(self) -> int:
        """R."""
        return int(self.row_lower.shape[0])
