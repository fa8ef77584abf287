"""The figures that describe the idle nodes of a log.

A *hole* is one node being idle without a break, a *pool event* a time stamp at which at least one node joins the
idle nodes or is reclaimed from them, a *burst* the nodes that join (or are reclaimed) at one such time stamp.
Everything is counted in integer microseconds; hours and seconds appear only in what is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bfreplay.datasets.times import iso_utc

PERCENTS = (0, 5, 25, 50, 75, 95, 100)
"""The percentiles of every `Quantiles`."""

HOLE_BINS: tuple[tuple[str, int | None], ...] = (
    ("<= 1 min", 60),
    ("1-5 min", 300),
    ("5-15 min", 900),
    ("15-60 min", 3_600),
    ("1-4 h", 14_400),
    ("4-24 h", 86_400),
    ("> 1 day", None),
)
"""Label and upper edge (s, inclusive) of each bin of hole lengths."""

Quantiles = tuple[float, ...]
"""Values at `PERCENTS`; empty when there is nothing to rank. Each is a value that occurred: the smallest one that
at least that share of the weight does not exceed."""

_US = 1_000_000
_HOUR_US = 3_600 * _US


@dataclass(frozen=True, slots=True)
class HoleBin:
    """Complete holes longer than the bin before and at most ``up_to_s`` (``None``: no limit)."""

    label: str
    up_to_s: int | None
    count: int
    node_us: int

    @property
    def node_hours(self) -> float:
        """Idle node-time in holes of this length."""
        return self.node_us / _HOUR_US


@dataclass(frozen=True, slots=True)
class CensoredHoles:
    """Holes cut by an edge of the window: their lengths are lower bounds, so no quantile or bin counts them."""

    open_at_start: int
    open_at_end: int
    open_at_both: int
    node_us: int

    @property
    def count(self) -> int:
        """All of them; a hole that spans the whole window is counted once."""
        return self.open_at_start + self.open_at_end + self.open_at_both

    @property
    def node_hours(self) -> float:
        """Idle node-time in them, inside the window."""
        return self.node_us / _HOUR_US


@dataclass(frozen=True, slots=True)
class Bursts:
    """Nodes that change at one time stamp: number of time stamps, mean and quantiles of the nodes at each."""

    count: int
    mean_nodes: float
    nodes: Quantiles


@dataclass(frozen=True, slots=True)
class Idleness:
    """Statistics of the idle nodes of one log over its window.

    Parameters
    ----------
    window_start_us, window_end_us
        The window, microseconds since the epoch, UTC.
    n_nodes, nodes_ever_idle
        Nodes in the log, and those idle at any instant of the window.
    idle_node_us
        Integral of idle nodes over the window, in node-microseconds: the lengths of all holes together.
    idle_nodes
        Quantiles of the number of idle nodes, each weighted by how long it lasted.
    share_without_idle
        Share of the window with no idle node.
    n_pool_events, joins, reclaims
        Time stamps with a change after the opening snapshot; nodes that became idle; nodes taken back.
    idle_nodes_per_event
        Quantiles over pool events of the idle nodes right after each: what an allocator decides about.
    events_per_hour
        Quantiles over the whole hours since the window start (a last part of an hour is left out).
    gap_s
        Quantiles of the seconds from one pool event to the next.
    holes, hole_length_s, hole_bins
        Complete holes (both ends inside the window): number, quantiles of their length, table by length.
    censored
        Holes cut by an edge of the window.
    join_bursts, reclaim_bursts
        Nodes joining and nodes reclaimed per time stamp.
    """

    window_start_us: int
    window_end_us: int
    n_nodes: int
    nodes_ever_idle: int
    idle_node_us: int
    idle_nodes: Quantiles
    share_without_idle: float
    n_pool_events: int
    joins: int
    reclaims: int
    idle_nodes_per_event: Quantiles
    events_per_hour: Quantiles
    gap_s: Quantiles
    holes: int
    hole_length_s: Quantiles
    hole_bins: tuple[HoleBin, ...]
    censored: CensoredHoles
    join_bursts: Bursts
    reclaim_bursts: Bursts

    @property
    def duration_s(self) -> float:
        """Length of the window."""
        return (self.window_end_us - self.window_start_us) / _US

    @property
    def idle_node_hours(self) -> float:
        """Integral of idle nodes over the window."""
        return self.idle_node_us / _HOUR_US

    @property
    def mean_idle_nodes(self) -> float:
        """Integral of idle nodes / duration: BFTrainer's equivalent nodes ``n_eq``."""
        return self.idle_node_us / (self.window_end_us - self.window_start_us)

    @property
    def idle_share(self) -> float:
        """Share of all node-time that was idle."""
        return self.mean_idle_nodes / self.n_nodes

    @property
    def transitions(self) -> int:
        """Joins and reclaims together."""
        return self.joins + self.reclaims

    @property
    def mean_events_per_hour(self) -> float:
        """Pool events per hour of the window."""
        return self.n_pool_events * _HOUR_US / (self.window_end_us - self.window_start_us)

    def to_dict(self) -> dict[str, Any]:
        """Everything, JSON-ready: plain numbers and strings, units in the names."""
        return {
            "window_start": iso_utc(self.window_start_us),
            "window_end": iso_utc(self.window_end_us),
            "duration_s": self.duration_s,
            "n_nodes": self.n_nodes,
            "nodes_ever_idle": self.nodes_ever_idle,
            "idle_node_us": self.idle_node_us,
            "idle_node_hours": self.idle_node_hours,
            "mean_idle_nodes": self.mean_idle_nodes,
            "idle_share": self.idle_share,
            "idle_nodes": _named(self.idle_nodes),
            "share_without_idle": self.share_without_idle,
            "pool_events": self.n_pool_events,
            "joins": self.joins,
            "reclaims": self.reclaims,
            "transitions": self.transitions,
            "idle_nodes_per_event": _named(self.idle_nodes_per_event),
            "mean_events_per_hour": self.mean_events_per_hour,
            "events_per_hour": _named(self.events_per_hour),
            "gap_s": _named(self.gap_s),
            "holes": {
                "complete": self.holes,
                "length_s": _named(self.hole_length_s),
                "bins": [
                    {"label": b.label, "up_to_s": b.up_to_s, "count": b.count, "node_hours": b.node_hours}
                    for b in self.hole_bins
                ],
            },
            "censored_holes": {
                "count": self.censored.count,
                "open_at_start": self.censored.open_at_start,
                "open_at_end": self.censored.open_at_end,
                "open_at_both": self.censored.open_at_both,
                "node_hours": self.censored.node_hours,
            },
            "join_bursts": _burst_dict(self.join_bursts),
            "reclaim_bursts": _burst_dict(self.reclaim_bursts),
        }


def _named(values: Sequence[float]) -> dict[str, float]:
    return {f"p{percent}": value for percent, value in zip(PERCENTS, values, strict=False)}


def _burst_dict(bursts: Bursts) -> dict[str, Any]:
    return {"events": bursts.count, "mean_nodes": bursts.mean_nodes, "nodes": _named(bursts.nodes)}
