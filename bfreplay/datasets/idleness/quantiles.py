"""Exact quantiles of whole numbers with whole-number weights."""

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


def quantiles(ordered: NDArray[np.int64], weight: NDArray[np.int64] | None = None, unit: int = 1) -> Quantiles:
    """Return quantiles of ascending values with whole-number weights (1 each by default), divided by ``unit``."""
    reached = np.arange(1, len(ordered) + 1) if weight is None else np.cumsum(weight)
    total = int(reached[-1]) if len(reached) else 0
    if total == 0:
        return ()
    needed = [max(1, -(-percent * total // 100)) for percent in PERCENTS]
    return tuple(float(ordered[np.searchsorted(reached, n)]) / unit for n in needed)


def by_percentile(values: Sequence[float]) -> dict[str, float]:
    """Return quantiles by name, ``{"p0": ..., "p5": ..., ...}``; empty without values."""
    return {f"p{percent}": value for percent, value in zip(PERCENTS, values, strict=False)}
