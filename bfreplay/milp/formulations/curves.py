"""Parts that formulations share: kinks of value curves, curves as weighted points, and the start of a solve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.model import Columns, Rows, SpecialOrderedSet
from bfreplay.milp.problem import AllocationProblem


def start_counts(problem: AllocationProblem) -> NDArray[np.int64] | None:
    """``(J,)``: every job keeps what it holds, or stops where it may not run on that; ``None`` if it may not either.

    (A job may be left below its minimum by nodes taken back, and held above 0 by a change limit.) The counts are
    feasible: their sum is at most that of ``problem.current``.
    """
    job_index = np.arange(problem.n_jobs)
    inside = np.minimum(problem.current, problem.gain.shape[1] - 1)
    keeps = (inside == problem.current) & (problem.value[job_index, inside] > -np.inf)
    if not (keeps | (problem.value[:, 0] > -np.inf)).all():
        return None
    return np.where(keeps, problem.current, 0)


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


def _hats(points: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    weight = np.zeros(points.shape[0])
    right = int(np.searchsorted(points, count))
    weight[right] = 1.0
    if points[right] != count:
        share = (count - points[right - 1]) / (points[right] - points[right - 1])
        weight[right - 1 : right + 1] = 1.0 - share, share
    return weight
