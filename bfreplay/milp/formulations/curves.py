"""Values of counts as piecewise-linear curves: stretches of allowed counts, kinks, and weights at breakpoints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.model import Columns, Rows, SpecialOrderedSet
from bfreplay.milp.problem import AllocationProblem


@dataclass(frozen=True, slots=True)
class Stretches:
    """Job, first and last count of stretches of counts, ordered by job, then count: three ``(S,)`` int64 arrays."""

    job: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]

    @classmethod
    def of(cls, bounds: Sequence[tuple[int, int, int]]) -> Stretches:
        """Return the stretches of (job, first count, last count)."""
        table = np.array(bounds, dtype=np.int64).reshape(-1, 3)
        return cls(table[:, 0], table[:, 1], table[:, 2])

    def holds(self, counts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """``(S,)``: whether each holds its job's count in ``counts (J,)``."""
        count = counts[self.job]
        return (self.first <= count) & (count <= self.last)


def neighbours(counts: NDArray[np.int64]) -> list[tuple[int, int]]:
    """First and last of each run of neighbouring numbers in ``counts``, which ascend."""
    runs = np.split(counts, np.flatnonzero(np.diff(counts) > 1) + 1)
    return [(int(run[0]), int(run[-1])) for run in runs if run.shape[0] > 0]


def allowed_stretches(problem: AllocationProblem) -> Stretches:
    """Return every job's runs of allowed counts; a job without any has the stretch 0, which is not allowed."""
    bounds: list[tuple[int, int, int]] = []
    for job_index, is_allowed in enumerate(problem.value > -np.inf):
        runs = neighbours(np.flatnonzero(is_allowed)) or [(0, 0)]
        bounds.extend((job_index, *run) for run in runs)
    return Stretches.of(bounds)


STRAIGHT = 1e-13
"""A second difference below this share of the curve's largest magnitude is rounding, not a kink."""

EXACT = 1e-10
"""Largest interpolation error at any count, as that share; with a larger one every count is kept."""


def kinks(table: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the counts at which ``table`` (value at 0, 1, ..., k) bends, with both ends, ascending.

    Linear interpolation between them gives the table back at every whole count.
    """
    last = table.shape[0] - 1
    if last <= 1:
        return np.arange(last + 1)
    scale = float(np.abs(table).max())
    bends = np.flatnonzero(np.abs(np.diff(table, n=2)) > STRAIGHT * scale) + 1
    points = np.concatenate(([0], bends, [last]))
    counts = np.arange(last + 1)
    error = np.abs(np.interp(counts, points, table[points]) - table).max()
    return points if error <= EXACT * scale else counts


@dataclass(frozen=True, slots=True)
class WeightedCurves:
    """The weights of all jobs' breakpoints, B in all, ordered by job, then count.

    Parameters
    ----------
    points
        For each job the counts at its breakpoints, ascending.
    owner, point : (B,) int64
        Job and count of each.
    column : (B,) int64
        Column of its weight.
    curve_row
        First of J rows ``sum_b b weight[j, b] = 0``, to which the caller adds minus the count.
    """

    points: Sequence[NDArray[np.int64]]
    owner: NDArray[np.int64]
    point: NDArray[np.int64]
    column: NDArray[np.int64]
    curve_row: int

    @property
    def sets(self) -> tuple[SpecialOrderedSet, ...]:
        """An SOS2 for each job with more than one breakpoint."""
        ends = np.cumsum([len(point) for point in self.points])
        return tuple(
            SpecialOrderedSet(2, self.column[stop - len(of_job) : stop], of_job.astype(np.float64))
            for stop, of_job in zip(ends.tolist(), self.points, strict=True)
            if len(of_job) > 1
        )

    def weights_at(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """``(B,)``: the weights that interpolate at ``counts (J,)``, which lie within each job's breakpoints."""
        return np.concatenate(
            [_hats(of_job, count) for of_job, count in zip(self.points, counts.tolist(), strict=True)]
        )


def add_weighted_curves(
    columns: Columns, rows: Rows, gain: NDArray[np.float64], points: Sequence[NDArray[np.int64]]
) -> WeightedCurves:
    """Add ``weight[j, b] >= 0``, worth ``gain[j, b]``, and the rows ``convex[j]`` and ``curve[j]``.

    ``sum_b weight[j, b] = 1`` and ``sum_b b weight[j, b] = count_j``, whose right-hand side is left to the caller.
    """
    owner = np.repeat(np.arange(len(points)), [len(point) for point in points])
    point = np.concatenate(points)
    column = columns.add("weight", owner, point, objective=gain[owner, point], integer=False)
    convex = rows.add("convex", len(points), 1.0, 1.0)
    rows.put(convex + owner, column, 1.0)
    curve = rows.add("curve", len(points), 0.0, 0.0)
    rows.put(curve + owner, column, point.astype(np.float64))
    return WeightedCurves(points, owner, point, column, curve)


@dataclass(frozen=True, slots=True)
class ValueCurves:
    """Curves of what counts are worth, and the stretches of allowed counts with the columns of their binaries."""

    curves: WeightedCurves
    stretches: Stretches
    column: NDArray[np.int64]


def add_value_curves(columns: Columns, rows: Rows, problem: AllocationProblem) -> ValueCurves:
    """Add the weights of ``add_weighted_curves`` for f_j, with a binary for each stretch of allowed counts.

    Breakpoints of job j are the kinks of f_j in each of its stretches, and what it holds now where that is in one, so
    that no piece goes past it. ``stretch[j, a]``, binary, says that its count is in the stretch that begins at a:
    ``sum_b weight[j, b] = stretch[j, a]`` over the breakpoints in it. As the weights of a job sum up to 1 it has one
    stretch, and no count in a gap. A jump between neighbouring counts is a steep piece without a count inside. Without
    sets and whole numbers the curve is the concave hull of f_j.
    """
    stretches, is_allowed = allowed_stretches(problem), problem.value > -np.inf
    worth = np.where(is_allowed, problem.value, 0.0)
    of_job: list[list[NDArray[np.int64]]] = [[] for _ in range(problem.n_jobs)]
    for job_index, first, last in zip(stretches.job, stretches.first, stretches.last, strict=True):
        bends = first + kinks(worth[job_index, first : last + 1])
        current = problem.current[job_index]
        of_job[job_index].append(np.union1d(bends, current) if first < current < last else bends)
    curves = add_weighted_curves(columns, rows, worth, [np.concatenate(bends) for bends in of_job])
    column = columns.add(
        "stretch", stretches.job, stretches.first, upper=is_allowed[stretches.job, stretches.first].astype(np.float64)
    )
    row = rows.add("stretch", column.shape[0], 0.0, 0.0, stretches.job, stretches.first)
    rows.put(row + np.arange(column.shape[0]), column, -1.0)
    width = problem.value.shape[1]
    starts, places = stretches.job * width + stretches.first, curves.owner * width + curves.point
    rows.put(row + np.searchsorted(starts, places, side="right") - 1, curves.column, 1.0)
    return ValueCurves(curves, stretches, column)


def _hats(points: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    weight = np.zeros(points.shape[0])
    right = int(np.searchsorted(points, count))
    weight[right] = 1.0
    if points[right] != count:
        share = (count - points[right - 1]) / (points[right] - points[right - 1])
        weight[right - 1 : right + 1] = 1.0 - share, share
    return weight
