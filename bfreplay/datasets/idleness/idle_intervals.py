"""Idle intervals by length: one node idle without a break."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bfreplay.datasets.idleness.quantiles import Counted
from bfreplay.datasets.times import HOUR_US, US
from bfreplay.documents import Json, pick

IDLE_INTERVAL_BINS: tuple[tuple[str, int | None], ...] = (
    ("<= 1 min", 60),
    ("1-5 min", 300),
    ("5-15 min", 900),
    ("15-60 min", 3_600),
    ("1-4 h", 14_400),
    ("4-24 h", 86_400),
    ("> 1 day", None),
)
"""Label and upper edge (s, inclusive) of each bin of idle interval lengths."""

LONGER_THAN: tuple[tuple[str, int], ...] = (
    ("1 min", 60),
    ("2 min", 120),
    ("5 min", 300),
    ("10 min", 600),
    ("15 min", 900),
    ("30 min", 1_800),
    ("1 h", 3_600),
    ("2 h", 7_200),
    ("4 h", 14_400),
    ("8 h", 28_800),
    ("12 h", 43_200),
    ("1 day", 86_400),
)
"""Label and seconds of each threshold length."""

SPECTRUM_OVER_US = np.array([0, *(round(US * 2 ** (k / 2)) for k in range(46))], np.int64)
"""Lower edges of the B fine bins, ``(B,)``: two a doubling, from 0 and 1 s to 69 days.

Bin k holds lengths over ``SPECTRUM_OVER_US[k]`` and up to ``SPECTRUM_OVER_US[k + 1]``; the last one all above its edge.
"""
SPECTRUM_OVER_US.flags.writeable = False
_LAST_UP_TO_US = US * 2**23  # 97 days: upper edge of the last bin if no idle interval is longer

HEADLINE_S = 600
"""First length of an idle interval in the paragraph; the second is an hour."""


class NodeTime:
    """Base of records of node-time."""

    __slots__ = ()
    node_us: int

    @property
    def node_hours(self) -> float:
        """Node-time in hours."""
        return self.node_us / HOUR_US


@dataclass(frozen=True, slots=True)
class IdleIntervalBin(NodeTime):
    """Complete idle intervals longer than the bin before and at most ``up_to_s`` (``None``: no limit)."""

    label: str
    up_to_s: int | None
    count: int
    node_us: int

    def to_dict(self) -> dict[str, Json]:
        """Return JSON-ready values."""
        return pick(self, "label", "up_to_s", "count", "node_hours")


@dataclass(frozen=True, slots=True)
class CensoredIdleIntervals(NodeTime):
    """Idle intervals cut by an edge of the window: lower bounds, which no quantile or bin counts."""

    open_at_start: int
    open_at_end: int
    open_at_both: int
    node_us: int

    @property
    def count(self) -> int:
        """Number of them; an idle interval that spans the whole window counts once."""
        return self.open_at_start + self.open_at_end + self.open_at_both

    def to_dict(self) -> dict[str, Json]:
        """Return JSON-ready values."""
        return pick(self, "count", "open_at_start", "open_at_end", "open_at_both", "node_hours")


@dataclass(frozen=True, slots=True)
class LongerIdleIntervals(NodeTime):
    """Idle intervals longer than ``over_s``; a censored one counts with the length seen, a lower bound.

    Parameters
    ----------
    label, over_s
        The length that they exceed.
    count, node_us
        Number of idle intervals, and the whole idle node-time in them.
    cut, censored_node_us
        Censored idle intervals among them.
    idle_node_us, window_us
        All idle node-time, and the length of the window.
    """

    label: str
    over_s: int
    count: int
    node_us: int
    censored: int
    censored_node_us: int
    idle_node_us: int
    window_us: int

    @property
    def share(self) -> float:
        """Share of all idle node-time; 0 if there is none."""
        return self.node_us / self.idle_node_us if self.idle_node_us else 0.0

    @property
    def censored_share(self) -> float:
        """Share of all idle node-time in the censored ones among them; a part of ``share``."""
        return self.censored_node_us / self.idle_node_us if self.idle_node_us else 0.0

    @property
    def mean_nodes(self) -> float:
        """Mean number of nodes in such an idle interval, as if dedicated."""
        return self.node_us / self.window_us

    def to_dict(self) -> dict[str, Json]:
        """Return JSON-ready values."""
        return pick(self, "label", "over_s", "count", "node_hours", "share", "mean_nodes", "censored", "censored_share")


@dataclass(frozen=True, slots=True)
class IdleIntervalSpectrum:
    """All idle intervals by length in B fine bins, cut ones with the length seen.

    Bin k holds lengths over ``edges_us[k]`` and up to ``edges_us[k+1]``: two bins a doubling, from the first that
    holds any to the last. No bins without idle intervals. Bins span at most a factor of the root of two, except
    the last for idle intervals over 97 days, and the first for idle intervals up to a second (its lower edge is 0).
    """

    edges_us: tuple[int, ...]
    count: tuple[int, ...]
    node_us: tuple[int, ...]


def idle_interval_bins(complete_us: Counted) -> tuple[IdleIntervalBin, ...]:
    """Sort lengths of complete idle intervals into `IDLE_INTERVAL_BINS`."""
    edges = [np.iinfo(np.int64).max if up_to_s is None else up_to_s * US for _, up_to_s in IDLE_INTERVAL_BINS]
    counts, node_us = (np.diff(figures, prepend=0).tolist() for figures in complete_us.up_to(np.array(edges, np.int64)))
    return tuple(
        IdleIntervalBin(*figures)
        for figures in zip(*zip(*IDLE_INTERVAL_BINS, strict=True), counts, node_us, strict=True)
    )


def longer_idle_intervals(
    complete_us: Counted, censored_us: Counted, idle_node_us: int, window_us: int
) -> tuple[LongerIdleIntervals, ...]:
    """Return the idle intervals longer than each of `LONGER_THAN`."""
    edges = np.array([*(over_s * US for _, over_s in LONGER_THAN), np.iinfo(np.int64).max], np.int64)
    complete, censored = (
        [(of_all[-1] - of_all[:-1]).tolist() for of_all in lengths.up_to(edges)]
        for lengths in (complete_us, censored_us)
    )
    return tuple(
        LongerIdleIntervals(label, over_s, count + n_cut, node_us + cut_us, n_cut, cut_us, idle_node_us, window_us)
        for (label, over_s), count, node_us, n_cut, cut_us in zip(LONGER_THAN, *complete, *censored, strict=True)
    )


def idle_interval_spectrum(complete_us: Counted, censored_us: Counted) -> IdleIntervalSpectrum:
    """Sort all idle intervals of positive length into fine bins."""
    longest = max((int(lengths.values[-1]) for lengths in (complete_us, censored_us) if lengths.total), default=0)
    edges = np.append(SPECTRUM_OVER_US, max(longest, _LAST_UP_TO_US))
    totals = zip(complete_us.up_to(edges), censored_us.up_to(edges), strict=True)
    count, node_us = (np.diff(complete + incomplete) for complete, incomplete in totals)
    with_intervals = np.flatnonzero(count)
    if not with_intervals.size:
        return IdleIntervalSpectrum((), (), ())
    part = slice(int(with_intervals[0]), int(with_intervals[-1]) + 1)
    return IdleIntervalSpectrum(
        edges_us=tuple(edges[part.start : part.stop + 1].tolist()),
        count=tuple(count[part].tolist()),
        node_us=tuple(node_us[part].tolist()),
    )
