"""Exact quantiles of whole numbers with whole-number weights, and counts of how often each number occurs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

PERCENTS = (0, 5, 25, 50, 75, 95, 100)
"""The percentiles of every `Quantiles`."""

MEDIAN = PERCENTS.index(50)
"""Place of the median in a `Quantiles`."""

Quantiles = tuple[float, ...]
"""Values at `PERCENTS`; empty without values. Each is a value that occurred: the smallest one that at least
that share of the weight does not exceed."""


def quantiles(values: NDArray[np.int64], weight: NDArray[np.int64] | None = None, unit: int = 1) -> Quantiles:
    """Return quantiles of ascending values with whole-number weights (1 each by default), divided by ``unit``."""
    cumulative = np.arange(1, len(values) + 1) if weight is None else np.cumsum(weight)
    total = int(cumulative[-1]) if len(cumulative) else 0
    if total == 0:
        return ()
    ranks = [max(1, -(-percent * total // 100)) for percent in PERCENTS]
    return tuple(float(values[np.searchsorted(cumulative, rank)]) / unit for rank in ranks)


MERGED = 1 << 18
"""Least number of values that `Counted` sorts at once."""


class Counted:
    """Whole numbers by how often each occurs: memory grows with the distinct ones, not with all of them."""

    def __init__(self, values: NDArray[np.int64] | None = None) -> None:
        self.values: NDArray[np.int64] = np.empty(0, np.int64)
        self.counts: NDArray[np.int64] = np.empty(0, np.int64)
        self._new: list[NDArray[np.int64]] = []
        self._n_new = 0
        if values is not None:
            self.add(values)

    def add(self, values: NDArray[np.int64]) -> None:
        """Count more values, in any order."""
        self._new.append(values)
        self._n_new += len(values)
        if self._n_new >= max(MERGED, len(self.values)):  # in proportion, so that many distinct ones cost no more
            self.merge()

    def merge(self) -> Counted:
        """Return itself with all that was added in ``values``, ascending, and ``counts``."""
        distinct_values, multiplicity = np.unique(np.concatenate([*self._new, self.values[:0]]), return_counts=True)
        values, place = np.unique(np.concatenate([self.values, distinct_values]), return_inverse=True)
        counts = np.zeros(len(values), np.int64)
        np.add.at(counts, place, np.concatenate([self.counts, multiplicity]))
        self.values, self.counts, self._new, self._n_new = values, counts, [], 0
        return self

    @property
    def total(self) -> int:
        """Number of values."""
        return int(self.merge().counts.sum())

    def up_to(self, edges: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the number and the sum of the values up to each edge, ``(E,)`` both."""
        self.merge()
        last = np.searchsorted(self.values, edges, side="right")
        number, sums = (np.append(0, np.cumsum(column)) for column in (self.counts, self.counts * self.values))
        return number[last], sums[last]

    def quantiles(self, unit: int = 1) -> Quantiles:
        """Return the quantiles of the values, divided by ``unit``."""
        self.merge()
        return quantiles(self.values, self.counts, unit)


def by_percentile(values: Sequence[float]) -> dict[str, float]:
    """Return quantiles by name, ``{"p0": ..., "p5": ..., ...}``; empty without values."""
    return {f"p{percent}": value for percent, value in zip(PERCENTS, values, strict=False)}
