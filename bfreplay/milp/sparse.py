"""The matrix of a linear model, compressed by columns or by rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.model import LinearModel


@dataclass(frozen=True, slots=True, eq=False)
class Compressed:
    """A sparse matrix by columns (or rows): entries ``start[i]`` to ``start[i + 1]`` are those of column (row) i."""

    start: NDArray[np.int32]  # (C + 1,) or (R + 1,)
    index: NDArray[np.int32]  # (E,): the row (column) of each entry
    value: NDArray[np.float64]  # (E,)


def by_column(model: LinearModel) -> Compressed:
    """``A`` column after column."""
    return _compressed(model.entry_column, model.entry_row, model.entry_value, model.n_columns)


def by_row(model: LinearModel) -> Compressed:
    """``A`` row after row."""
    return _compressed(model.entry_row, model.entry_column, model.entry_value, model.n_rows)


def _compressed(
    major: NDArray[np.int64], minor: NDArray[np.int64], value: NDArray[np.float64], size: int
) -> Compressed:
    order = np.argsort(major, kind="stable")
    start = np.zeros(size + 1, dtype=np.int32)
    np.cumsum(np.bincount(major, minlength=size), out=start[1:])
    return Compressed(start, minor[order].astype(np.int32), value[order].astype(np.float64))
