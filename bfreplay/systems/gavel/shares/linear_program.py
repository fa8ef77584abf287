"""Linear programs over arrays, solved by HiGHS: a vertex, or an answer from amidst the optimal ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from bfreplay.errors import BfreplayError, SolverUnavailableError
from bfreplay.milp.backends.backend import OR_TOOLS, refuse_beside
from bfreplay.milp.backends.highs import Highs, start_threads

TOLERANCE = 1e-9
"""Of rows, bounds and reduced costs. HiGHS's own 1e-7 is too coarse for shares that are compared to 1e-7."""

Optimum = Literal["central", "vertex"]
"""Which of many optimal answers: one from amidst them, by an interior-point method, or a corner, by the simplex method.

From amidst, columns that no row holds down are above their bounds; such an answer comes from Gavel's own solver too. A
corner has as few columns above their bounds as can be, and a program that is changed and solved again begins there.
"""

STATUSES: dict[str, Literal["optimal", "infeasible", "unbounded"]] = {
    "kOptimal": "optimal",
    "kModelEmpty": "optimal",
    "kInfeasible": "infeasible",
    "kUnbounded": "unbounded",
}
"""HiGHS's model statuses that are answers; any other one is a failure."""

METHODS: dict[Optimum, str] = {"central": "ipm", "vertex": "simplex"}
"""HiGHS's option ``solver`` for each optimum."""


@dataclass(frozen=True, slots=True, eq=False)
class LinearAnswer:
    """What came of a linear program.

    Parameters
    ----------
    status
        Of the program, proven.
    x : (n,) float64
        An optimal answer, on its bounds where it is nearer to them than ``TOLERANCE``; NaN where there is none.
    objective
        At ``x``; NaN where there is none.
    row_dual : (r,) float64
        By how much the objective grows for one unit more of a row's binding bound; NaN where there is no ``x``.
    """

    status: Literal["optimal", "infeasible", "unbounded"]
    x: NDArray[np.float64]
    objective: float
    row_dual: NDArray[np.float64]


class LinearProgram:
    """Maximise or minimise ``cost @ x`` over ``lower <= x <= upper`` and rows ``row_lower <= A x <= row_upper``.

    One thread: the same calls give the same answer. Rows, bounds and coefficients may be changed between solves; for a
    vertex, each solve but the first begins at the basis in which the last one ended.

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
        Which optimal answer is wanted.

    Raises
    ------
    SolverUnavailableError
        HiGHS is not installed here, in a version that is known to be sound.
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
        self._accepted(self._highs.addCols(n_columns, _spread(cost, n_columns), *bounds, 0, *no_entries))

    def add_rows(self, matrix: csr_array, lower: ArrayLike, upper: ArrayLike) -> int:
        """Add rows and return the number of the first.

        Parameters
        ----------
        matrix : (k, at most n)
            Coefficients; columns that it does not have are not in these rows.
        lower, upper
            (k,) each, or one number for all of them; infinities for no bound.
        """
        n_new, first = int(matrix.shape[0]), self._n_rows
        bounds = _spread(lower, n_new), _spread(upper, n_new)
        start, index = matrix.indptr[:-1].astype(np.int32), matrix.indices.astype(np.int32)
        entries = int(matrix.nnz), start, index, matrix.data.astype(np.float64)
        self._accepted(self._highs.addRows(n_new, *bounds, *entries))
        self._n_rows += n_new
        return first

    def change_rows(self, first: int, lower: ArrayLike, upper: ArrayLike) -> None:
        """Give k rows from ``first`` on other bounds: (k,) each, of which one may be a single number for all."""
        n_changed = max(np.size(lower), np.size(upper))
        rows = np.arange(first, first + n_changed, dtype=np.int32)
        bounds = _spread(lower, n_changed), _spread(upper, n_changed)
        self._accepted(self._highs.changeRowsBounds(n_changed, rows, *bounds))

    def change_bounds(self, lower: ArrayLike, upper: ArrayLike) -> None:
        """Give all columns other bounds: (n,) each, or one number for all."""
        columns = np.arange(self._n_columns, dtype=np.int32)
        self._lower, self._upper = _spread(lower, self._n_columns), _spread(upper, self._n_columns)
        self._accepted(self._highs.changeColsBounds(self._n_columns, columns, self._lower, self._upper))

    def change_coefficient(self, row: int, column: int, value: float) -> None:
        """Set one entry of the matrix."""
        self._accepted(self._highs.changeCoeff(row, column, value))

    def solve(self) -> LinearAnswer:
        """Return the optimum, or that there is none.

        Raises
        ------
        BfreplayError
            HiGHS came to no conclusion; the message gives its status.
        """
        said = self._run(self._method)
        if said not in STATUSES:
            # the interior way may end undecided, and a last basis lead nowhere: from scratch, corners decide
            self._highs.clearSolver()
            said = self._run("simplex")
        if said not in STATUSES:
            raise BfreplayError(f"HiGHS could not solve a linear program of Gavel's policies: it says {said}")
        status = STATUSES[said]
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

    def _accepted(self, status: Any) -> None:
        if status.name == "kError":
            raise ValueError(f"HiGHS refuses a change of a linear program of {self._n_rows} x {self._n_columns}")


@cache
def _missing() -> str:
    return Highs().available()


def _new_highs(maximise: bool) -> Any:
    if _missing():
        raise SolverUnavailableError(f"Gavel's policies that optimise need HiGHS: {_missing()}")
    refuse_beside("highspy", OR_TOOLS)
    import highspy

    highs = highspy.Highs()
    for option, value in (
        ("output_flag", False),
        ("threads", 1),
        ("random_seed", 0),
        # these programs have little to take out, and what is left of them has its own middle
        ("presolve", "off"),
        ("run_crossover", "off"),
        ("ipm_optimality_tolerance", 1e-12),
        ("primal_feasibility_tolerance", TOLERANCE),
        ("dual_feasibility_tolerance", TOLERANCE),
    ):
        if highs.setOptionValue(option, value) != highspy.HighsStatus.kOk:
            raise ValueError(f"HiGHS does not take {option} = {value!r}")
    highs.changeObjectiveSense(highspy.ObjSense.kMaximize if maximise else highspy.ObjSense.kMinimize)
    return highs


def _spread(values: ArrayLike, size: int) -> NDArray[np.float64]:
    return np.ascontiguousarray(np.broadcast_to(np.asarray(values, dtype=np.float64), (size,)))
