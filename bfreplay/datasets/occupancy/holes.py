"""What comes after the sweep: holes too short to be events are closed, and rows are cut to the window."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.datasets.log.states import NodeState

IDLE = int(NodeState.IDLE)
NOT_OPEN = -1


class ShortHoles:
    """Closes holes shorter than ``min_gap_us``: their node stays in the state it had before.

    Rows are held back until it is known how long the holes are that they open: as long as ``min_gap_us``.

    Parameters
    ----------
    shown
        State of each node before the first row, ``(N,) int8``. A hole that is open then is never too short.
    min_gap_us
        Least length of a hole.
    window_us
        Only holes that end inside are counted in ``n_closed`` and ``closed_us``.
    """

    def __init__(self, shown: NDArray[np.int8], min_gap_us: int, window_us: tuple[int, int]) -> None:
        n_nodes = len(shown)
        self.min_gap_us = min_gap_us
        self._window_us = window_us
        self.n_closed = 0
        self.closed_us = 0
        self._state = shown.copy()
        self._before = np.zeros(n_nodes, np.int8)
        self._opened_row = np.full(n_nodes, NOT_OPEN, np.int64)
        self._opened_us = np.zeros(n_nodes, np.int64)
        self._first_row = 0
        self._time = np.empty(0, np.int64)
        self._node = np.empty(0, np.int32)
        self._new_state = np.empty(0, np.int8)
        self._keep = np.empty(0, np.bool_)

    def passed(
        self, time_us: NDArray[np.int64], node: NDArray[np.int32], state: NDArray[np.int8], is_last: bool = False
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int8]]:
        """Take more rows, ``(E,)`` each, in order of time; give those of which the fate is settled."""
        held = len(self._time)
        self._time = np.concatenate([self._time, time_us])
        self._node = np.concatenate([self._node, node])
        self._new_state = np.concatenate([self._new_state, state])
        self._keep = np.concatenate([self._keep, np.ones(len(time_us), np.bool_)])
        closed, closed_us = _close_short(
            self._time, self._node, self._new_state, self._keep, held, self._first_row, self._state, self._before,
            self._opened_row, self._opened_us, self.min_gap_us, *self._window_us,
        )  # fmt: skip
        self.n_closed += closed
        self.closed_us += closed_us
        if is_last or not len(self._time):
            settled = len(self._time)
        else:
            settled = int(np.searchsorted(self._time, self._time[-1] - self.min_gap_us, side="right"))
        kept = np.flatnonzero(self._keep[:settled])
        rows = self._time[kept], self._node[kept], self._new_state[kept]
        self._time, self._node = self._time[settled:], self._node[settled:]
        self._new_state, self._keep = self._new_state[settled:], self._keep[settled:]
        self._first_row += settled
        return rows


@compiled
def _close_short(
    time_us: NDArray[np.int64], node: NDArray[np.int32], new_state: NDArray[np.int8], keep: NDArray[np.bool_],
    begin: int, first_row: int, state: NDArray[np.int8], before: NDArray[np.int8], opened_row: NDArray[np.int64],
    opened_us: NDArray[np.int64], min_gap_us: int, window_start_us: int, window_end_us: int,
) -> tuple[int, int]:  # fmt: skip
    """Mark the rows of short holes, from row ``begin`` of the buffer on; returns how many holes, and their time.

    ``opened_row`` is the row that opened the hole of a node, counted over all buffers (``first_row`` is this one's).
    """
    closed, closed_us = 0, 0
    for r in range(begin, len(time_us)):
        n = node[r]
        opened = opened_row[n]
        if opened >= 0:
            opened_row[n] = NOT_OPEN
            if time_us[r] - opened_us[n] < min_gap_us:
                keep[opened - first_row] = False
                if window_start_us < time_us[r] <= window_end_us:
                    closed += 1
                    closed_us += time_us[r] - max(opened_us[n], window_start_us)
                state[n] = before[n]
                if new_state[r] == before[n]:
                    keep[r] = False
                    continue
        if new_state[r] == IDLE:
            opened_row[n] = first_row + r
            opened_us[n] = time_us[r]
            before[n] = state[n]
        state[n] = new_state[r]
    return closed, closed_us


@compiled
def add_state_time(
    time_us: NDArray[np.int64], node: NDArray[np.int32], new_state: NDArray[np.int8], state: NDArray[np.int8],
    since_us: NDArray[np.int64], node_us: NDArray[np.float64],
) -> None:  # fmt: skip
    """Add up node-microseconds in each state, ``node_us (7,)``, over rows in order of time.

    ``state (N,)`` and ``since_us (N,)`` are where each node stands, changed in place.
    """
    for r in range(len(time_us)):
        n = node[r]
        node_us[state[n]] += time_us[r] - since_us[n]
        since_us[n] = time_us[r]
        state[n] = new_state[r]
