"""Changes that two logs both have, at other times: those within a tolerance, and a steady lag between the logs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.agreement.joint_spans import JointSpans
from bfreplay.datasets.log.states import NodeState

_Ints = NDArray[np.int64]
_Marks = NDArray[np.bool_]

_N_STATES = len(NodeState)
BY_STATE = np.arange(_N_STATES, dtype=np.int8)
BY_CLASS = BY_STATE.copy()
BY_CLASS[[NodeState.PLANNED, NodeState.RESERVED, NodeState.MAINTENANCE, NodeState.COMPLETING]] = NodeState.IDLE
BY_CLASS[[NodeState.DRAIN, NodeState.OFF]] = NodeState.DOWN
BY_JOB = np.where(BY_CLASS == NodeState.DOWN, np.int8(NodeState.IDLE), BY_CLASS)
LEVELS = (BY_JOB, BY_CLASS, BY_STATE)
"""Labels of each state, ``(len(NodeState),)``: with a job or not; out of order too; the state itself."""

_NEIGHBOURS = 16
"""Changes after each, of its node and kind, to which it is compared: a lag is seen over about half as many."""
_MOST_CHANGES = 100_000
"""Changes from which the lag is found; of more, every second, third, ..."""
LEAST_CHANGES = 5
"""Least number of changes with a steady lag; and half of the changes of the log with fewer."""


@dataclass(frozen=True, slots=True)
class Lag:
    """Time by which the changes of B come after those of A, the median, and the number of changes that have it."""

    lag_us: int
    changes: int


class Segments:
    """Runs of spans with the same pair of labels, one of ``LEVELS``, and the changes of labels in each log.

    Changes (C), first those of A: ``opened (C,)`` the span that each opens; ``kind (C,)`` its node, and the labels
    before and after, in one number; ``time_us (C,)``; ``of_b (C,)`` whether it is one of B.
    """

    def __init__(self, spans: JointSpans, level: NDArray[np.int8], window_us: tuple[int, int]) -> None:
        self.window_us = window_us
        self.labels = level[spans.a], level[spans.b]
        same_node = spans.node[1:] == spans.node[:-1]
        opened = [np.flatnonzero(same_node & (label[1:] != label[:-1])) + 1 for label in self.labels]
        before, after = (
            np.concatenate([label[span - shift] for label, span in zip(self.labels, opened, strict=True)])
            for shift in (1, 0)
        )
        self.opened, self.of_b = np.concatenate(opened), np.repeat([False, True], list(map(len, opened)))
        self.kind = (spans.node[self.opened] * _N_STATES + before) * _N_STATES + after
        self.time_us = spans.start_us[self.opened]
        begins = np.append(True, ~same_node)
        begins[self.opened] = True
        self._first, self._segment = np.flatnonzero(begins), np.cumsum(begins) - 1
        start_us, end_us = spans.start_us[self._first], spans.end_us[np.append(self._first[1:], len(begins)) - 1]
        self._is_cut_before, self._is_cut_after = start_us == window_us[0], end_us == window_us[1]
        self._length_us = end_us - start_us

    def are_late(self, lag_us: int, tolerance_us: int) -> _Marks:
        """Mark the spans ``(S,)`` whose labels differ only because one log makes its changes later than the other.

        Their segment is no longer than lag and tolerance together, and the changes at both of its ends have a
        counterpart: the same change of the same node in the other log, by the lag later in B, give or take the
        tolerance. A counterpart beyond the window is believed of a log that knows both labels. A segment that is cut
        at both ends has no change.
        """
        is_fitting = np.ones(len(self._segment), np.bool_)
        is_fitting[self.opened[~self._have_counterparts(lag_us, tolerance_us)]] = False
        opens = self._is_cut_before | is_fitting[self._first]
        closes = self._is_cut_after | np.append(is_fitting[self._first[1:]], True)
        late = opens & closes & ~(self._is_cut_before & self._is_cut_after)
        late &= self._length_us <= abs(lag_us) + tolerance_us
        return np.asarray(late[self._segment] & (self.labels[0] != self.labels[1]))

    def are_flaps(self, tolerance_us: int) -> _Marks:
        """Mark the spans ``(S,)`` of a difference, no longer than the tolerance, between agreement on one label."""
        a, b = (label[self._first] for label in self.labels)
        before, after = np.roll(a, 1), np.roll(a, -1)
        is_flap = (before == after) & (before == np.roll(b, 1)) & (after == np.roll(b, -1)) & (a != b)
        is_flap &= ~(self._is_cut_before | self._is_cut_after) & (self._length_us <= tolerance_us)
        return np.asarray(is_flap[self._segment])

    def lag(self, width_us: int, period_us: tuple[int, int] | None = None) -> Lag | None:
        """Return the lag that most changes have, within a range of ``width_us``; ``None`` without a steady one.

        With a period only the changes in it count.
        """
        start_us, end_us = self.window_us if period_us is None else period_us
        order = np.lexsort((self.time_us, self.kind))
        order = order[(self.time_us[order] >= start_us) & (self.time_us[order] <= end_us)]
        kind, time_us, of_b = self.kind[order], self.time_us[order], self.of_b[order]
        every = -(-len(order) // _MOST_CHANGES) or 1
        lags = []
        for distance in range(1, _NEIGHBOURS + 1):
            first = np.arange(0, len(order) - distance, every)
            first = first[(kind[first] == kind[first + distance]) & (of_b[first] != of_b[first + distance])]
            lags.append((time_us[first + distance] - time_us[first]) * np.where(of_b[first], -1, 1))
        lag_us = np.sort(np.concatenate(lags))
        in_range = np.searchsorted(lag_us, lag_us + width_us, side="right") - np.arange(len(lag_us))
        most, n_b = int(in_range.max(initial=0)), int(np.count_nonzero(of_b))
        if most < max(LEAST_CHANGES, min(n_b, len(order) - n_b) / every / 2):
            return None
        medians = lag_us[np.flatnonzero(in_range == most) + most // 2]
        return Lag(int(medians[np.abs(medians).argmin()]), most)

    def _have_counterparts(self, lag_us: int, tolerance_us: int) -> _Marks:
        """Return whether each change, ``(C,)``, has its counterpart, or may have one beyond the window."""
        time_us = np.where(self.of_b, self.time_us - lag_us, self.time_us)
        expected_us = np.where(self.of_b, time_us, time_us + lag_us)
        matched = (expected_us - tolerance_us < self.window_us[0]) | (expected_us + tolerance_us > self.window_us[1])
        for of_log, other in zip((self.of_b, ~self.of_b), self.labels, strict=True):  # B's changes need A's labels
            known, labels = np.unique(other), (self.kind // _N_STATES % _N_STATES, self.kind % _N_STATES)
            matched &= ~of_log | (np.isin(labels[0], known) & np.isin(labels[1], known))
        order, position = np.lexsort((time_us, self.kind)), np.arange(len(time_us))
        for direction in (order, order[::-1]):  # the last of the other log before, the first after
            for of_log in (self.of_b, ~self.of_b):
                nearest = direction[np.maximum.accumulate(np.where(of_log[direction], position, 0))]
                is_near = ~of_log[direction] & of_log[nearest] & (self.kind[direction] == self.kind[nearest])
                is_near &= np.abs(time_us[direction] - time_us[nearest]) <= tolerance_us
                matched[direction[is_near]] = True
        return matched
