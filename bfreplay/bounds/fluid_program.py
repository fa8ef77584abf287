"""The best fluid schedule of jobs with work that ends, as a linear program: where prices come from."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.bounds.cells import Cells
from bfreplay.bounds.free_rescaling import reachable
from bfreplay.bounds.job_classes import JobClass
from bfreplay.milp.exact.every_capacity import hull_counts

_LITTLE = 1e-9
"""Work that is less than this part of what its jobs could do in the longest cell is all done at once."""


def fluid_prices(
    classes: tuple[JobClass, ...], max_parallel: int, cells: Cells
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Prices of a node ``(C,)`` and of an active job ``(C,)``, samples/s, and of a sample ``(G, B)``, 0 to 1.

    The program says how many jobs of each of G classes run on how many nodes in each cell (the vertices of their
    curve's concave hull), within the nodes, the jobs that may be active, the jobs submitted, and the work that has come
    by each block less what was done of it before. The prices are its dual values; should the solver fail, those with
    which all work that ends counts in full, and the bound is loose.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    n_cells, n_blocks = cells.seconds.size, cells.n_blocks
    columns, limits, balances = _Columns(), _Rows(), _Rows()
    node_rows = limits.add(cells.idle)
    slot_rows = limits.add(np.full(n_cells, float(max_parallel)))
    balance_rows: list[tuple[NDArray[np.int64], float] | None] = []
    unit = max(float(each.rate.max()) for each in classes)  # so that the solver's tolerances mean something
    for each in classes:
        jobs_by, work_by = cells.arrivals(each)
        job_rows = limits.add(jobs_by[cells.block].astype(np.float64))
        balance = None
        if np.isfinite(work_by[-1]):
            most = float(each.rate.max() * cells.seconds.max())
            scale = max(float(work_by[-1]), _LITTLE * most)  # of less work the entries would be out of all proportion
            balance = balances.add(np.diff(work_by, prepend=0.0) / scale), scale
            left = columns.add(np.zeros(n_blocks))
            balances.put(balance[0], left, 1.0)
            balances.put(balance[0][1:], left[:-1], -1.0)
        balance_rows.append(balance)
        for nodes in hull_counts(reachable(each))[1:].tolist():
            done = cells.seconds * each.rate[nodes]
            running = columns.add(-done / unit)
            limits.put(node_rows, running, float(nodes))
            limits.put(slot_rows, running, 1.0)
            limits.put(job_rows, running, 1.0)
            if balance is not None:
                balances.put(balance[0][cells.block], running, done / balance[1])
    rows: dict[str, Any] = {
        "A_ub": coo_array(limits.entries(), shape=(limits.n, columns.n)).tocsr(),
        "b_ub": np.concatenate(limits.right),
    }
    if balances.n:
        rows["A_eq"] = coo_array(balances.entries(), shape=(balances.n, columns.n)).tocsr()
        rows["b_eq"] = np.concatenate(balances.right)
    solved = linprog(np.concatenate(columns.cost), **rows)
    sample = np.zeros((len(classes), n_blocks))
    if solved.status != 0:  # any prices bound: with nodes and places free, work that ends counts in full
        sample[[balance is not None for balance in balance_rows]] = 1.0
        return np.zeros(n_cells), np.zeros(n_cells), sample
    dual = -np.minimum(solved.ineqlin.marginals, 0.0) * unit
    for g, balance in enumerate(balance_rows):
        if balance is not None:
            with np.errstate(over="ignore"):  # worth more than a sample is worth one
                worth = np.clip(-solved.eqlin.marginals[balance[0]] * unit / balance[1], 0.0, 1.0)
            sample[g] = np.maximum.accumulate(worth[::-1])[::-1]  # work that is there earlier is worth no less
    return dual[node_rows] / cells.seconds, dual[slot_rows] / cells.seconds, sample


class _Columns:
    """Variables of a linear program, a block at a time."""

    def __init__(self) -> None:
        self.n = 0
        self.cost: list[NDArray[np.float64]] = []

    def add(self, cost: NDArray[np.float64]) -> NDArray[np.int64]:
        self.cost.append(cost)
        self.n += cost.size
        return np.arange(self.n - cost.size, self.n)


class _Rows:
    """Rows of a linear program, a block at a time."""

    def __init__(self) -> None:
        self.n = 0
        self.right: list[NDArray[np.float64]] = []
        self._row: list[NDArray[np.int64]] = []
        self._column: list[NDArray[np.int64]] = []
        self._value: list[NDArray[np.float64]] = []

    def add(self, right: NDArray[np.float64]) -> NDArray[np.int64]:
        self.right.append(right)
        self.n += right.size
        return np.arange(self.n - right.size, self.n)

    def put(self, row: NDArray[np.int64], column: NDArray[np.int64], value: float | NDArray[np.float64]) -> None:
        self._row.append(row)
        self._column.append(column)
        self._value.append(np.broadcast_to(np.asarray(value, np.float64), row.shape))

    def entries(self) -> tuple[NDArray[np.float64], tuple[NDArray[np.int64], NDArray[np.int64]]]:
        return np.concatenate(self._value), (np.concatenate(self._row), np.concatenate(self._column))
