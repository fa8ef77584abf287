"""What the idle nodes of a log look like: how many, for how long, in which bursts.

A *hole* is one node being idle without a break, a *pool event* a time stamp at which at least one node joins the
idle nodes or is reclaimed from them, a *burst* the nodes that join (or are reclaimed) at one such time stamp.
Everything is counted in integer microseconds; hours and seconds appear only in what is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.datasets.events import NodeEvents, NodeState
from bfreplay.errors import InputError

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
_CLOCK, _N_IDLE = range(2)


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
            "window_start": iso_time(self.window_start_us),
            "window_end": iso_time(self.window_end_us),
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


def characterise(events: NodeEvents) -> Idleness:
    """Measure the idle nodes of ``events`` in one pass over its batches; memory grows with nodes and holes.

    A node counts as idle in state ``IDLE`` only; a change between two other states (busy to down, say) is no event
    here. Rows at the window start that follow the opening snapshot are events of length zero after it.

    Raises
    ------
    InputError
        The window has no length, or there is no node: nothing can be averaged.
    """
    start_us, end_us, n_nodes = int(events.window_start_us), int(events.window_end_us), len(events.nodes)
    if end_us <= start_us or n_nodes == 0:
        raise InputError(
            "the log has no node-time to characterise",
            value=f"{n_nodes} nodes from {iso_time(start_us)} to {iso_time(end_us)}",
            expected="at least one node and a window end after its start",
        )
    hole_since = np.full(n_nodes, -1, np.int64)
    since_start = np.zeros(n_nodes, np.bool_)
    ever_idle = np.zeros(n_nodes, np.bool_)
    time_at = np.zeros(n_nodes + 1, np.int64)
    events_at, joined, reclaimed = (np.zeros(n_nodes + 1, np.int64) for _ in range(3))
    clock = np.array([start_us, 0], np.int64)
    cut_at_start, censored_us = 0, 0
    lengths: list[NDArray[np.int64]] = []
    stamps: list[NDArray[np.int64]] = []
    snapshot_rows = n_nodes
    for batch in events.batches():
        time_us, node, idle = batch.time_us, batch.node, batch.state == NodeState.IDLE
        if snapshot_rows:
            rows = min(snapshot_rows, len(node))
            snapshot_rows -= rows
            first = node[:rows][idle[:rows]]
            hole_since[first], since_start[first], ever_idle[first] = start_us, True, True
            clock[_N_IDLE] += len(first)
            time_us, node, idle = time_us[rows:], node[rows:], idle[rows:]
        length = np.empty(len(node), np.int64)
        cut = np.empty(len(node), np.bool_)
        stamp = np.empty(len(node), np.int64)
        n_holes, n_stamps = _scan(
            time_us, node, idle, hole_since, since_start, ever_idle, time_at, events_at, joined, reclaimed, clock,
            length, cut, stamp,
        )  # fmt: skip
        length, cut = length[:n_holes], cut[:n_holes]
        lengths.append(length[~cut])
        stamps.append(stamp[:n_stamps].copy())
        cut_at_start += int(np.count_nonzero(cut))
        censored_us += int(length[cut].sum())
    time_at[clock[_N_IDLE]] += end_us - clock[_CLOCK]
    still_open = hole_since >= 0
    cut_at_both = int(np.count_nonzero(still_open & since_start))
    censored_us += int((end_us - hole_since[still_open]).sum())

    length = np.sort(np.concatenate([np.empty(0, np.int64), *lengths]))
    stamp = np.concatenate([np.empty(0, np.int64), *stamps])
    hours = (end_us - start_us) // _HOUR_US
    hour = (stamp - start_us) // _HOUR_US
    level = np.arange(n_nodes + 1)
    return Idleness(
        window_start_us=start_us,
        window_end_us=end_us,
        n_nodes=n_nodes,
        nodes_ever_idle=int(np.count_nonzero(ever_idle)),
        idle_node_us=sum(int(n) * int(t) for n, t in zip(level, time_at, strict=True)),
        idle_nodes=_quantiles(level, time_at),
        share_without_idle=int(time_at[0]) / (end_us - start_us),
        n_pool_events=len(stamp),
        joins=int((level * joined).sum()),
        reclaims=int((level * reclaimed).sum()),
        idle_nodes_per_event=_quantiles(level, events_at),
        events_per_hour=_quantiles(np.sort(np.bincount(hour[hour < hours], minlength=hours))),
        gap_s=_quantiles(np.sort(np.diff(stamp)), unit=_US),
        holes=len(length),
        hole_length_s=_quantiles(length, unit=_US),
        hole_bins=_bins(length),
        censored=CensoredHoles(cut_at_start, int(still_open.sum()) - cut_at_both, cut_at_both, censored_us),
        join_bursts=_bursts(joined),
        reclaim_bursts=_bursts(reclaimed),
    )


@compiled
def _scan(
    time_us: NDArray[np.int64],
    node: NDArray[np.int32],
    idle: NDArray[np.bool_],
    hole_since: NDArray[np.int64],
    since_start: NDArray[np.bool_],
    ever_idle: NDArray[np.bool_],
    time_at: NDArray[np.int64],
    events_at: NDArray[np.int64],
    joined: NDArray[np.int64],
    reclaimed: NDArray[np.int64],
    clock: NDArray[np.int64],
    length: NDArray[np.int64],
    cut: NDArray[np.bool_],
    stamp: NDArray[np.int64],
) -> tuple[int, int]:
    """Advance the tallies over one batch; return how many holes ended and how many pool events there were.

    Fills ``length`` and ``cut`` (cut by the window start) for each hole, ``stamp`` for each event. ``hole_since`` is
    -1 for a node that is not idle; ``clock`` holds the time and the number of idle nodes now.
    """
    n_holes, n_stamps, row, n_rows = 0, 0, 0, len(node)
    while row < n_rows:
        now = time_us[row]
        joins, reclaims = 0, 0
        while row < n_rows and time_us[row] == now:
            n = node[row]
            since = hole_since[n]
            if idle[row] and since < 0:
                hole_since[n] = now
                since_start[n] = False
                ever_idle[n] = True
                joins += 1
            elif since >= 0 and not idle[row]:
                length[n_holes] = now - since
                cut[n_holes] = since_start[n]
                n_holes += 1
                hole_since[n] = -1
                reclaims += 1
            row += 1
        if joins + reclaims > 0:
            time_at[clock[1]] += now - clock[0]
            clock[0] = now
            clock[1] += joins - reclaims
            events_at[clock[1]] += 1
            joined[joins] += 1
            reclaimed[reclaims] += 1
            stamp[n_stamps] = now
            n_stamps += 1
    return n_holes, n_stamps


def iso_time(time_us: int) -> str:
    """``2021-02-10T00:48:48Z``: a time in microseconds since the epoch for people and JSON."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time_us)
    return moment.isoformat().replace("+00:00", "Z")


def _quantiles(ordered: NDArray[np.int64], weight: NDArray[np.int64] | None = None, unit: int = 1) -> Quantiles:
    """Quantiles of ascending values with whole-number weights (1 each by default), divided by ``unit``."""
    reached = np.arange(1, len(ordered) + 1) if weight is None else np.cumsum(weight)
    total = int(reached[-1]) if len(reached) else 0
    if total == 0:
        return ()
    needed = [max(1, -(-percent * total // 100)) for percent in PERCENTS]
    return tuple(float(ordered[np.searchsorted(reached, n)]) / unit for n in needed)


def _bins(ordered: NDArray[np.int64]) -> tuple[HoleBin, ...]:
    bins, first = [], 0
    for label, up_to_s in HOLE_BINS:
        last = len(ordered) if up_to_s is None else int(np.searchsorted(ordered, up_to_s * _US, side="right"))
        bins.append(HoleBin(label, up_to_s, last - first, int(ordered[first:last].sum())))
        first = last
    return tuple(bins)


def _bursts(events_of_size: NDArray[np.int64]) -> Bursts:
    size = np.arange(1, len(events_of_size))
    weight = events_of_size[1:]
    count = int(weight.sum())
    return Bursts(count, int((size * weight).sum()) / count if count else 0.0, _quantiles(size, weight))


def _named(values: Sequence[float]) -> dict[str, float]:
    return {f"p{percent}": value for percent, value in zip(PERCENTS, values, strict=False)}


def _burst_dict(bursts: Bursts) -> dict[str, Any]:
    return {"events": bursts.count, "mean_nodes": bursts.mean_nodes, "nodes": _named(bursts.nodes)}
