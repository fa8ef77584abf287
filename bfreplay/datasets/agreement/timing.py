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
_IDLE, _BUSY, _UNKNOWN = NodeState.IDLE, NodeState.BUSY, NodeState.UNKNOWN

BY_STATE = np.arange(_N_STATES, dtype=np.int8)
BY_JOB = np.full(_N_STATES, _IDLE, np.int8)
BY_JOB[[_BUSY, _UNKNOWN]] = _BUSY, _UNKNOWN
BY_CLASS = BY_JOB.copy()
BY_CLASS[[NodeState.DOWN, NodeState.DRAIN, NodeState.OFF]] = NodeState.DOWN
LEVELS = (BY_JOB, BY_CLASS, BY_STATE)
"""Labels of each state, ``(len(NodeState),)``: with a job or not; out of order too; the state itself."""

_NEIGHBOURS = 16
"""Changes after each, of its node and kind, to which it is compared: a lag is seen over about half as many."""
_MOST_CHANGES = 100_000
LEAST_CHANGES = 5
"""Least number of changes with a steady lag; and half of the changes of the log with fewer."""


@dataclass(frozen=True, slots=True)
class Lag:
    """Time by which the changes of B come after those of A: its median, and the number of changes that have it."""

    lag_us: int
    changes: int


@dataclass(frozen=True, slots=True, eq=False)
class _Changes:
    """Changes of one log: the span that each opens, its node with the labels before and after, and its time."""

    span: _Ints
    kind: _Ints
    time_us: _Ints

    @classmethod
    def of(cls, spans: JointSpans, label: NDArray[np.int8]) -> _Changes:
        is_change = (spans.node[1:] == spans.node[:-1]) & (label[1:] != label[:-1])
        span = np.flatnonzero(is_change) + 1
        kind = (spans.node[span] * _N_STATES + label[span - 1]) * _N_STATES + label[span]
        return cls(span, kind, spans.start_us[span])


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """Runs of spans with the same pair of labels, one of ``LEVELS``, and the changes between them."""

    spans: JointSpans
    level: NDArray[np.int8]
    window_us: tuple[int, int]

    @property
    def labels(self) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
        """Labels of the states in A and in B, ``(S,)``."""
        return self.level[self.spans.a], self.level[self.spans.b]

    def are_late(self, lag_us: int, tolerance_us: int) -> _Marks:
        """Mark the spans ``(S,)`` whose labels differ only because one log makes its changes later than the other.

        Their segment is no longer than lag and tolerance together, and the changes at both of its ends have a
        counterpart: the same change of the same node in the other log, by the lag later in B, give or take the
        tolerance. A counterpart beyond the window is believed of a log that knows both labels. A segment that is cut
        at both ends has no change.
        """
        has_counterparts = np.ones(len(self.spans.node), np.bool_)
        for changes, matched in self._counterparts(lag_us, tolerance_us):
            has_counterparts[changes.span[~matched]] = False
        first, last, segment = self._bounds()
        is_cut_before, is_cut_after = self._are_cut(first, last)
        opens = is_cut_before | has_counterparts[first]
        closes = is_cut_after | np.append(has_counterparts[first[1:]], True)
        late = opens & closes & (self.labels[0][first] != self.labels[1][first])
        late &= ~(is_cut_before & is_cut_after) & (self._length_us(first, last) <= abs(lag_us) + tolerance_us)
        return np.asarray(late[segment])

    def are_flaps(self, tolerance_us: int) -> _Marks:
        """Mark the spans ``(S,)`` of a difference, no longer than the tolerance, between agreement on one label."""
        first, last, segment = self._bounds()
        a, b = (label[first] for label in self.labels)
        before, after = np.roll(a, 1), np.roll(a, -1)
        is_flap = (before == after) & (before == np.roll(b, 1)) & (after == np.roll(b, -1)) & (a != b)
        is_flap &= ~np.logical_or(*self._are_cut(first, last))
        is_flap &= self._length_us(first, last) <= tolerance_us
        return np.asarray(is_flap[segment])

    def lag(self, width_us: int) -> Lag | None:
        """Return the lag that most changes have, within a range of ``width_us``; ``None`` without a steady one."""
        a, b = (_Changes.of(self.spans, label) for label in self.labels)
        kind, time_us, is_b, _ = _merged(a, b, 0)
        every = -(-len(kind) // _MOST_CHANGES) or 1
        differences = [np.empty(0, np.int64)]
        for distance in range(1, _NEIGHBOURS + 1):
            first = np.arange(0, len(kind) - distance, every)
            second = first + distance
            is_pair = (kind[first] == kind[second]) & (is_b[first] != is_b[second])
            later_us = (time_us[second] - time_us[first])[is_pair]
            differences.append(np.where(is_b[second[is_pair]], later_us, -later_us))
        difference = np.sort(np.concatenate(differences))
        in_range = np.searchsorted(difference, difference + width_us, side="right") - np.arange(len(difference))
        if not len(difference) or in_range.max() < max(LEAST_CHANGES, min(len(a.span), len(b.span)) / every / 2):
            return None
        candidates = np.flatnonzero(in_range == in_range.max())
        best = candidates[np.argmin(np.abs(difference[candidates + in_range.max() // 2]))]
        return Lag(int(difference[best + in_range.max() // 2]), int(in_range.max()))

    def _counterparts(self, lag_us: int, tolerance_us: int) -> tuple[tuple[_Changes, _Marks], ...]:
        """Return the changes of A and of B, and whether each has its counterpart, or may have one beyond the window."""
        a, b = (_Changes.of(self.spans, label) for label in self.labels)
        kind, time_us, is_b, order = _merged(a, b, lag_us)
        matched = np.zeros(len(order), np.bool_)
        position = np.arange(len(order))
        for backwards in (slice(None), slice(None, None, -1)):  # the last of the other log before, the first after
            of_b, row = is_b[backwards], position[backwards]
            for of_log in (False, True):
                nearest = row[np.maximum.accumulate(np.where(of_b == of_log, position, 0))]
                is_near = (of_b != of_log) & (is_b[nearest] == of_log) & (kind[row] == kind[nearest])
                is_near &= np.abs(time_us[row] - time_us[nearest]) <= tolerance_us
                matched[order[row[is_near]]] = True
        start_us, end_us = self.window_us
        both = (a, matched[: len(a.span)]), (b, matched[len(a.span) :])
        for (changes, marks), other, shift_us in zip(both, self.labels[::-1], (lag_us, -lag_us), strict=True):
            expected_us = changes.time_us + shift_us
            is_beyond = (expected_us - tolerance_us < start_us) | (expected_us + tolerance_us > end_us)
            known = np.unique(other)
            before, after = changes.kind // _N_STATES % _N_STATES, changes.kind % _N_STATES
            marks |= is_beyond & np.isin(before, known) & np.isin(after, known)
        return both

    def _bounds(self) -> tuple[_Ints, _Ints, _Ints]:
        """Return the first and the last span of each segment, and the segment of each span."""
        node, (a, b) = self.spans.node, self.labels
        begins = np.append(True, (node[1:] != node[:-1]) | (a[1:] != a[:-1]) | (b[1:] != b[:-1]))
        first = np.flatnonzero(begins)
        return first, np.append(first[1:], len(node)) - 1, np.cumsum(begins) - 1

    def _length_us(self, first: _Ints, last: _Ints) -> _Ints:
        return self.spans.end_us[last] - self.spans.start_us[first]

    def _are_cut(self, first: _Ints, last: _Ints) -> tuple[_Marks, _Marks]:
        return self.spans.start_us[first] == self.window_us[0], self.spans.end_us[last] == self.window_us[1]


def _merged(a: _Changes, b: _Changes, lag_us: int) -> tuple[_Ints, _Ints, _Marks, _Ints]:
    """Return kind, time and log of all changes, sorted by kind and time, and the order; B's are ``lag_us`` earlier."""
    kind, time_us = np.concatenate((a.kind, b.kind)), np.concatenate((a.time_us, b.time_us - lag_us))
    is_b = np.repeat([False, True], (len(a.span), len(b.span)))
    order = np.lexsort((time_us, kind))
    return kind[order], time_us[order], is_b[order], order
