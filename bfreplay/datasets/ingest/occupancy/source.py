"""Event source that computes the rows of a log from a schedule, and a survey beforehand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.datasets.ingest.occupancy.advance import Rows
from bfreplay.datasets.ingest.occupancy.rules import microseconds
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.occupancy.state_changes import Plan, Sweep
from bfreplay.datasets.log.sources import EventSource, RowChunk
from bfreplay.datasets.log.states import NodeState

IDLE = int(NodeState.IDLE)
NOT_OPEN = -1


@dataclass(frozen=True, slots=True)
class OccupancySource(EventSource):
    """Source of rows computed from a schedule, pass by pass.

    Parameters
    ----------
    record, plan
        Input of the computation.
    start
        State of each node of the inventory at the start of the window.
    """

    record: ScheduleRecord
    plan: Plan

    def chunks(self, rows: int) -> Iterator[RowChunk]:
        """Yield the rows of one sweep."""
        first_row = 1
        for time_us, node, state in _inside(Sweep(self.record, self.plan), self.plan):
            yield RowChunk(time_us, node, state, first_row)
            first_row += len(time_us)


class Survey:
    """First pass: states at the start of the window, node-time in each state, and effects of the rules."""

    def __init__(self, record: ScheduleRecord, plan: Plan) -> None:
        self.sweep = Sweep(record, plan)
        self.idle_intervals = _short_intervals(self.sweep, plan)
        self.start = self.sweep.initial[: plan.n_kept].copy()
        self.n_rows = 0
        self.node_us = np.zeros(len(NodeState))
        since_us = np.full(plan.n_kept, plan.window_us[0], np.int64)
        state: NDArray[np.int8] | None = None
        for time_us, node, new_state in _inside(self.sweep, plan, self.idle_intervals, self.start):
            if state is None:
                state = self.start.copy()
            add_state_time(time_us, node, new_state, state, since_us, self.node_us)
            self.n_rows += len(time_us)
        self.sweep.see_the_rest()
        self.n_repeated, self.n_contradicting = record.jobs.n_repeated, record.jobs.n_contradicting
        last_state, remaining_us = self.start if state is None else state, plan.window_us[1] - since_us
        np.add.at(self.node_us, last_state, remaining_us)
        self.idle_to_the_end = (last_state == NodeState.IDLE) & (remaining_us > 0)
        if len(plan.last_unit):  # a node of which some units are held is no sign of jobs that are missing
            begins = np.flatnonzero(np.diff(plan.last_unit[: plan.n_kept], prepend=-1))
            is_whole = np.logical_and.reduceat(self.idle_to_the_end, begins)
            self.idle_to_the_end &= np.repeat(is_whole, np.diff(begins, append=plan.n_kept))
        self.idle_to_the_end_us = int(remaining_us[self.idle_to_the_end].sum())


def _short_intervals(sweep: Sweep, plan: Plan) -> ShortIntervals:
    return ShortIntervals(sweep.initial, microseconds(plan.rules.min_gap_s), plan.window_us)


def _inside(
    sweep: Sweep, plan: Plan, idle_intervals: ShortIntervals | None = None, start: NDArray[np.int8] | None = None
) -> Iterator[Rows]:
    """Yield the rows inside the window, of the nodes in the inventory.

    Earlier rows go into ``start (N,)``, which is complete before the first rows.
    """
    idle_intervals = _short_intervals(sweep, plan) if idle_intervals is None else idle_intervals
    for rows, is_last in _with_last(sweep.rows()):
        time_us, node, state = idle_intervals.add_rows(*rows, is_last)
        if len(node) and int(node.max()) >= plan.n_kept:
            is_kept_node = node < plan.n_kept
            time_us, node, state = time_us[is_kept_node], node[is_kept_node], state[is_kept_node]
        begin_row = int(np.searchsorted(time_us, plan.window_us[0], side="right"))
        end_row = int(np.searchsorted(time_us, plan.window_us[1], side="right"))
        if begin_row and start is not None:
            start[node[:begin_row]] = state[:begin_row]  # in order: the last of several rows of a node stays
        if begin_row < end_row:
            yield Rows(time_us[begin_row:end_row], node[begin_row:end_row], state[begin_row:end_row])
        if end_row < len(time_us):
            return


def _with_last(pieces: Iterator[Rows]) -> Iterator[tuple[Rows, bool]]:
    """Yield each piece, and whether it is the last one."""
    for previous, piece in pairwise(chain(pieces, [None])):
        if previous is not None:
            yield previous, piece is None


class ShortIntervals:
    """Filter that removes idle intervals shorter than ``min_gap_us``: the node keeps its state.

    Rows are held back for up to ``min_gap_us``, until the length of the idle intervals that they open is known.

    Parameters
    ----------
    initial_state
        State of each node before the first row, ``(N,) int8``. An idle interval that is open then is never too short.
    min_gap_us
        Least length of an idle interval.
    window_us
        Only idle intervals that end inside are counted in ``n_closed`` and ``closed_us``.
    """

    def __init__(self, initial_state: NDArray[np.int8], min_gap_us: int, window_us: tuple[int, int]) -> None:
        n_nodes = len(initial_state)
        self.min_gap_us = min_gap_us
        self._window_us = window_us
        self.n_closed = 0
        self.closed_us = 0
        self._nodes = _Nodes(
            initial_state.copy(),
            np.zeros(n_nodes, np.int8),
            np.full(n_nodes, NOT_OPEN, np.int64),
            np.zeros(n_nodes, np.int64),
        )
        self._first_row = 0
        self._held = _Buffer(np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int8), np.empty(0, np.bool_))

    def add_rows(
        self, time_us: NDArray[np.int64], node: NDArray[np.int32], state: NDArray[np.int8], is_last: bool = False
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int8]]:
        """Add rows, ``(E,)`` each, in order of time; return the rows that are settled."""
        new_columns: tuple[Any, ...] = time_us, node, state, np.ones(len(time_us), np.bool_)
        pending: tuple[Any, ...] = self._held
        rows = _Buffer._make(np.concatenate(pair) for pair in zip(pending, new_columns, strict=True))
        n_pending, n_rows = len(self._held.time_us), len(rows.time_us)
        window_us, first_row = self._window_us, self._first_row
        n_short, short_us = _close_short(rows, n_pending, first_row, self._nodes, self.min_gap_us, window_us)
        self.n_closed += n_short
        self.closed_us += short_us
        n_final = n_rows
        if n_rows and not is_last:
            n_final = int(np.searchsorted(rows.time_us, rows.time_us[-1] - self.min_gap_us, side="right"))
        final_rows = np.flatnonzero(rows.keep[:n_final])
        self._held = _Buffer._make(column[n_final:] for column in rows)
        self._first_row += n_final
        return rows.time_us[final_rows], rows.node[final_rows], rows.new_state[final_rows]


class _Buffer(NamedTuple):
    """Rows that are held back, and whether to keep each."""

    time_us: NDArray[np.int64]
    node: NDArray[np.int32]
    new_state: NDArray[np.int8]
    keep: NDArray[np.bool_]


class _Nodes(NamedTuple):
    """State of every node now and before its idle interval, and what opened that."""

    state: NDArray[np.int8]
    before: NDArray[np.int8]
    opened_row: NDArray[np.int64]
    opened_us: NDArray[np.int64]


@compiled
def _close_short(
    rows: _Buffer, begin: int, first_row: int, nodes: _Nodes, min_gap_us: int, window_us: tuple[int, int]
) -> tuple[int, int]:
    """Mark the rows of short idle intervals from row ``begin`` of the buffer on; return their number and time.

    ``opened_row`` is the row that opened the idle interval of a node, counted over all buffers; ``first_row`` is the
    first of this one.
    """
    time_us, node, new_state, keep = rows
    state, state_before, open_row, opened_us = nodes
    window_start_us, window_end_us = window_us
    n_short, short_us = 0, 0
    for r in range(begin, len(time_us)):
        n = node[r]
        open_at = open_row[n]
        if open_at >= 0:
            open_row[n] = NOT_OPEN
            if time_us[r] - opened_us[n] < min_gap_us:
                keep[open_at - first_row] = False
                if window_start_us < time_us[r] <= window_end_us:
                    n_short += 1
                    short_us += time_us[r] - max(opened_us[n], window_start_us)
                state[n] = state_before[n]
                if new_state[r] == state_before[n]:
                    keep[r] = False
                    continue
        if new_state[r] == IDLE:
            open_row[n] = first_row + r
            opened_us[n] = time_us[r]
            state_before[n] = state[n]
        state[n] = new_state[r]
    return n_short, short_us


@compiled
def add_state_time(
    time_us: NDArray[np.int64],
    node: NDArray[np.int32],
    new_state: NDArray[np.int8],
    state: NDArray[np.int8],
    since_us: NDArray[np.int64],
    node_us: NDArray[np.float64],
) -> None:
    """Add up node-microseconds in each state, ``node_us (7,)``, over rows in order of time.

    ``state (N,)`` and ``since_us (N,)`` are the current state of each node, changed in place.
    """
    for r in range(len(time_us)):
        n = node[r]
        node_us[state[n]] += time_us[r] - since_us[n]
        since_us[n] = time_us[r]
        state[n] = new_state[r]
