"""Bursts: the nodes that join the idle nodes, or are reclaimed from them, at one time stamp."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.idleness.quantiles import Quantiles, by_percentile, quantiles
from bfreplay.datasets.times import DAY_US
from bfreplay.documents import Json, pick

BURST_SHARES: tuple[tuple[int, int], ...] = ((1, 10), (1, 4), (1, 2))
"""Shares of the idle nodes that a burst may reach, as numerator and denominator."""


@dataclass(frozen=True, slots=True)
class LargeBursts:
    """Bursts of at least ``share`` of the idle nodes (as text in ``label``: ``"1/10"``)."""

    label: str
    share: float
    count: int
    nodes: int
    window_us: int

    @property
    def per_day(self) -> float:
        """Bursts per day of the window."""
        return self.count * DAY_US / self.window_us

    @property
    def mean_nodes(self) -> float:
        """Mean nodes in a burst; 0 if there is none."""
        return self.nodes / self.count if self.count else 0.0


@dataclass(frozen=True, slots=True)
class Bursts:
    """Bursts of nodes that change at one time stamp.

    Parameters
    ----------
    count, mean_nodes, nodes
        Time stamps with such a change; mean and quantiles of the nodes at each.
    at_least
        (n, time stamps with at least n nodes) for n = 1, 2, 4, ... up to the largest burst.
    large
        Bursts by their share of the idle nodes: for reclaims right before, for joins right after.
    """

    count: int
    mean_nodes: float
    nodes: Quantiles
    at_least: tuple[tuple[int, int], ...]
    large: tuple[LargeBursts, ...]

    def to_dict(self) -> dict[str, Json]:
        """Return JSON-ready values."""
        return {
            "events": self.count,
            "mean_nodes": self.mean_nodes,
            "nodes": by_percentile(self.nodes),
            "at_least": [{"nodes": nodes, "events": count} for nodes, count in self.at_least],
            "of_idle_nodes": [
                {"at_least": of.label, "share": of.share, "events": of.count, **pick(of, "per_day", "mean_nodes")}
                for of in self.large
            ],
        }


def bursts(changed: NDArray[np.int64], idle: NDArray[np.int64], window_us: int) -> Bursts:
    """Return the bursts of ``changed`` nodes at each pool event, ``(E,)``, out of ``idle`` nodes, ``(E,)``."""
    is_burst = changed > 0
    size, of = changed[is_burst], idle[is_burst]
    ordered = np.sort(size)
    count, nodes = len(size), int(size.sum())
    powers = [1 << k for k in range(int(ordered[-1]).bit_length())] if count else []
    large = []
    for above, below in BURST_SHARES:
        reached = size[size * below >= of * above]
        large.append(LargeBursts(f"{above}/{below}", above / below, len(reached), int(reached.sum()), window_us))
    return Bursts(
        count=count,
        mean_nodes=nodes / count if count else 0.0,
        nodes=quantiles(ordered),
        at_least=tuple((n, count - int(np.searchsorted(ordered, n, side="left"))) for n in powers),
        large=tuple(large),
    )
