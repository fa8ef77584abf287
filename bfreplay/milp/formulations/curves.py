"""Curves of many jobs at their breakpoints, as weights of which two neighbours at most are non-zero (SOS2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.formulations.entries import Columns, Rows
from bfreplay.milp.model import SpecialOrderedSet


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
        ends = np.cumsum([len(each) for each in self.points])
        return tuple(
            SpecialOrderedSet(2, self.column[end - len(each) : end], each.astype(np.float64))
            for end, each in zip(ends.tolist(), self.points, strict=True)
            if len(each) > 1
        )

    def weights_at(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """``(B,)``: the weights that interpolate at ``counts (J,)``, which lie within each job's breakpoints."""
        return np.concatenate([_hats(each, n) for each, n in zip(self.points, counts.tolist(), strict=True)])


def add_weighted_curves(
    columns: Columns, rows: Rows, gain: NDArray[np.float64], points: Sequence[NDArray[np.int64]]
) -> WeightedCurves:
    """Add ``weight[j, b] >= 0``, worth ``gain[j, b]``, and the rows ``convex[j]`` and ``curve[j]``.

    ``sum_b weight[j, b] = 1`` and ``sum_b b weight[j, b] = count_j``, whose right-hand side is left to the caller.
    """
    owner = np.repeat(np.arange(len(points)), [len(each) for each in points])
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
