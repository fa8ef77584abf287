"""Upper bounds for jobs with finite work and free rescaling, and a lower bound on the end of all work.

The window is cut into cells. A linear program over them gives prices: of a node and of an active job in each cell, and
of a sample still to be done in each block of time. The bound is the Lagrangian function at these prices, interval by
interval on the curves themselves. It holds for any prices, so neither the cells nor the solver's tolerances can make it
too low.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.bounds.job_classes import Cells, Horizon, JobClass, job_classes, merge_classes
from bfreplay.milp.backends.backend import OR_TOOLS
from bfreplay.milp.exact.relaxation import hull_counts, optima_of_hulls
from bfreplay.milp.linear_program import HighsProgram, missing_highspy
from bfreplay.milp.model import Compressed
from bfreplay.workload import ElasticJob


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


_EXACT_STEPS = 4e8
"""Most steps of the dynamic program over all capacities; beyond it, concave hulls give an upper bound."""


def best_rates(classes: tuple[JobClass, ...], most_nodes: int) -> NDArray[np.float64]:
    """Return the most samples/s of all jobs on at most 0, 1, ..., ``most_nodes`` nodes, ``(most_nodes + 1,)``.

    All jobs run at once. Exact, or an upper bound from the curves' concave hulls where exact would take too long.
    """
    n_steps = sum(job_class.n_jobs * job_class.rate.size for job_class in classes) * (most_nodes + 1)
    if n_steps > _EXACT_STEPS:
        class_rates = np.full((len(classes), max(job_class.rate.size for job_class in classes)), -np.inf)
        for rates_of_class, job_class in zip(class_rates, classes, strict=True):
            rates_of_class[: job_class.rate.size] = reachable(job_class)
        return optima_of_hulls(class_rates, np.array([job_class.n_jobs for job_class in classes]), most_nodes)
    best_rate = np.zeros(most_nodes + 1)
    for job_class in classes:
        for _ in range(job_class.n_jobs):
            best_rate = _with_one_more(best_rate, job_class)
    return best_rate


@compiled
def _with_one_more(best_rate: NDArray[np.float64], job_class: JobClass) -> NDArray[np.float64]:
    """Return the best rates when one more job may run."""
    after = best_rate.copy()
    for nodes in range(best_rate.size):
        for count in range(job_class.min_nodes, min(job_class.rate.size - 1, nodes) + 1):
            value = best_rate[nodes - count] + job_class.rate[count]
            if value > after[nodes]:
                after[nodes] = value
    return after


def reachable(jobs: JobClass) -> NDArray[np.float64]:
    """Return the rate of a job at each count, ``(K + 1,)``; ``-inf`` at counts that it may not have."""
    counts = np.arange(jobs.rate.size)
    return np.where((counts == 0) | (counts >= jobs.min_nodes), jobs.rate, -np.inf)


_LITTLE = 1e-9
"""Work that is less than this part of what its jobs could do in the longest cell is all done at once."""


class Prices(NamedTuple):
    """Prices of a Lagrangian bound, in samples.

    Parameters
    ----------
    node, slot : (C,)
        For a node, and for an active job, a second in each cell.
    sample : (G, B)
        For a sample of each class still to be done in each block, 0 to 1.
    """

    node: NDArray[np.float64]
    slot: NDArray[np.float64]
    sample: NDArray[np.float64]


def fluid_prices(
    classes: tuple[JobClass, ...], max_parallel: int, cells: Cells, *, primal_simplex: bool = False
) -> Prices:
    """Return the prices at which the Lagrangian function of the fluid program is lowest.

    The program says how many jobs of each of G classes run on how many nodes in each cell (the vertices of their
    curve's concave hull), within the nodes, the jobs that may be active, the jobs submitted, and the work that has come
    by each block less what was done of it before. The prices are its dual values; should the solver fail, those with
    which all work that ends counts in full, and the bound is loose. ``primal_simplex``: see ``dual_values``.
    """
    n_cells, n_blocks = cells.seconds.size, cells.n_blocks
    cell, block, first_work = np.arange(n_cells), np.arange(n_blocks), (2 + len(classes)) * n_cells
    # rows: nodes, places, jobs by class, work by class
    limits_of_rows = [cells.idle, np.full(n_cells, float(max_parallel))]
    costs, new_work = [], []
    scales: list[float] = []
    entries: list[tuple[Any, Any, Any]] = []  # row, column, value
    has_end = np.zeros(len(classes), bool)
    # so that the solver's tolerances mean something
    rate_unit = max(float(job_class.rate.max()) for job_class in classes)
    n_columns = 0
    for number, job_class in enumerate(classes):
        jobs_by, work_by = cells.arrivals(job_class)
        limits_of_rows.append(jobs_by[cells.block].astype(np.float64))
        nodes = hull_counts(reachable(job_class))[1:, None]
        output = cells.seconds * job_class.rate[nodes]  # (hull vertices, C)
        has_end[number] = np.isfinite(work_by[-1])
        running = n_columns + n_blocks * int(has_end[number]) + np.arange(output.size).reshape(output.shape)
        if has_end[number]:
            largest_work = float(job_class.rate.max() * cells.seconds.max())
            # of less work the entries would be out of all proportion
            scale = max(float(work_by[-1]), _LITTLE * largest_work)
            first_row = first_work + len(scales) * n_blocks
            remainder = n_columns + block  # at the end of each block
            entries += [(first_row + block, remainder, 1.0), (first_row + block[1:], remainder[:-1], -1.0)]
            entries.append((first_row + cells.block, running, output / scale))
            new_work.append(np.diff(work_by, prepend=0.0) / scale)
            scales.append(scale)
            costs.append(np.zeros(n_blocks))
        entries += [
            (cell, running, nodes),
            (n_cells + cell, running, 1.0),
            ((2 + number) * n_cells + cell, running, 1.0),
        ]
        costs.append((-output / rate_unit).ravel())
        n_columns = int(running[-1, -1]) + 1
    entry_columns = [[array.ravel() for array in np.broadcast_arrays(*entry)] for entry in entries]
    matrix = Entries(*(np.concatenate(arrays) for arrays in zip(*entry_columns, strict=True)))
    limits = np.concatenate(limits_of_rows + new_work)
    duals = dual_values(np.concatenate(costs), matrix, limits, first_work, primal_simplex=primal_simplex)
    sample = np.zeros((len(classes), n_blocks))
    if duals is None:  # any prices bound: with nodes and places free, work that ends counts in full
        sample[has_end] = 1.0
        return Prices(np.zeros(n_cells), np.zeros(n_cells), sample)
    node_price, slot_price = -np.minimum(duals[: 2 * n_cells], 0.0).reshape(2, n_cells) * rate_unit
    with np.errstate(over="ignore"):  # worth more than a sample is worth one
        worth = np.clip(-duals[first_work:].reshape(-1, n_blocks) * rate_unit / np.array(scales)[:, None], 0.0, 1.0)
    # work that is there earlier is worth no less
    sample[has_end] = np.maximum.accumulate(worth[:, ::-1], axis=1)[:, ::-1]
    return Prices(node_price / cells.seconds, slot_price / cells.seconds, sample)


_FINE = (24, 4)
_COARSE = (12, 3)
"""Blocks of the window, and sizes of the pool in each: for the bound itself, and for the many searched through."""

_MOST_CLASSES = 16
_ALL = 1 - 1e-9
"""Work counts as done from this part of it on: sums of works round."""


def most_samples(classes: tuple[JobClass, ...], max_parallel: int, horizon: Horizon) -> float:
    """Return an upper bound on the samples by the end of ``horizon``: ``max_parallel`` jobs, free rescaling."""
    work_by_end = _samples_by_end(classes, horizon)
    if horizon.most_idle == 0 or work_by_end == 0.0:
        return 0.0
    merged_classes = merge_classes(classes, _MOST_CLASSES)
    cells = Cells.of(horizon, *_FINE)
    prices = fluid_prices(merged_classes, max_parallel, cells)
    return min(work_by_end, _dual_value(merged_classes, max_parallel, horizon, cells, prices))


def _samples_by_end(classes: tuple[JobClass, ...], horizon: Horizon) -> float:
    return sum(float(job_class.work_samples[job_class.submit_us < horizon.end_us].sum()) for job_class in classes)


class _Reach:
    """Repeated test whether jobs can do so much work by some time, on the coarse cells.

    Prices that proved that something is too much mostly prove it of a little more time, too, without a new program.
    """

    def __init__(self, classes: tuple[JobClass, ...], max_parallel: int) -> None:
        self._classes = classes
        self._few = merge_classes(classes, _MOST_CLASSES)
        self._max_parallel = max_parallel
        self._last: tuple[NDArray[np.int64], Prices] | None = None

    def includes(self, samples: float, horizon: Horizon) -> bool:
        """Return whether the upper bound on the samples by the end of ``horizon`` is at least ``samples``."""
        work_by_end = _samples_by_end(self._classes, horizon)
        if horizon.most_idle == 0 or work_by_end == 0.0:
            return samples <= 0.0
        if work_by_end < samples:
            return False
        cells = Cells.of(horizon, *_COARSE)

        def bound(prices: Prices) -> float:
            return _dual_value(self._few, self._max_parallel, horizon, cells, prices)

        if self._last is not None and np.array_equal(cells.block, self._last[0]) and bound(self._last[1]) < samples:
            return False
        prices = fluid_prices(self._few, self._max_parallel, cells, primal_simplex=True)
        if bound(prices) >= samples:
            return True
        self._last = cells.block, prices
        return False


def admission_limit(jobs: Sequence[ElasticJob], max_parallel: int, horizon: Horizon, *, n_known: int = 0) -> int:
    """Return the most of ``jobs`` that can be admitted, first come first served, by the end of ``horizon``.

    When A jobs have been admitted, all but ``max_parallel`` of them are done. So what is missing of their work is no
    more than the largest ``max_parallel`` works among them, and the rest must be within what anyone can make of these A
    jobs alone. So many as ``n_known`` are known to be possible.
    """
    n_submitted = sum(job.submit_us < horizon.end_us for job in jobs)

    def is_impossible(n_admitted: int) -> bool:
        if n_admitted <= n_known:
            return False
        works = np.array([job.work_samples for job in tuple(jobs)[:n_admitted]])
        finite = np.sort(works[np.isfinite(works)])
        may_be_open = max_parallel - (works.size - finite.size)
        if may_be_open < 0:
            return True
        least_output = float(finite[: max(finite.size - may_be_open, 0)].sum())
        classes = job_classes(tuple(jobs)[:n_admitted], horizon.most_idle)
        return not _Reach(classes, max_parallel).includes(least_output * _ALL, horizon)

    return _largest_below(is_impossible, min(max_parallel, n_submitted), n_submitted + 1, 1)


def _largest_below(is_enough: Callable[[int], bool], too_small: int, enough: int, step: int) -> int:
    """Return a number that is too small, at most ``step`` below one that is enough, by halving."""
    while enough - too_small > step:
        middle = (too_small + enough) // 2
        if is_enough(middle):
            enough = middle
        else:
            too_small = middle
    return too_small


def earliest_end_us(
    classes: tuple[JobClass, ...], max_parallel: int, horizon: Horizon, most: float, *, known_us: int | None = None
) -> int | None:
    """Return a lower bound on the end of all work; ``None`` if it cannot be done within ``horizon``.

    Found by halving, to a thousandth of the horizon; each job's own fastest way is looked at as well. ``most`` is
    ``most_samples`` of the same arguments; ``known_us`` is a time by which all work is known to have been done.
    """
    total_work = sum(float(job_class.work_samples.sum()) for job_class in classes)
    if not math.isfinite(total_work) or most < total_work * _ALL:
        return None
    start_us, end_us = int(horizon.start_us[0]), horizon.end_us
    with np.errstate(over="ignore"):  # longer than any time
        alone_us = max(
            float((job_class.submit_us + job_class.work_samples / float(job_class.rate.max()) * 1e6).max())
            for job_class in classes
        )
    too_early = max(start_us, math.floor(min(alone_us, end_us)))
    reach = _Reach(classes, max_parallel)

    def is_enough(time_us: int) -> bool:
        if known_us is not None and time_us > known_us:
            return True
        return reach.includes(total_work * _ALL, horizon.until(time_us))

    if too_early > start_us and is_enough(too_early):
        return too_early
    return _largest_below(is_enough, too_early, end_us, max((end_us - start_us) // 1000, 1))


def _dual_value(
    classes: tuple[JobClass, ...], max_parallel: int, horizon: Horizon, cells: Cells, prices: Prices
) -> float:
    """Return the Lagrangian: the cost of all nodes, places and samples, plus what each job could gain beyond."""
    node_price, slot_price, sample = prices
    value = float((node_price[cells.cell] * horizon.idle * horizon.seconds).sum())
    value += max_parallel * float((slot_price * cells.seconds).sum())
    for job_class, price in zip(classes, sample, strict=True):
        jobs_by, _ = cells.arrivals(job_class)
        price_of_job = price[cells.block_of_job(job_class)]
        has_price = price_of_job > 0  # work without end has no price
        value += float((price_of_job[has_price] * job_class.work_samples[: price_of_job.size][has_price]).sum())
        best_gain = _best_gain(job_class, node_price, slot_price, price[cells.block])
        value += float((jobs_by[cells.block] * best_gain * cells.seconds).sum())
    return value


@compiled
def _best_gain(
    jobs: JobClass, node: NDArray[np.float64], slot: NDArray[np.float64], sample: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the most that one job gains per second in each cell, ``(C,)``: its samples' worth less all prices."""
    best = np.zeros(node.size)
    for cell in range(node.size):
        for count in range(jobs.min_nodes, jobs.rate.size):
            best[cell] = max(best[cell], (1.0 - sample[cell]) * jobs.rate[count] - node[cell] * count - slot[cell])
    return best
