"""Jobs with work that ends: what anyone could make of them with free rescaling, and the earliest end of all work.

The window is cut into cells. A linear program over them gives prices: of a node and of an active job in each cell, and
of a sample still to be done in each block of time. The bound is the Lagrangian function at these prices, interval by
interval on the curves themselves. It holds for any prices, so neither the cells nor the solver's tolerances can make it
too low.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.bounds.cells import Cells
from bfreplay.bounds.fluid_program import fluid_prices
from bfreplay.bounds.horizon import Horizon
from bfreplay.bounds.job_classes import JobClass, job_classes, merged
from bfreplay.workload import ElasticJob

_FINE = (24, 4)
_COARSE = (12, 3)
"""Blocks of the window, and sizes of the pool in each: for the bound itself, and for the many searched through."""

_MOST_CLASSES = 16
_ALL = 1 - 1e-9
"""Work counts as done from this part of it on: sums of works round."""


def most_samples(
    classes: tuple[JobClass, ...], max_parallel: int, horizon: Horizon, grid: tuple[int, int] = _FINE
) -> float:
    """Upper bound on the samples by the end of ``horizon``, at most ``max_parallel`` jobs at once, free rescaling."""
    submitted = sum(float(each.work_samples[each.submit_us < horizon.end_us].sum()) for each in classes)
    if horizon.most_idle == 0 or submitted == 0.0:
        return 0.0
    few = merged(classes, _MOST_CLASSES)
    cells = Cells.of(horizon, *grid)
    duals = fluid_prices(few, max_parallel, cells)
    return min(submitted, _dual_value(few, max_parallel, horizon, cells, *duals))


def most_admitted(jobs: Sequence[ElasticJob], max_parallel: int, horizon: Horizon) -> int:
    """How many of ``jobs``, first come first served, can have been admitted at most by the end of ``horizon``.

    When A jobs have been admitted, all but ``max_parallel`` of them are done. So what is missing of their work is no
    more than the largest ``max_parallel`` works among them, and the rest must be within what anyone can make of these A
    jobs alone.
    """
    n_submitted = sum(job.submit_us < horizon.end_us for job in jobs)
    possible, impossible = min(max_parallel, n_submitted), n_submitted + 1
    while impossible - possible > 1:
        admitted = (possible + impossible) // 2
        work = np.array([job.work_samples for job in jobs[:admitted]])
        finite = np.sort(work[np.isfinite(work)])
        may_be_open = max_parallel - (work.size - finite.size)
        if may_be_open < 0:
            impossible = admitted
            continue
        done = float(finite[: max(finite.size - may_be_open, 0)].sum())
        classes = job_classes(jobs[:admitted], horizon.most_idle)
        if most_samples(classes, max_parallel, horizon, _COARSE) < done * _ALL:
            impossible = admitted
        else:
            possible = admitted
    return possible


def earliest_end_us(classes: tuple[JobClass, ...], max_parallel: int, horizon: Horizon) -> int | None:
    """A time before which nobody can have done all work; ``None`` where it cannot be done within ``horizon``.

    Found by halving, to a thousandth of the horizon; each job's own fastest way is looked at as well.
    """
    work = sum(float(each.work_samples.sum()) for each in classes)
    if not math.isfinite(work) or most_samples(classes, max_parallel, horizon) < work * _ALL:
        return None
    start_us, end_us = int(horizon.start_us[0]), horizon.end_us
    with np.errstate(over="ignore"):  # longer than any time
        alone_us = max(
            float((each.submit_us + each.work_samples / float(each.rate.max()) * 1e6).max()) for each in classes
        )
    too_early, enough = max(start_us, math.floor(min(alone_us, end_us))), end_us
    step = max((end_us - start_us) // 1000, 1)
    if too_early > start_us and most_samples(classes, max_parallel, horizon.until(too_early), _COARSE) >= work * _ALL:
        return too_early
    while enough - too_early > step:
        middle = (too_early + enough) // 2
        if most_samples(classes, max_parallel, horizon.until(middle), _COARSE) < work * _ALL:
            too_early = middle
        else:
            enough = middle
    return too_early


def _dual_value(
    classes: tuple[JobClass, ...],
    max_parallel: int,
    horizon: Horizon,
    cells: Cells,
    node: NDArray[np.float64],
    slot: NDArray[np.float64],
    sample: NDArray[np.float64],
) -> float:
    """The Lagrangian function: what all nodes, places and samples cost, and what each job could gain beyond."""
    value = float((node[cells.cell] * horizon.idle * horizon.seconds).sum())
    value += max_parallel * float((slot * cells.seconds).sum())
    for each, price in zip(classes, sample, strict=True):
        jobs_by, _ = cells.arrivals(each)
        of_job = price[cells.block_of_job(each)]
        priced = of_job > 0  # work without end has no price
        value += float((of_job[priced] * each.work_samples[: of_job.size][priced]).sum())
        gain = _best_gain(each.rate, each.min_nodes, node, slot, price[cells.block])
        value += float((jobs_by[cells.block] * gain * cells.seconds).sum())
    return value


@compiled
def _best_gain(
    rate: NDArray[np.float64],
    min_nodes: int,
    node: NDArray[np.float64],
    slot: NDArray[np.float64],
    sample: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Most that one job gains a second in each cell, ``(C,)``: its samples at what they are worth, less all prices."""
    best = np.zeros(node.size)
    for c in range(node.size):
        for n in range(min_nodes, rate.size):
            best[c] = max(best[c], (1.0 - sample[c]) * rate[n] - node[c] * n - slot[c])
    return best
