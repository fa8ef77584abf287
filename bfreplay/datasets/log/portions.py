"""Rows of a log that comes in portions: from a pipe, or a file that grows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.hints import did_you_mean
from bfreplay.datasets.log.events import LAST_US, NodeEvents, time_us_of
from bfreplay.datasets.log.passes import VALID, apply_events
from bfreplay.datasets.log.states import STATE_WORDS, EventBatch, NodeState
from bfreplay.datasets.times import iso_span, iso_utc
from bfreplay.errors import InputError
from bfreplay.registry import one_line

if TYPE_CHECKING:
    import pandas as pd

Rows: TypeAlias = "EventBatch | Iterable[tuple[Any, Any, Any]] | pd.DataFrame"
"""Events: (time, node, state) for each, or a data frame with these columns."""

_NOTHING = EventBatch(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int8))


class Portions:
    """Puts rows that come in portions in order, and checks them, as a pass over a whole log does.

    Rows of times that are still to come may arrive in any order. A row that is equal to one of these counts once. A row
    of a time that is over, a second state of a node at one time, and a node that becomes idle while idle are errors. A
    row that was given ahead of its time, and turns out to be such an error, is taken back.

    Parameters
    ----------
    log
        Its nodes, their states at the start, and its window; it has no rows.
    """

    not_saved = ("_log", "_number")

    def __init__(self, log: NodeEvents) -> None:
        self._log = log
        self._number = {node_name: node_index for node_index, node_name in enumerate(log.nodes)}
        self._states: NDArray[np.int8] = log.first_states()
        self._waiting = _NOTHING
        self._is_begun = False
        self.until_us = log.window_start_us
        self.n_repeated = 0
        self._idle_until_left_us = 0  # node time from the start to when nodes leave, minus to when they come

    def take(self, rows: Rows, until_us: int | None = None) -> EventBatch:
        """Take more rows, and return the events before ``until_us`` that were not returned yet, in order.

        Parameters
        ----------
        rows
            In any order. A time is microseconds since 1970 as a whole number, ISO-8601 text or ``datetime``, a state a
            ``NodeState``, its number or its word.
        until_us
            No row of an earlier time will follow. ``None``: the time of the last row so far, of which more may follow.
            Times after the window mean its end.

        Raises
        ------
        InputError
            A row cannot be used; the message says which, and nothing of this portion is taken.
        """
        new_rows = self._ordered(rows)
        last_us = self._log.window_end_us + 1
        if until_us is None:
            latest = [int(rows_of_kind.time_us[-1]) for rows_of_kind in (new_rows, self._waiting) if len(rows_of_kind)]
            until_us = max([self.until_us, *latest])
        if until_us < self.until_us:
            raise InputError(
                "the replay does not go back",
                column="until",
                value=iso_utc(until_us),
                expected=f"{iso_utc(self.until_us)} or later",
            )
        until_us = min(until_us, last_us)
        sorted_rows, n_duplicates = self._merged(new_rows)
        first, behind = (int(np.searchsorted(sorted_rows.time_us, until_us, side)) for side in ("left", "right"))
        ready, states_before, states = sorted_rows.take(slice(0, first)), self._states, self._states.copy()
        self._check(ready, states)
        self._check(sorted_rows.take(slice(first, behind)), states.copy())  # no row can come before these any more
        self._idle_until_left_us += _idle_until_left_us(ready, states_before, self._log.window_start_us)
        self._states, self._waiting = states, sorted_rows.take(slice(first, None))
        self.until_us, self.n_repeated = until_us, self.n_repeated + n_duplicates
        return self._with_start(ready, states_before)

    def idle_node_us(self, end_us: int) -> int:
        """Return the idle node time from the start of the window to ``end_us``, all of which was taken."""
        n_idle = int(np.count_nonzero(self._states == NodeState.IDLE))
        return self._idle_until_left_us + n_idle * (end_us - self._log.window_start_us)

    def _with_start(self, ready: EventBatch, states_before: NDArray[np.int8]) -> EventBatch:
        """Return the events; those of the first instant as the state of every node then."""
        start_us = self._log.window_start_us
        if self._is_begun or self.until_us <= start_us:
            return ready
        self._is_begun = True
        n_first = int(np.searchsorted(ready.time_us, start_us, side="right"))
        states = states_before.copy()
        states[ready.node[:n_first]] = ready.state[:n_first]
        return EventBatch.joined([EventBatch.of_states(start_us, states), ready.take(slice(n_first, None))])

    def _ordered(self, rows: Rows) -> EventBatch:
        """Return rows as events, by time and node."""
        try:
            rows = self._checked(rows) if isinstance(rows, EventBatch) else self._events(rows)
        except (TypeError, ValueError, KeyError) as error:
            raise InputError(
                f"a portion has no rows: {one_line(error)}",
                value=type(rows).__name__,
                expected="(time, node, state) for each event, or a data frame with these columns",
            ) from error
        in_order = rows.take(np.lexsort((rows.node, rows.time_us)))
        if len(in_order):
            self._check_times(in_order)
        return in_order

    def _checked(self, rows: EventBatch) -> EventBatch:
        """Return rows that are arrays already."""
        columns = [np.asarray(column) for column in rows.columns]
        if not all(column.dtype.kind in "iu" and column.shape == (len(rows),) for column in columns):
            raise ValueError("columns are arrays of whole numbers, of equal lengths")
        ranges = ((-LAST_US, LAST_US), (0, len(self._number) - 1), (0, len(STATE_WORDS) - 1))
        for column, column_name, (lowest, highest) in zip(columns, ("time_us", "node", "state"), ranges, strict=True):
            if column.size and not lowest <= int(column.min()) <= int(column.max()) <= highest:
                raise ValueError(f"{column_name} is {lowest} to {highest}")
        return EventBatch(*(column.astype(dtype) for column, dtype in zip(columns, _DTYPES, strict=True)))

    def _events(self, rows: Any) -> EventBatch:
        """Return rows that are triples, or a data frame."""
        if hasattr(rows, "columns"):
            rows = zip(rows["time"], rows["node"], rows["state"], strict=True)
        events = [self._event(row_index, row) for row_index, row in enumerate(rows)]
        columns = zip(*events, strict=True) if events else ((), (), ())
        return EventBatch(*(np.array(column, dtype) for column, dtype in zip(columns, _DTYPES, strict=True)))

    def _event(self, row_index: int, row: tuple[Any, Any, Any]) -> tuple[int, int, int]:
        try:
            time, node, state = row
            time_us = time_us_of(time)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"row {row_index} of a portion is no event: {error}",
                value=row,
                expected="(time, node, state)",
                fix="give the time as ISO-8601 text, a datetime, or whole microseconds since 1970 UTC",
            ) from error
        node_index = self._number.get(node) if isinstance(node, str) else None
        if node_index is None:
            raise InputError(
                f"row {row_index} of a portion names an unknown node",
                column="node",
                value=node,
                expected="a node of the log",
                fix=did_you_mean([str(node)], self._log.nodes) or "add it to the nodes",
            )
        is_state = isinstance(state, str | int | np.integer) and not isinstance(state, bool)
        code = _STATES.get(state) if is_state else None
        if code is None:
            raise InputError(
                f"row {row_index} of a portion has an unknown state",
                column="state",
                value=state,
                expected=", ".join(STATE_WORDS),
            )
        return time_us, node_index, code

    def _check_times(self, rows: EventBatch) -> None:
        """Raise ``InputError`` for a row of a time that is over, or after the window."""
        early = rows.time_us[0] < self.until_us
        if early or rows.time_us[-1] > self._log.window_end_us:
            row_index = 0 if early else -1
            raise InputError(
                f"node {self._log.nodes[rows.node[row_index]]!r} has an event "
                + ("at a time that is over: it comes too late" if early else "after the end of the window"),
                column="time",
                value=iso_utc(int(rows.time_us[row_index])),
                expected=iso_span(self.until_us, self._log.window_end_us),
                fix="advance only to a time before which no event can come any more" if early else None,
            )

    def _merged(self, new_rows: EventBatch) -> tuple[EventBatch, int]:
        """Return all waiting rows in order, those that are twice there once, and the number of repetitions."""
        rows = EventBatch.joined([self._waiting, new_rows])
        rows = rows.take(np.lexsort((rows.node, rows.time_us)))
        time_us, node, state = rows.columns
        is_same = np.zeros(len(rows), np.bool_)
        is_same[1:] = (time_us[1:] == time_us[:-1]) & (node[1:] == node[:-1])
        differs = np.flatnonzero(is_same[1:] & (state[1:] != state[:-1]))
        if differs.size:
            row_index = int(differs[0])
            raise InputError(
                f"node {self._log.nodes[node[row_index]]!r} has two states at {iso_utc(int(time_us[row_index]))}",
                column="state",
                value=STATE_WORDS[state[row_index + 1]],
                expected=f"one state, such as {STATE_WORDS[state[row_index]]}",
                fix="keep the last of the two",
            )
        return rows.take(~is_same), int(is_same.sum())

    def _check(self, ready: EventBatch, states: NDArray[np.int8]) -> None:
        """Apply events to the states, and raise ``InputError`` for a node that becomes idle while idle."""
        problem, row_index = apply_events(ready.time_us.copy(), ready.node.copy(), ready.state.copy(), states, False)
        if problem != VALID:
            is_it = (self._waiting.time_us == ready.time_us[row_index]) & (self._waiting.node == ready.node[row_index])
            self._waiting = self._waiting.take(~is_it)  # else no later portion could be taken
            node_name, time = self._log.nodes[ready.node[row_index]], iso_utc(int(ready.time_us[row_index]))
            raise InputError(
                f"node {node_name!r} becomes idle at {time} but is idle already",
                column="state",
                value="idle",
                expected="an event that reclaims the node between two that free it",
                fix="give the missing event before it" + (", and this one again" if is_it.any() else ""),
            )


_DTYPES = (np.int64, np.int32, np.int8)
_STATES: Mapping[Any, int] = {
    **{word: code for code, word in enumerate(STATE_WORDS)},
    **{int(node_state): int(node_state) for node_state in NodeState},
}


def _idle_until_left_us(rows: EventBatch, states_before: NDArray[np.int8], start_us: int) -> int:
    """Return the node time from ``start_us`` to when nodes leave the idle ones, minus that to when they come."""
    time_us, node, state = rows.take(np.lexsort((rows.time_us, rows.node))).columns
    after_us = time_us - start_us
    earlier = states_before[node]
    follows = node[1:] == node[:-1]
    earlier[1:][follows] = state[:-1][follows]
    was_idle, is_idle = earlier == NodeState.IDLE, state == NodeState.IDLE
    return int(after_us[was_idle & ~is_idle].sum() - after_us[is_idle & ~was_idle].sum())
