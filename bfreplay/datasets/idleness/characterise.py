"""Measure the idle nodes of a log in one pass over its batches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.datasets.idleness.figures import HOLE_BINS, PERCENTS, Bursts, CensoredHoles, HoleBin, Idleness, Quantiles
from bfreplay.datasets.log.events import NodeEvents
from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.times import iso_utc
from bfreplay.errors import InputError

_US = 1_000_000
_HOUR_US = 3_600 * _US
_CLOCK, _N_IDLE = range(2)


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
            value=f"{n_nodes} nodes from {iso_utc(start_us)} to {iso_utc(end_us)}",
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
