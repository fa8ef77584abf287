"""How many nodes are idle together, and for how long without a break."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.idleness.pool import PoolSeries
from bfreplay.datasets.idleness.quantiles import MEDIAN, Quantiles, named, quantiles
from bfreplay.documents import Json

_US = 1_000_000


@dataclass(frozen=True, slots=True)
class Width:
    """The stretches of time in which at least ``nodes`` nodes are idle without a break.

    Which nodes they are may change on the way: a stretch is what a job that needs so many nodes, and may move when
    one of them is reclaimed, would run.

    Parameters
    ----------
    nodes
        At least so many idle.
    time_us
        Length of all stretches together.
    window_us
        Length of the window.
    stretches, cut
        How many there are, and how many of them (0, 1 or 2) are cut by an edge of the window.
    length_s
        Quantiles of their lengths. A cut one counts with the length seen, a lower bound.
    """

    nodes: int
    time_us: int
    window_us: int
    stretches: int
    cut: int
    length_s: Quantiles

    @property
    def share_of_time(self) -> float:
        """Share of the window with at least ``nodes`` idle."""
        return self.time_us / self.window_us

    @property
    def mean_s(self) -> float | None:
        """Mean length of a stretch; ``None`` when there is none."""
        return self.time_us / self.stretches / _US if self.stretches else None

    @property
    def median_s(self) -> float | None:
        """Median length of a stretch; ``None`` when there is none."""
        return self.length_s[MEDIAN] if self.length_s else None

    def to_dict(self) -> dict[str, Json]:
        """JSON-ready."""
        return {
            "nodes": self.nodes,
            "share_of_time": self.share_of_time,
            "stretches": self.stretches,
            "cut_stretches": self.cut,
            "mean_stretch_s": self.mean_s,
            "stretch_s": named(self.length_s),
        }


def widths(pool: PoolSeries, n_nodes: int) -> tuple[Width, ...]:
    """One `Width` for each power of two up to the machine's ``n_nodes``."""
    return tuple(_width(pool, 1 << k) for k in range(n_nodes.bit_length()))


def _width(pool: PoolSeries, nodes: int) -> Width:
    is_wide = np.concatenate([[False], pool.idle >= nodes, [False]])
    change = np.flatnonzero(is_wide[1:] != is_wide[:-1])
    bounds: NDArray[np.int64] = np.append(pool.time_us, pool.end_us)
    begin, end = bounds[change[::2]], bounds[change[1::2]]
    is_cut = (change[::2] == 0).astype(np.int64) + (change[1::2] == len(pool.idle))
    length = end - begin
    lasts = length > 0  # one that begins with the very end of the window is none
    ordered = np.sort(length[lasts])
    return Width(
        nodes=nodes,
        time_us=int(ordered.sum()),
        window_us=pool.end_us - pool.start_us,
        stretches=len(ordered),
        cut=int(np.count_nonzero(is_cut[lasts])),
        length_s=quantiles(ordered, unit=_US),
    )
