"""Dual values of linear programs, by HiGHS: highspy's, or that in scipy where highspy cannot be used."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.backends.backend import OR_TOOLS
from bfreplay.milp.backends.highs import Highs, start_threads


class Rows(NamedTuple):
    """``A x <= right`` in the first ``n_at_most`` rows, ``A x == right`` in the others; the entries of A in any order.

    Parameters
    ----------
    right : (R,) float64
        Right sides.
    n_at_most
        How many rows are inequalities.
    row, column, value : (E,)
        The entries, each place once.
    """

    right: NDArray[np.float64]
    n_at_most: int
    row: NDArray[np.int64]
    column: NDArray[np.int64]
    value: NDArray[np.float64]


def dual_values(cost: NDArray[np.float64], rows: Rows, *, primal_simplex: bool = False) -> NDArray[np.float64] | None:
    """Dual values ``(R,)`` of the rows when ``cost @ x`` is least over ``x >= 0``; ``None`` where HiGHS fails.

    ``primal_simplex`` is the faster way here. Both ways agree on the optimum; where several duals reach it, on which
    one, they need not.
    """
    if not _has_highspy() or any(module in sys.modules for module in OR_TOOLS):
        return _by_scipy(cost, rows)
    import highspy

    start_threads(1)
    highs = highspy.Highs()
    for option, value in (("output_flag", False), ("threads", 1), ("simplex_strategy", 4 if primal_simplex else 1)):
        highs.setOptionValue(option, value)
    n, size = cost.size, rows.right.size
    order = np.lexsort((rows.row, rows.column))
    start = np.zeros(n + 1, np.int32)
    np.cumsum(np.bincount(rows.column, minlength=n), out=start[1:])
    least = np.where(np.arange(size) < rows.n_at_most, -np.inf, rows.right)
    passed = highs.passModel(
        n, size, rows.value.size, int(highspy.MatrixFormat.kColwise), int(highspy.ObjSense.kMinimize), 0.0,
        cost, np.zeros(n), np.full(n, np.inf), least, rows.right,
        start, rows.row[order].astype(np.int32), rows.value[order], np.zeros(n, np.int32),
    )  # fmt: skip
    if passed == highspy.HighsStatus.kError:
        return None
    highs.run()
    if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    return np.array(highs.getSolution().row_dual, dtype=np.float64)


@cache
def _has_highspy() -> bool:
    return not Highs().available()


def _by_scipy(cost: NDArray[np.float64], rows: Rows) -> NDArray[np.float64] | None:
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    n, of = rows.n_at_most, (rows.right.size, cost.size)
    matrix = coo_array((rows.value, (rows.row, rows.column)), shape=of).tocsr()
    parts: dict[str, Any] = {"A_ub": matrix[:n], "b_ub": rows.right[:n], "A_eq": matrix[n:], "b_eq": rows.right[n:]}
    solved = linprog(cost, **parts)
    if solved.status != 0:
        return None
    duals: NDArray[np.float64] = np.concatenate([solved.ineqlin.marginals, solved.eqlin.marginals])
    return duals
