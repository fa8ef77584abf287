"""One pass over a log: idle intervals, pool events, node time in each state, longest idle intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.datasets.idleness.pool import PoolSeries
from bfreplay.datasets.idleness.quantiles import Counted
from bfreplay.datasets.log.events import NodeEvents
from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.times import US, iso_span, iso_utc
from bfreplay.documents import Json
from bfreplay.errors import InputError

_IDLE = int(NodeState.IDLE)

LONGEST = 3
"""Number of nodes whose longest idle interval is listed."""


Cut = Literal["start", "end", "both"]


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """Result of one pass over a log.

    Parameters
    ----------
    window_start_us
        Start of the window.
    state_us
        Node-microseconds in each state, ``(len(NodeState),) int64``.
    nodes_ever_idle
        Nodes idle at any instant of the window.
    complete_us
        Lengths of the idle intervals with both ends inside the window.
    cut_at_start_us, cut_at_end_us, cut_at_both_us
        Lengths of those cut by the start of the window, by its end, by both, int64.
    longest_us, longest_since_us, longest_is_open
        Longest idle interval of each of N nodes, the first of equals, ``(N,)``: its length (0: none), its start, and
        whether it lasts to the end of the window.
    """

    window_start_us: int
    state_us: NDArray[np.int64]
    nodes_ever_idle: int
    complete_us: Counted
    cut_at_start_us: NDArray[np.int64]
    cut_at_end_us: NDArray[np.int64]
    cut_at_both_us: NDArray[np.int64]
    longest_us: NDArray[np.int64]
    longest_since_us: NDArray[np.int64]
    longest_is_open: NDArray[np.bool_]


PART_EVENTS = 1 << 17
"""Least number of pool events in a part of the idle nodes over time."""


def pool_of(events: NodeEvents) -> PoolSeries:
    """Read ``events`` once, and return the idle nodes over the whole window; memory grows with pool events."""
    parts: list[PoolSeries] = []
    observe(events, parts.append, part_events=None)
    return parts[0]


def observe(
    events: NodeEvents,
    take_part: Callable[[PoolSeries], object],
    part_events: int | None = PART_EVENTS,
    *,
    counts_lengths: bool = True,
) -> Observation:
    """Read ``events`` once; memory grows with nodes and distinct lengths. See `check_node_time` for overflow.

    Parameters
    ----------
    events
        The log.
    take_part
        Called with the idle nodes over one part of the window after the other; each begins with the last event of the
        part before.
    part_events
        About the pool events in a part; ``None`` for one part.
    counts_lengths
        Also count the lengths of complete idle intervals, without which memory grows with nodes alone.
    """
    start_us, end_us, n_nodes = int(events.window_start_us), int(events.window_end_us), len(events.nodes)
    batches = iter(events.batches())
    state = next(batches).state.astype(np.int8)  # the snapshot, a row for each node in the order of the nodes
    n_idle = int(np.count_nonzero(state == _IDLE))
    state_us = np.bincount(state, minlength=len(NodeState)).astype(np.int64) * (end_us - start_us)
    ever_idle = state == _IDLE
    idle_since = np.full(n_nodes, start_us, np.int64)
    longest_us, longest_since = np.zeros(n_nodes, np.int64), np.full(n_nodes, start_us, np.int64)
    complete, cut_at_start = Counted(), [np.empty(0, np.int64)]
    changes: list[NDArray[np.int64]] = [np.empty((3, 0), np.int64)]
    part_start_us, n_pending = start_us, 0
    tallies = state, idle_since, ever_idle, longest_us, longest_since
    for batch in batches:
        lengths, are_cut = np.empty(len(batch), np.int64), np.empty(len(batch), np.bool_)
        pool_events = np.empty((3, len(batch)), np.int64)
        n_intervals, n_stamps = _scan(
            batch.columns, (start_us, end_us), tallies, state_us, (lengths, are_cut), pool_events
        )
        lengths, are_cut = lengths[:n_intervals], are_cut[:n_intervals]
        if counts_lengths:
            complete.add(lengths[~are_cut])
        cut_at_start.append(lengths[are_cut])
        changes.append(pool_events[:, :n_stamps].copy())
        n_pending += n_stamps
        if part_events is not None and n_pending >= part_events:
            part = PoolSeries.of_changes(part_start_us, None, n_idle, *np.concatenate(changes, axis=1))
            take_part(part)
            part_start_us, n_idle, n_pending, changes = part.end_us, int(part.idle[-1]), 0, changes[:1]
    take_part(PoolSeries.of_changes(part_start_us, end_us, n_idle, *np.concatenate(changes, axis=1)))
    since = idle_since[state == _IDLE]
    from_start = since == start_us
    final_us = np.where(state == _IDLE, end_us - idle_since, 0)
    is_open = final_us > longest_us
    return Observation(
        window_start_us=start_us,
        state_us=state_us,
        nodes_ever_idle=int(np.count_nonzero(ever_idle)),
        complete_us=complete,
        cut_at_start_us=np.concatenate(cut_at_start),
        cut_at_end_us=end_us - since[~from_start],
        cut_at_both_us=end_us - since[from_start],
        longest_us=np.where(is_open, final_us, longest_us),
        longest_since_us=np.where(is_open, idle_since, longest_since),
        longest_is_open=is_open,
    )


def check_node_time(start_us: int, end_us: int, n_nodes: int) -> None:
    """Raise ``InputError`` for a window without length or nodes, and for more node-time than fits into 64 bits."""
    extent = f"{n_nodes} nodes from {iso_span(start_us, end_us)}"
    if end_us <= start_us or n_nodes == 0:
        expected = "at least one node and a window end after its start"
        raise InputError("the log has no node-time to characterise", value=extent, expected=expected)
    if n_nodes * (end_us - start_us) >= 2**63:
        raise InputError(
            "the log has more node-time than whole microseconds in 64 bits can count",
            value=extent,
            expected="at most 292,000 node-years",
            fix="describe a shorter window",
        )


_Ints = NDArray[np.int64]


@compiled
def _scan(
    rows: tuple[_Ints, NDArray[np.int32], NDArray[np.int8]],
    window_us: tuple[int, int],
    tallies: tuple[NDArray[np.int8], _Ints, NDArray[np.bool_], _Ints, _Ints],
    state_us: _Ints,
    intervals: tuple[_Ints, NDArray[np.bool_]],
    pool_events: _Ints,
) -> tuple[int, int]:
    """Advance the tallies over one batch; return how many idle intervals ended and how many pool events there were.

    Fills ``intervals`` with length and cut (cut by the window start) of each idle interval that ends, and
    ``pool_events (3, E)`` with time, joins and reclaims; keeps the longest idle interval of each node. ``state_us``
    counts each node's present state to the end of the window, so that a change moves the rest from one state to the
    other.
    """
    time_us, node, states_after = rows
    start_us, end_us = window_us
    state, idle_since, ever_idle, longest_us, longest_since = tallies
    length, is_cut = intervals
    n_intervals, n_stamps, row, n_rows = 0, 0, 0, len(node)
    while row < n_rows:
        now = time_us[row]
        remaining_us = end_us - now
        joins, reclaims = 0, 0
        while row < n_rows and time_us[row] == now:
            n = node[row]
            state_before, state_after = state[n], states_after[row]
            if state_before != state_after:
                state[n] = state_after
                state_us[state_before] -= remaining_us
                state_us[state_after] += remaining_us
                if state_after == _IDLE:
                    idle_since[n] = now
                    ever_idle[n] = True
                    joins += 1
                elif state_before == _IDLE:
                    length[n_intervals] = now - idle_since[n]
                    is_cut[n_intervals] = idle_since[n] == start_us
                    if length[n_intervals] > longest_us[n]:
                        longest_us[n] = length[n_intervals]
                        longest_since[n] = idle_since[n]
                    n_intervals += 1
                    reclaims += 1
            row += 1
        if joins + reclaims > 0:
            pool_events[0, n_stamps] = now
            pool_events[1, n_stamps] = joins
            pool_events[2, n_stamps] = reclaims
            n_stamps += 1
    return n_intervals, n_stamps


@dataclass(frozen=True, slots=True)
class LongestIdleInterval:
    """The longest idle interval of one node, the first of equals.

    Parameters
    ----------
    node
        Its name.
    start_us, end_us
        Start and end, as far as the window shows.
    cut
        The edge of the window that cuts it; ``None`` for a complete idle interval.
    """

    node: str
    start_us: int
    end_us: int
    censored: Cut | None

    @property
    def length_s(self) -> float:
        """Length in seconds, a lower bound if censored."""
        return (self.end_us - self.start_us) / US

    def to_dict(self) -> dict[str, Json]:
        """Return JSON-ready values."""
        start, end = iso_utc(self.start_us), iso_utc(self.end_us)
        return {"node": self.node, "start": start, "end": end, "length_s": self.length_s, "censored": self.censored}


def longest_idle_intervals(nodes: Sequence[str], observed: Observation) -> tuple[LongestIdleInterval, ...]:
    """Return all nodes idle throughout the window, then the `LONGEST` nodes with the longest idle intervals.

    Longest first; ties by start, then by the order of ``nodes``.
    """
    window_start_us = observed.window_start_us
    throughout = observed.longest_is_open & (observed.longest_since_us == window_start_us)
    order = np.lexsort((observed.longest_since_us, -observed.longest_us))
    others = order[(observed.longest_us[order] > 0) & ~throughout[order]][:LONGEST]
    intervals = []
    for node in [*np.flatnonzero(throughout).tolist(), *others.tolist()]:
        start_us, is_open = int(observed.longest_since_us[node]), bool(observed.longest_is_open[node])
        cut_at: Cut | None = "end" if is_open else None
        if start_us == window_start_us:
            cut_at = "both" if is_open else "start"
        intervals.append(LongestIdleInterval(nodes[node], start_us, start_us + int(observed.longest_us[node]), cut_at))
    return tuple(intervals)
