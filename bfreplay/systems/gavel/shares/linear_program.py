"""Linear programs over arrays, solved by HiGHS: a vertex, or an answer amid the optimal ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from bfreplay.errors import BfreplayError, InputError, SolverUnavailableError
from bfreplay.milp.backends.backend import OR_TOOLS, refuse_beside
from bfreplay.milp.backends.highs import Highs, new_highs, start_threads

TOLERANCE = 1e-9
"""Tolerance of rows, bounds and reduced costs. HiGHS's 1e-7 is too coarse for shares compared to 1e-7."""

Optimum = Literal["central", "vertex"]
"""Choice among optimal answers: one amid them, by an interior-point method, or a corner, by the simplex method.

Amid them, columns that no row limits are above their bounds, as with Gavel's own solver. A corner has the fewest
columns above their bounds, and a program that is changed and solved again starts from it.
"""

STATUSES: dict[str, Literal["optimal", "infeasible", "unbounded"]] = {
    "kOptimal": "optimal",
    "kModelEmpty": "optimal",
    "kInfeasible": "infeasible",
    "kUnbounded": "unbounded",
}
"""HiGHS's model statuses that are answers; any other is a failure."""

METHODS: dict[Optimum, str] = {"central": "ipm", "vertex": "simplex"}
"""HiGHS's option ``solver`` for each optimum."""


@dataclass(frozen=True, slots=True, eq=False)
class LinearAnswer:
    """Answer of a linear program.

    Parameters
    ----------
    status
        Status of the program, proven.
    x : (n,) float64
        An optimal answer, on its bounds where it is nearer to them than ``TOLERANCE``; NaN if there is none.
    objective
        Objective at ``x``; NaN without ``x``.
    row_dual : (r,) float64
        Growth of the objective for one unit more of a row's binding bound; NaN without ``x``.
    """

    status: Literal["optimal", "infeasible", "unbounded"]
    x: NDArray[np.float64]
    objective: float
    row_dual: NDArray[np.float64]


class LinearProgram:
    """Maximise or minimise ``cost @ x`` over ``lower <= x <= upper`` and rows ``row_lower <= A x <= row_upper``.

    One thread: the same calls give the same answer. Rows, bounds and coefficients may be changed between solves; for a
    vertex, each solve but the first starts from the last basis.

    Parameters
    ----------
    n_columns
        n.
    cost : (n,) float64
        Coefficients of the objective.
    lower, upper
        (n,) each, or one number for all columns; infinities for no bound.
    maximise
        The sense.
    optimum
        Choice among optimal answers.

    Raises
    ------
    SolverUnavailableError
        No version of HiGHS that is known to be sound is installed.
    InputError
        By this or a change: a number that HiGHS refuses, such as a coefficient that is infinite.
    """

    def __init__(
        self,
        n_columns: int,
        cost: ArrayLike,
        lower: ArrayLike = 0.0,
        upper: ArrayLike = np.inf,
        *,
        maximise: bool,
        optimum: Optimum = "vertex",
    ) -> None:
        self._n_columns = n_columns
        self._n_rows = 0
        self._lower = _spread(lower, n_columns)
        self._upper = _spread(upper, n_columns)
        self._method = METHODS[optimum]
        self._highs = _new_highs(maximise)
        bounds = self._lower, self._upper
        no_entries = np.zeros(n_columns, dtype=np.int32), np.zeros(0, dtype=np.int32), np.zeros(0)
        self._check_status(self._highs.addCols(n_columns, _spread(cost, n_columns), *bounds, 0, *no_entries))

    def add_rows(self, matrix: csr_array, lower: ArrayLike, upper: ArrayLike) -> int:
        """Add rows and return the number of the first.

        Parameters
        ----------
        matrix : (k, at most n)
            Coefficients; further columns are not in these rows.
        lower, upper
            (k,) each, or one number for all of them; infinities for no bound.
        """
        n_new, first = int(matrix.shape[0]), self._n_rows
        bounds = _spread(lower, n_new), _spread(upper, n_new)
        start, index = matrix.indptr[:-1].astype(np.int32), matrix.indices.astype(np.int32)
        entries = int(matrix.nnz), start, index, matrix.data.astype(np.float64)
        self._check_status(self._highs.addRows(n_new, *bounds, *entries))
        self._n_rows += n_new
        return first

    def change_rows(self, first: int, lower: ArrayLike, upper: ArrayLike) -> None:
        """Set the bounds of k rows from ``first`` on: (k,) each; one of them may be a single number for all."""
        n_changed = max(np.size(lower), np.size(upper))
        rows = np.arange(first, first + n_changed, dtype=np.int32)
        bounds = _spread(lower, n_changed), _spread(upper, n_changed)
        self._check_status(self._highs.changeRowsBounds(n_changed, rows, *bounds))

    def change_bounds(self, lower: ArrayLike, upper: ArrayLike) -> None:
        """Set the bounds of all columns: (n,) each, or one number for all."""
        columns = np.arange(self._n_columns, dtype=np.int32)
        self._lower, self._upper = _spread(lower, self._n_columns), _spread(upper, self._n_columns)
        self._check_status(self._highs.changeColsBounds(self._n_columns, columns, self._lower, self._upper))

    def change_coefficient(self, row: int, column: int, value: float) -> None:
        """Set one entry of the matrix."""
        self._check_status(self._highs.changeCoeff(row, column, value))

    def solve(self) -> LinearAnswer:
        """Return the optimum, or a status without an answer.

        Raises
        ------
        BfreplayError
            HiGHS reached no conclusion; the message gives its status.
        """
        outcome = self._run(self._method)
        if outcome not in STATUSES:
            # the interior-point method may end undecided, and so may a warm start: solve by simplex from scratch
            self._highs.clearSolver()
            outcome = self._run("simplex")
        if outcome not in STATUSES:
            raise BfreplayError(f"HiGHS could not solve a linear program of Gavel's policies: status {outcome}")
        status = STATUSES[outcome]
        if status != "optimal":
            return LinearAnswer(status, np.full(self._n_columns, np.nan), np.nan, np.full(self._n_rows, np.nan))
        solution = self._highs.getSolution()
        x = np.array(solution.col_value, dtype=np.float64)
        x = np.where(x - self._lower < TOLERANCE, self._lower, x)
        return LinearAnswer(
            status,
            np.where(self._upper - x < TOLERANCE, self._upper, x),
            float(self._highs.getInfo().objective_function_value),
            np.array(solution.row_dual, dtype=np.float64),
        )

    def _run(self, method: str) -> str:
        start_threads(1)
        self._highs.setOptionValue("solver", method)
        self._highs.run()
        return str(self._highs.getModelStatus().name)

    def _check_status(self, status: Any) -> None:
        if status.name == "kError":
            raise InputError(
                "the policy's linear program has numbers that HiGHS refuses",
                expected="rates, work and weights of jobs within some fifteen powers of ten",
                fix="correct those that are too small or too large to be real",
            )


@cache
def _missing() -> str:
    return Highs().available()


def _new_highs(maximise: bool) -> Any:
    if _missing():
        raise SolverUnavailableError(f"Gavel's policies that optimise need HiGHS: {_missing()}")
    refuse_beside("highspy", OR_TOOLS)
    import highspy

    highs = new_highs()
    for option, value in (
        ("threads", 1),
        ("random_seed", 0),
        # presolve removes little here, and the rest has another middle
        ("presolve", "off"),
        ("run_crossover", "off"),
        ("ipm_optimality_tolerance", 1e-12),
        ("primal_feasibility_tolerance", TOLERANCE),
        ("dual_feasibility_tolerance", TOLERANCE),
    ):
        if highs.setOptionValue(option, value) != highspy.HighsStatus.kOk:
            raise ValueError(f"HiGHS does not accept {option} = {value!r}")
    highs.changeObjectiveSense(highspy.ObjSense.kMaximize if maximise else highspy.ObjSense.kMinimize)
    return highs


def _spread(values: ArrayLike, size: int) -> NDArray[np.float64]:
    return np.ascontiguousarray(np.broadcast_to(np.asarray(values, dtype=np.float64), (size,)))
