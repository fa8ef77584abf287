"""Whether a point satisfies a linear model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.model import LinearModel

TOLERANCE = 1e-9


def point_fault(model: LinearModel, x: NDArray[np.float64], tolerance: float = TOLERANCE) -> str:
    """What of ``model`` the point ``x (C,)`` breaks, in one sentence; empty when it is feasible.

    Bounds and whole columns may be off by ``tolerance``, rows by ``tolerance`` times the larger of 1 and their sum.
    """
    for c in np.flatnonzero((x < model.column_lower - tolerance) | (x > model.column_upper + tolerance)):
        return f"{model.column_names[c]} = {x[c]} is outside {model.column_lower[c]} to {model.column_upper[c]}"
    for c in np.flatnonzero(model.is_integer & (np.abs(x - np.rint(x)) > tolerance)):
        return f"{model.column_names[c]} = {x[c]} is not whole"
    sides = np.zeros(model.n_rows)
    np.add.at(sides, model.entry_row, model.entry_value * x[model.entry_column])
    slack = tolerance * np.maximum(1.0, np.abs(sides))
    for r in np.flatnonzero((sides < model.row_lower - slack) | (sides > model.row_upper + slack)):
        return f"row {model.row_names[r]} is {sides[r]}, outside {model.row_lower[r]} to {model.row_upper[r]}"
    for number, group in enumerate(model.sets):
        used = np.flatnonzero(np.abs(x[group.columns[np.argsort(group.weights)]]) > tolerance)
        if used.size > group.kind or (used.size == 2 and used[1] - used[0] != 1):
            return f"set {number} has {used.size} members that are not zero, or two that are not neighbours"
    return ""
