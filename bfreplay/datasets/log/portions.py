"""Rows of a log that comes in portions: from a pipe, a file that grows, or a cluster that is looked at as it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.log.events import NodeEvents
from bfreplay.datasets.log.passes import VALID, apply_events
from bfreplay.datasets.log.portion_rows import Rows, read_rows
from bfreplay.datasets.log.states import STATE_WORDS, EventBatch, NodeState
from bfreplay.datasets.times import iso_span, iso_utc
from bfreplay.errors import InputError

_NOTHING = EventBatch(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int8))


@dataclass(frozen=True, slots=True)
class FeedCounts:
    """Numbers of rows that a session with a hold-back has put right, by kind.

    Parameters
    ----------
    n_late
        Rows of a time that was over already, moved to the earliest time that was not.
    n_corrected
        Rows that another one of the same node and instant, given later, has replaced.
    n_repeated
        Rows that were there already, or repeated the state of their node.
    n_clock_steps
        Times that ``until`` was earlier than before.
    n_appeared
        Nodes that appeared after the start.
    """

    n_late: int = 0
    n_corrected: int = 0
    n_repeated: int = 0
    n_clock_steps: int = 0
    n_appeared: int = 0


class Portions:
    """Puts rows that come in portions in order, and checks them, as a pass over a whole log does.

    Rows of times that are still to come may arrive in any order. A row that is equal to one of these counts once. A row
    of a time that is over, a second state of a node at one time, and a node that becomes idle while idle are errors. A
    row that was given ahead of its time, and turns out to be such an error, is taken back.

    With a hold-back none of these is an error (see ``FeedCounts``): a log that is followed has no other one.

    Parameters
    ----------
    log
        Its nodes, their states at the start, and its window; it has no rows.
    hold_back_us
        Rows wait for so long after their time: the log is complete up to ``until`` less this time.

    Attributes
    ----------
    until_us
        Time up to which the log is complete: events before it were returned.
    final_events
        Those that the last ``take`` returned, the state of every node at the start included once.
    nodes, n_at_start, node_types
        The inventory: names of all nodes in order, so many of them known at the start, and the nodes of each type.
    states, since_us
        State of each node after the last of them, and time from which it has it, (N,).
    """

    not_saved = ("log", "_number", "_hold_back_us")

    def __init__(self, log: NodeEvents, hold_back_us: int = 0) -> None:
        self.log = log.followed() if hold_back_us else log
        self._hold_back_us = hold_back_us
        self.n_at_start = log.metadata.n_nodes_at_start or len(log.nodes)
        self.take_inventory(self.log)
        self.states: NDArray[np.int8] = log.first_states()
        self.since_us = np.full(len(log.nodes), log.window_start_us)
        self._waiting = EventBatch(*_NOTHING.columns)
        self._is_begun = False
        self.until_us = self._last_until_us = log.window_start_us
        self.n_late = self.n_corrected = self.n_repeated = self.n_clock_steps = self.n_appeared = 0
        self._idle_until_left_us = 0  # node time from the start to when nodes leave, minus to when they come
        self.final_events = EventBatch(*_NOTHING.columns)

    @property
    def is_followed(self) -> bool:
        """True with a hold-back."""
        return self._hold_back_us > 0

    @property
    def counts(self) -> FeedCounts:
        """Counts of what was put right so far."""
        return FeedCounts(self.n_late, self.n_corrected, self.n_repeated, self.n_clock_steps, self.n_appeared)

    def take(
        self,
        rows: Rows,
        until_us: int | None = None,
        *,
        node_types: Mapping[str, str] | None = None,
        holds_back: bool = True,
    ) -> EventBatch:
        """Take more rows, and return the events before ``until_us`` that were not returned yet, in order.

        Parameters
        ----------
        rows
            In any order, as for ``read_rows``.
        until_us
            No row of an earlier time will follow. ``None``: the time of the last row so far, of which more may follow.
            Times after the window mean its end.
        node_types
            Types of nodes that appear.
        holds_back
            False at the end: no row waits any longer.

        Raises
        ------
        InputError
            A row cannot be used; the message says which, and nothing of this portion is taken.
        """
        new_rows, names = read_rows(rows, self._number, may_appear=self.is_followed)
        log = self.log.with_more_nodes(names, node_types) if names else self.log
        new_rows = new_rows.take(np.lexsort((new_rows.node, new_rows.time_us)))
        self._check_times(new_rows, log)
        asked_us = self._latest_us(new_rows) if until_us is None else until_us
        bound_us = self._bound_us(asked_us, self._hold_back_us if holds_back else 0)
        n_late = int(np.searchsorted(new_rows.time_us, self.until_us))
        in_time = EventBatch(np.maximum(new_rows.time_us, self.until_us), *new_rows.columns[1:])
        late, in_time = in_time.take(slice(0, n_late)), in_time.take(slice(n_late, None))
        # a late row is older than one of the earliest time that waits
        sorted_rows, n_repeated, n_corrected = self._merged([late, self._waiting, in_time], log)
        states = np.append(self.states, np.full(len(names), NodeState.UNKNOWN, np.int8))
        n_ready, n_next = (int(np.searchsorted(sorted_rows.time_us, bound_us, side)) for side in ("left", "right"))
        ready = sorted_rows.take(slice(0, n_ready))
        before = ready.states_before(states)
        if self.is_followed:
            is_change = before != ready.state
            n_repeated += int((~is_change).sum())
            ready, before = ready.take(is_change), before[is_change]
        else:
            self._check(ready, states.copy())
            self._check(sorted_rows.take(slice(0, n_next)), states.copy())  # no row can come before these any more
        # nothing can be refused any more
        self.add_nodes(names, node_types)
        self._waiting = sorted_rows.take(slice(n_ready, None))
        self.n_clock_steps += holds_back and asked_us < self._last_until_us
        self.until_us, self._last_until_us = bound_us, asked_us
        self.n_late, self.n_corrected = self.n_late + n_late, self.n_corrected + n_corrected
        self.n_repeated += n_repeated
        return self._apply(ready, before)

    def _apply(self, ready: EventBatch, before: NDArray[np.int8]) -> EventBatch:
        """Note events, with the states before them, as final; return them with ``log.idle_states`` as idle."""
        start_us, states_before = self.log.window_start_us, self.states.copy()
        was_idle, is_idle = np.isin(before, self.log.idle_states), np.isin(ready.state, self.log.idle_states)
        after_us = ready.time_us - start_us
        self._idle_until_left_us += int(after_us[was_idle & ~is_idle].sum() - after_us[is_idle & ~was_idle].sum())
        is_change = before != ready.state
        self.since_us[ready.node[is_change]] = ready.time_us[is_change]  # of several the last
        self.states[ready.node] = ready.state
        if not self._is_begun and self.until_us > start_us:
            self._is_begun = True
            n_first = int(np.searchsorted(ready.time_us, start_us, side="right"))
            snapshot = states_before.copy()
            snapshot[ready.node[:n_first]] = ready.state[:n_first]
            ready = EventBatch.joined([EventBatch.of_states(start_us, snapshot), ready.take(slice(n_first, None))])
            states_before[:] = NodeState.BUSY
        self.final_events = ready
        return ready.counting_as_idle(self.log.idle_states, states_before)

    def forget_waiting(self) -> None:
        """Drop the rows that were not returned yet."""
        self._waiting = _NOTHING

    def idle_node_us(self, end_us: int) -> int:
        """Return the idle node time from the start of the window to ``end_us``, all of which was taken."""
        n_idle = int(np.isin(self.states, self.log.idle_states).sum())
        return self._idle_until_left_us + n_idle * (end_us - self.log.window_start_us)

    def take_inventory(self, log: NodeEvents) -> None:
        """Take the nodes of ``log``, the same log with more of them, and their types."""
        self.log, self.nodes = log, list(log.nodes)
        self.node_types = {type_name: list(members) for type_name, members in log.metadata.node_types.items()}
        self._number = {name: number for number, name in enumerate(self.nodes)}

    def add_nodes(self, names: Sequence[str], type_of: Mapping[str, str] | None = None) -> None:
        """Number nodes after all others: they were unknown until now; ``type_of`` each, where there are types."""
        if not names:
            return
        self.take_inventory(self.log.with_more_nodes(names, type_of))
        self.states = np.append(self.states, np.full(len(names), NodeState.UNKNOWN, np.int8))
        self.since_us = np.append(self.since_us, np.full(len(names), self.log.window_start_us))
        self.n_appeared += len(names)

    def lose_nodes(self, names: Sequence[str]) -> None:
        """Let nodes be unknown from now on, or from their last row that waits."""
        number = np.array([self.nodes.index(name) for name in names], np.int32)
        last_us = [max([self.until_us, *self._waiting.time_us[self._waiting.node == node].tolist()]) for node in number]
        rows = EventBatch(np.array(last_us, np.int64), number, np.full(len(names), NodeState.UNKNOWN, np.int8))
        self._waiting, _, _ = self._merged([self._waiting, rows], self.log)

    def _latest_us(self, new_rows: EventBatch) -> int:
        """Return the time of the last row so far."""
        latest = [int(rows.time_us[-1]) for rows in (new_rows, self._waiting) if len(rows)]
        return max([self._last_until_us if self.is_followed else self.until_us, *latest])

    def _bound_us(self, asked_us: int, hold_back_us: int) -> int:
        """Return the time up to which the log is complete if it was asked for the events before ``asked_us``."""
        last_us = self.log.window_end_us + 1
        if self.is_followed:
            return min(max(self.until_us, asked_us - hold_back_us), last_us)
        if asked_us < self.until_us:
            raise InputError(
                "the replay does not go back",
                column="until",
                value=iso_utc(asked_us),
                expected=f"{iso_utc(self.until_us)} or later",
            )
        return min(asked_us, last_us)

    def _check_times(self, rows: EventBatch, log: NodeEvents) -> None:
        """Raise ``InputError`` for a row of a time that is over, or after the window."""
        if not len(rows):
            return
        early = rows.time_us[0] < self.until_us and not self.is_followed
        if early or rows.time_us[-1] > log.window_end_us:
            row_index = 0 if early else -1
            raise InputError(
                f"node {log.nodes[rows.node[row_index]]!r} has an event "
                + ("at a time that is over: it comes too late" if early else "after the end of the window"),
                column="time",
                value=iso_utc(int(rows.time_us[row_index])),
                expected=iso_span(self.until_us, log.window_end_us),
                fix="advance only to a time before which no event can come any more, or hold rows back (hold_back)"
                if early
                else None,
            )

    def _merged(self, batches: list[EventBatch], log: NodeEvents) -> tuple[EventBatch, int, int]:
        """Return all rows in order, the last of each node and instant; and how many were equal to it, or not.

        Of rows of one node and instant that differ the last one of the batches stands, with a hold-back.
        """
        rows = EventBatch.joined(batches)
        rows = rows.take(np.lexsort((rows.node, rows.time_us)))
        time_us, node, state = rows.columns
        is_same = np.zeros(len(rows), np.bool_)
        is_same[:-1] = (time_us[1:] == time_us[:-1]) & (node[1:] == node[:-1])
        differs = is_same.copy()
        differs[:-1] &= state[1:] != state[:-1]
        n_different = int(differs.sum())
        if n_different and not self.is_followed:
            row_index = int(np.argmax(differs))
            raise InputError(
                f"node {log.nodes[node[row_index]]!r} has two states at {iso_utc(int(time_us[row_index]))}",
                column="state",
                value=STATE_WORDS[state[row_index + 1]],
                expected=f"one state, such as {STATE_WORDS[state[row_index]]}",
                fix="keep the last of the two",
            )
        return rows.take(~is_same), int(is_same.sum()) - n_different, n_different

    def _check(self, rows: EventBatch, states: NDArray[np.int8]) -> None:
        """Apply events to the states, and raise ``InputError`` for a node that becomes idle while idle."""
        problem, row_index = apply_events(rows.time_us.copy(), rows.node.copy(), rows.state.copy(), states, False)
        if problem != VALID:
            is_it = (self._waiting.time_us == rows.time_us[row_index]) & (self._waiting.node == rows.node[row_index])
            self._waiting = self._waiting.take(~is_it)  # else no later portion could be taken
            node_name, time = self.log.nodes[rows.node[row_index]], iso_utc(int(rows.time_us[row_index]))
            raise InputError(
                f"node {node_name!r} becomes idle at {time} but is idle already",
                column="state",
                value="idle",
                expected="an event that reclaims the node between two that free it",
                fix="give the missing event before it" + (", and this one again" if is_it.any() else ""),
            )
