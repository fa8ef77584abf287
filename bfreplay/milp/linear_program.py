"""Linear programs in HiGHS: built from arrays, changed between solves, and read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bfreplay.milp.backends.backend import OR_TOOLS, refuse_beside, silent_stdout, unmet
from bfreplay.milp.model import Compressed

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SOUND = ">=1.13,!=1.14.0,<2"
"""Versions of highspy, as in ``pyproject.toml``. The presolve of HiGHS 1.14.0 loses optima of mixed-integer models."""

Floats: TypeAlias = NDArray[np.float64]
Bounds: TypeAlias = tuple[Floats, Floats]

_threads: list[int] = []
"""How many threads HiGHS has started in this process."""


def missing_highspy() -> str:
    """Return which highspy to install; empty for none."""
    remedy = f"pip install 'highspy{SOUND}' (no build exists for ppc64le: use the exact solver there)"
    why = "1.14.0 calls wrong answers optimal; earlier than 1.13 lacks what Gavel's programs need"
    return unmet("highspy", SOUND, why=why, fix=remedy)


def new_highs() -> Any:
    """Return a HiGHS of its own, which says nothing: version 1.16 prints two lines when it is made."""
    import highspy

    with silent_stdout():
        highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    return highs


class HighsProgram:
    """Linear program, with integer columns or without, that HiGHS keeps between solves.

    Parameters
    ----------
    maximise
        The sense.
    threads
        Number of threads. With one, the same calls give the same answer.
    options
        Further options of HiGHS by name.

    Raises
    ------
    RuntimeError
        OR-Tools is loaded in this process.
    ValueError
        By this or a change: an option or a number that HiGHS refuses.
    """

    def __init__(self, *, maximise: bool, threads: int = 1, **options: float | str) -> None:
        refuse_beside("highspy", OR_TOOLS)
        import highspy

        self._threads = threads
        self._highs = new_highs()
        for option, value in {"threads": threads, **options}.items():
            if self._highs.setOptionValue(option, value) != highspy.HighsStatus.kOk:
                raise ValueError(f"HiGHS does not take {option} = {value!r}")
        self._sense = highspy.ObjSense.kMaximize if maximise else highspy.ObjSense.kMinimize
        self._highs.changeObjectiveSense(self._sense)

    def load(
        self,
        cost: Floats,
        column_bounds: Bounds,
        row_bounds: Bounds,
        by_column: Compressed,
        is_integer: NDArray[np.bool_] | None = None,
    ) -> None:
        """Set the whole program: ``cost (C,)``, lower and upper bounds, matrix, and which columns are integer."""
        import highspy

        sizes = cost.size, row_bounds[0].size, by_column.value.size
        layout = int(highspy.MatrixFormat.kColwise), int(self._sense)
        entries = by_column.start, by_column.index, by_column.value
        integrality = np.zeros(cost.size, np.int32) if is_integer is None else is_integer.astype(np.int32)
        self._check(
            self._highs.passModel(*sizes, *layout, 0.0, cost, *column_bounds, *row_bounds, *entries, integrality)
        )

    def add_columns(self, cost: Floats, bounds: Bounds) -> None:
        """Add columns without entries."""
        no_entries = np.zeros(cost.size, dtype=np.int32), np.zeros(0, dtype=np.int32), np.zeros(0)
        self._check(self._highs.addCols(cost.size, cost, *bounds, 0, *no_entries))

    def add_rows(self, matrix: csr_array, lower: ArrayLike, upper: ArrayLike) -> int:
        """Add rows and return the number of the first.

        Parameters
        ----------
        matrix : (k, at most C)
            Coefficients; further columns are not in these rows.
        lower, upper
            (k,) each, or one number for all of them; infinities for no bound.
        """
        n_new, first = int(matrix.shape[0]), self.n_rows
        start, index = matrix.indptr[:-1].astype(np.int32), matrix.indices.astype(np.int32)
        entries = int(matrix.nnz), start, index, matrix.data.astype(np.float64)
        self._check(self._highs.addRows(n_new, to_size(lower, n_new), to_size(upper, n_new), *entries))
        return first

    def change_rows(self, first: int, lower: ArrayLike, upper: ArrayLike) -> None:
        """Set the bounds of k rows from ``first`` on: (k,) each; one of them may be a single number for all."""
        n_changed = max(np.size(lower), np.size(upper))
        rows = np.arange(first, first + n_changed, dtype=np.int32)
        bounds = to_size(lower, n_changed), to_size(upper, n_changed)
        self._check(self._highs.changeRowsBounds(n_changed, rows, *bounds))

    def change_columns(self, lower: Floats, upper: Floats) -> None:
        """Set the bounds of all columns, (C,) each."""
        self._check(self._highs.changeColsBounds(lower.size, np.arange(lower.size, dtype=np.int32), lower, upper))

    def change_coefficient(self, row: int, column: int, value: float) -> None:
        """Set one entry of the matrix."""
        self._check(self._highs.changeCoeff(row, column, value))

    def start_from(self, x: Floats) -> None:
        """Set a feasible point to start from."""
        import highspy

        start = highspy.HighsSolution()
        start.col_value = x.tolist()
        self._highs.setSolution(start)

    def forget_basis(self) -> None:
        """Solve from scratch next time."""
        self._highs.clearSolver()

    def run(self, method: str | None = None) -> str:
        """Solve, by this ``solver`` of HiGHS or its choice, and return HiGHS's model status, as ``"kOptimal"``.

        HiGHS keeps its threads, and would refuse a solve with another number of them: they are ended before.
        """
        import highspy

        if _threads and _threads[0] != self._threads:
            highspy.Highs.resetGlobalScheduler(True)
        _threads[:] = [self._threads]
        if method is not None:
            self._highs.setOptionValue("solver", method)
        self._highs.run()
        return str(self._highs.getModelStatus().name)

    @property
    def n_rows(self) -> int:
        """R."""
        return int(self._highs.getNumRow())

    @property
    def info(self) -> Any:
        """HiGHS's numbers of the last solve: objective, bound, status of the point."""
        return self._highs.getInfo()

    def column_values(self) -> Floats:
        """Return the point of the last solve, (C,)."""
        return np.array(self._highs.getSolution().col_value, dtype=np.float64)

    def row_duals(self) -> Floats:
        """Return the growth of the objective for one unit more of a row's binding bound, (R,)."""
        return np.array(self._highs.getSolution().row_dual, dtype=np.float64)

    def _check(self, status: Any) -> None:
        if status.name == "kError":
            raise ValueError("HiGHS does not take the model")


def to_size(values: ArrayLike, size: int) -> Floats:
    """Return an array ``(size,)`` of values, or of one value for all."""
    return np.ascontiguousarray(np.broadcast_to(np.asarray(values, dtype=np.float64), (size,)))
