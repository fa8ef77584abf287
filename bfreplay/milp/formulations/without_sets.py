"""Special ordered sets posed by binaries, for solvers that take none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bfreplay.errors import InputError
from bfreplay.milp.model import Columns, LinearModel, Rows

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
    return replace(
        model,
        objective=np.concatenate((model.objective, *columns.objective)),
        column_lower=np.append(model.column_lower, np.zeros(len(columns.names))),
        column_upper=np.concatenate((model.column_upper, *columns.upper)),
        is_integer=np.concatenate((model.is_integer, *columns.integer)),
        column_names=(*model.column_names, *columns.names),
        row_lower=np.concatenate((model.row_lower, *rows.lower)),
        row_upper=np.concatenate((model.row_upper, *rows.upper)),
        row_names=(*model.row_names, *rows.names),
        entry_row=np.concatenate((model.entry_row, *(model.n_rows + row for row in rows.row))),
        entry_column=np.concatenate((model.entry_column, *rows.column)),
        entry_value=np.concatenate((model.entry_value, *rows.value)),
        sets=(),
        start=start,
    )


def _upper_bounds(model: LinearModel, number: int, members: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the members' upper bounds, which serve as their big M."""
    lower, upper = model.column_lower[members], model.column_upper[members]
    bad = ~((lower >= 0.0) & np.isfinite(upper))
    if bad.any():
        which = int(np.argmax(bad))
        raise InputError(
            f"a member of set {number} may be negative or has no finite upper bound",
            column=model.column_names[int(members[which])],
            value=(float(lower[which]), float(upper[which])),
            expected="0 <= lower bound, upper bound finite",
            fix="bound the column, or take a solver that takes special ordered sets (bfreplay solvers lists them)",
        )
    return upper


def _first_of_segment(start: NDArray[np.float64], kind: int) -> int | None:
    """Return the first member that is not zero (0 if all are); ``None`` if more are than a set of ``kind`` allows."""
    used = np.flatnonzero(np.abs(start) > ZERO)
    if used.shape[0] == 0:
        return 0
    first, last = int(used[0]), int(used[-1])
    return first if last - first < kind else None
