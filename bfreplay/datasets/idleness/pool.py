"""Number of idle nodes as a step function of time, whole or in columns, and the time with at least 1, 2, 4, ..."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.idleness.quantiles import MEDIAN, Counted, Quantiles, by_percentile
from bfreplay.datasets.times import US
from bfreplay.documents import Json, pick

TIMELINE_COLUMNS = 1_000
"""Columns of a `Timeline`: about the pixels across a picture."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """Idle nodes over C equal parts of the window, so that a picture keeps every peak and trough.

    Parameters
    ----------
    edges_us
        C+1 times, microseconds since the epoch; equal parts but for rounding to whole microseconds.
    least, most
        Fewest and most idle nodes at any instant of each part, its end excluded.
    node_us
        Integral of idle nodes over each part.
    """

    edges_us: tuple[int, ...]
    least: tuple[int, ...]
    most: tuple[int, ...]
    node_us: tuple[int, ...]

    @property
    def mean(self) -> tuple[float, ...]:
        """Mean idle nodes of each part."""
        spans = zip(self.edges_us, self.edges_us[1:], self.node_us, strict=False)
        return tuple(node_us / (end - start) for start, end, node_us in spans)


class StepColumns:
    """A step function of whole numbers in columns of time, part of the window by part.

    Attributes
    ----------
    edge_us : (C+1,) int64
        Edges of the columns: from the start to the end of the window, strictly increasing.
    least, most, area_us : (C,) int64
        Lowest and highest step that lasts in each column for any time, and integral over the column. A column without
        any has the largest number of 64 bits, -1 and 0.
    """

    def __init__(self, edge_us: NDArray[np.int64]) -> None:
        self.edge_us = edge_us
        n_columns = len(edge_us) - 1
        self.least, self.most = np.full(n_columns, np.iinfo(np.int64).max), np.full(n_columns, -1)
        self.area_us = np.zeros(n_columns, np.int64)

    def add(self, edge_us: NDArray[np.int64], height: NDArray[np.int64]) -> None:
        """Add a part of the window: ``height (T,)`` between ``edge_us (T+1,)``, ascending."""
        edges = np.clip(self.edge_us, edge_us[0], edge_us[-1])
        columns = np.flatnonzero(np.diff(edges))
        first = np.searchsorted(edge_us, edges[columns], side="right") - 1
        last = np.searchsorted(edge_us, edges[columns + 1], side="left")  # exclusive
        pairs = np.column_stack([first, last]).ravel()
        heights = np.append(height, 0)  # reduceat wants every index inside
        self.least[columns] = np.minimum(self.least[columns], np.minimum.reduceat(heights, pairs)[::2])
        self.most[columns] = np.maximum(self.most[columns], np.maximum.reduceat(heights, pairs)[::2])
        area_to_us = np.append(0, np.cumsum(height * np.diff(edge_us)))
        ends = area_to_us[last] - height[last - 1] * (edge_us[last] - edges[columns + 1])
        starts = area_to_us[first] + height[first] * (edges[columns] - edge_us[first])
        self.area_us[columns] += ends - starts


@dataclass(frozen=True, slots=True, eq=False)
class PoolSeries:
    """Idle nodes over a window, or a part of it: ``idle[i]`` from ``time_us[i]`` to the next time, or to the end.

    Parameters
    ----------
    end_us
        End of the window.
    time_us
        ``(E+1,) int64``, ascending, none twice: the start of the window, then the pool events.
    idle
        ``(E+1,) int64``: idle nodes at the start, then right after each event.
    joined, reclaimed
        ``(E,) int64``: nodes that change at each event.
    reached_us
        ``(E+1,) int64``: integral of idle nodes from the start to each time, node-microseconds.
    """

    end_us: int
    time_us: NDArray[np.int64]
    idle: NDArray[np.int64]
    joined: NDArray[np.int64]
    reclaimed: NDArray[np.int64]
    reached_us: NDArray[np.int64]

    @classmethod
    def of_changes(
        cls,
        start_us: int,
        end_us: int | None,
        n_idle: int,
        stamp: NDArray[np.int64],
        joins: NDArray[np.int64],
        reclaims: NDArray[np.int64],
    ) -> PoolSeries:
        """Accumulate ``(E,)`` changes after ``n_idle`` nodes at the start; it ends with the last one by default."""
        time_us = np.concatenate([np.array([start_us], np.int64), stamp])
        idle = n_idle + np.concatenate([np.zeros(1, np.int64), np.cumsum(joins - reclaims)])
        integral_us = np.concatenate([np.zeros(1, np.int64), np.cumsum(idle[:-1] * np.diff(time_us))])
        return cls(int(time_us[-1]) if end_us is None else end_us, time_us, idle, joins, reclaims, integral_us)

    @property
    def start_us(self) -> int:
        """Start of the window."""
        return int(self.time_us[0])

    @property
    def stamp_us(self) -> NDArray[np.int64]:
        """Times of the pool events, ``(E,)``."""
        return self.time_us[1:]

    def time_at(self, n_nodes: int) -> NDArray[np.int64]:
        """Return the microseconds with exactly 0, 1, ..., ``n_nodes`` idle nodes, ``(n_nodes+1,)``."""
        time_at = np.zeros(n_nodes + 1, np.int64)
        np.add.at(time_at, self.idle, np.diff(self.time_us, append=self.end_us))
        return time_at

    def node_us_to(self, time_us: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the integral of idle nodes from the start of the window to each of these times, node-microseconds."""
        index = np.searchsorted(self.time_us, time_us, side="right") - 1
        return self.reached_us[index] + self.idle[index] * (time_us - self.time_us[index])


@dataclass(frozen=True, slots=True)
class Width:
    """Stretches of time in which at least ``nodes`` nodes are idle without a break.

    The nodes may change on the way: a stretch is the time that a job of this width could run, if it may move when a
    node is reclaimed.

    Parameters
    ----------
    nodes
        Least number of idle nodes.
    time_us
        Length of all stretches together.
    window_us
        Length of the window.
    stretches, cut
        Number of stretches, and of those (0, 1 or 2) cut by an edge of the window.
    length_s
        Quantiles of their lengths; censored ones count with the length seen, a lower bound.
    """

    nodes: int
    time_us: int
    window_us: int
    stretches: int
    censored: int
    length_s: Quantiles

    @property
    def share_of_time(self) -> float:
        """Share of the window with at least ``nodes`` idle."""
        return self.time_us / self.window_us

    @property
    def mean_s(self) -> float | None:
        """Mean length of a stretch; ``None`` if there is none."""
        return self.time_us / self.stretches / US if self.stretches else None

    @property
    def median_s(self) -> float | None:
        """Median length of a stretch; ``None`` if there is none."""
        return self.length_s[MEDIAN] if self.length_s else None

    def to_dict(self) -> dict[str, Json]:
        """Return JSON-ready values."""
        return {
            **pick(self, "nodes", "share_of_time", "stretches"),
            "censored_stretches": self.censored,
            "mean_stretch_s": self.mean_s,
            "stretch_s": by_percentile(self.length_s),
        }


class WidthTally:
    """Stretches with at least ``nodes`` idle, part of the window by part."""

    def __init__(self, nodes: int, window_start_us: int) -> None:
        self._nodes = nodes
        self._start_us = window_start_us
        self._since_us: int | None = None  # of a stretch that goes on after the last part
        self._length_us = Counted()
        self._censored = 0

    def add(self, pool_series: PoolSeries) -> None:
        """Add the next part."""
        is_wide = np.concatenate([[False], pool_series.idle >= self._nodes, [False]])
        change = np.flatnonzero(is_wide[1:] != is_wide[:-1])
        begin = pool_series.time_us[change[::2]]
        if begin.size and self._since_us is not None:
            begin[0] = self._since_us
        self._since_us = int(begin[-1]) if is_wide[-2] else None
        ends = begin[:-1] if is_wide[-2] else begin
        self._length_us.add(pool_series.time_us[change[1::2][: ends.size]] - ends)
        self._censored += int(np.count_nonzero(ends == self._start_us))

    def width(self, end_us: int) -> Width:
        """Return the figures, with the end of the window."""
        if self._since_us is not None and self._since_us < end_us:  # one that begins at the end does not count
            self._length_us.add(np.array([end_us - self._since_us]))
            self._censored += 1
        length_us = self._length_us.merge()
        return Width(
            nodes=self._nodes,
            time_us=int(length_us.values @ length_us.counts),
            window_us=end_us - self._start_us,
            stretches=length_us.total,
            censored=self._censored,
            length_s=length_us.quantiles(US),
        )
