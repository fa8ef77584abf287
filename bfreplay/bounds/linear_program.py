"""Dual values of linear programs, by HiGHS: highspy's, or that in scipy where highspy cannot be used."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.backends.backend import OR_TOOLS
from bfreplay.milp.linear_program import HighsProgram, missing_highspy
from bfreplay.milp.model import Compressed


class Entries(NamedTuple):
    """Coefficients of a matrix, (E,) each: no place twice."""

    row: NDArray[np.int64]
    column: NDArray[np.int64]
    value: NDArray[np.float64]


def dual_values(
    cost: NDArray[np.float64],
    matrix: Entries,
    right: NDArray[np.float64],
    n_at_most: int,
    *,
    primal_simplex: bool = False,
) -> NDArray[np.float64] | None:
    """Return the dual values ``(R,)`` of the rows when ``cost @ x`` is least over ``x >= 0``; ``None`` if HiGHS fails.

    The first ``n_at_most`` rows are ``matrix @ x <= right``, the others ``matrix @ x == right``.

    ``primal_simplex`` is the faster way here. Both ways agree on the optimum; where several duals reach it, on which
    one, they need not.
    """
    if not _has_highspy() or any(module in sys.modules for module in OR_TOOLS):
        return _by_scipy(cost, matrix, right, n_at_most)
    n_columns = cost.size
    order = np.lexsort((matrix.row, matrix.column))  # not scipy.sparse, whose import takes longer than a small program
    starts = np.searchsorted(matrix.column[order], np.arange(n_columns + 1))
    entries = Compressed(starts.astype(np.int32), matrix.row[order].astype(np.int32), matrix.value[order])
    lower = np.where(np.arange(right.size) < n_at_most, -np.inf, right)
    program = HighsProgram(maximise=False, simplex_strategy=4 if primal_simplex else 1)
    try:
        program.load(cost, (np.zeros(n_columns), np.full(n_columns, np.inf)), (lower, right), entries)
    except ValueError:
        return None
    return program.row_duals() if program.run() == "kOptimal" else None


@cache
def _has_highspy() -> bool:
    return not missing_highspy()


def _by_scipy(
    cost: NDArray[np.float64], matrix: Entries, right: NDArray[np.float64], n_at_most: int
) -> NDArray[np.float64] | None:
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    sparse_rows: Any = coo_array(
        (matrix.value, (matrix.row, matrix.column)), (right.size, cost.size)
    ).tocsr()  # scipy's types know no sparse program
    result = linprog(cost, sparse_rows[:n_at_most], right[:n_at_most], sparse_rows[n_at_most:], right[n_at_most:])
    if result.status != 0:
        return None
    duals: NDArray[np.float64] = np.concatenate([result.ineqlin.marginals, result.eqlin.marginals])
    return duals
