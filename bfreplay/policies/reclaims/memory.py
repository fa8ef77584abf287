"""Reclaims of the last hours, by the place of their nodes among the idle ones.

A batch scheduler takes idle nodes by a rule: the lowest numbers, the highest for small jobs, neighbours for large ones.
So what it takes next is near the place, counted from the nearer end of the idle nodes, of what it took before. Ages
of nodes tell more, but using them gained nothing (docs/design/policies.md).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.policies.state import LONG_AGO_US

MEMORY_S = 12 * 3600.0
"""Seconds after which a reclaim is forgotten."""

_MOST = 1024  # stretches
_LARGEST_GAP = 3  # places between two nodes of a stretch
_LEAST_S = 3600.0  # of observation, before which few reclaims would mean safety
_UNSEEN = 0.5  # reclaims added, so that nothing is ever safe for good
_BURST_S = 120.0  # reclaims come in bursts, and a job restarts once in each


class Stretches(NamedTuple):
    """Reclaims as they would be of the nodes that are idle now: the M places from ``first`` to ``last`` of them.

    ``seconds`` is how long they were collected.
    """

    first: NDArray[np.int64]
    last: NDArray[np.int64]
    seconds: float


class ReclaimMemory:
    """Remembers reclaims: ``note`` what is idle at every decision, then ask ``stretches``."""

    def __init__(self) -> None:
        self._was_idle = np.zeros(0, np.bool_)
        self._begin_us = self._now_us = LONG_AGO_US
        # of each stretch: time, whether counted from the upper end, nearer and farther end of it from there
        self._reclaims = np.zeros((2 * _MOST, 4), np.int64)
        self._n = 0  # rows of ``_reclaims`` that are written

    def note(self, is_idle: NDArray[np.bool_], time_us: int) -> None:
        """Compare with what was idle before."""
        if time_us < self._now_us or self._was_idle.size != is_idle.size:
            self._begin_us, self._n = time_us, 0  # another replay: what is remembered is none of it
        elif (left := self._was_idle & ~is_idle).any():
            self._add(np.searchsorted(np.flatnonzero(self._was_idle), np.flatnonzero(left)), time_us)
        self._was_idle, self._now_us = is_idle.copy(), time_us

    def add_nodes(self, n_nodes: int) -> None:
        """Make room for nodes that have appeared, and were not idle; before the first decision no room is needed."""
        if self._was_idle.size:
            self._was_idle = np.append(self._was_idle, np.zeros(n_nodes - self._was_idle.size, np.bool_))

    def _add(self, places: NDArray[np.int64], time_us: int) -> None:
        n_idle = int(self._was_idle.sum())
        cuts = np.flatnonzero(np.diff(places) > _LARGEST_GAP)
        first, last = places[np.append(0, cuts + 1)], places[np.append(cuts, -1)]
        is_upper = first + last > n_idle - 1
        if 2 * self._reclaims[: self._n, 1].sum() > self._n:  # the nearer end of all idle nodes: where most were taken
            is_upper |= first + last == n_idle - 1
        near, far = np.where(is_upper, n_idle - 1 - last, first), np.where(is_upper, n_idle - 1 - first, last)
        rows = np.column_stack((np.full(first.size, time_us), is_upper, near, far))[:_MOST]
        if self._n + len(rows) > len(self._reclaims):
            self._reclaims[:_MOST] = self._reclaims[self._n - _MOST : self._n]
            self._n = _MOST
        self._reclaims[self._n : self._n + len(rows)] = rows
        self._n += len(rows)

    def stretches(self) -> Stretches:
        """Return the reclaims of the last ``MEMORY_S``, as they would be now."""
        oldest_us = max(self._begin_us, self._now_us - round(MEMORY_S * 1e6))
        rows = self._reclaims[max(0, self._n - _MOST) : self._n]
        if len(rows) == _MOST:
            oldest_us = max(oldest_us, int(rows[0, 0]))
        _, is_upper, near, far = rows[rows[:, 0] >= oldest_us].T
        top = int(self._was_idle.sum()) - 1
        first, last = np.where(is_upper > 0, top - far, near), np.where(is_upper > 0, top - near, far)
        is_there = (last >= 0) & (first <= top)
        return Stretches(first[is_there], last[is_there], max((self._now_us - oldest_us) / 1e6, _LEAST_S))


@compiled
def count_hits(first: NDArray[np.int64], last: NDArray[np.int64], places: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which stretches hold one of the ascending ``places``, (M,)."""
    is_hit = np.zeros(first.shape[0], np.bool_)
    for k in range(first.shape[0]):
        position = np.searchsorted(places, first[k])
        is_hit[k] = position < places.shape[0] and places[position] <= last[k]
    return is_hit


@compiled
def frequency(n_hits: int, seconds: float) -> float:
    """Return reclaims a second, from how many were seen; those within ``_BURST_S`` of another count less."""
    return (n_hits + _UNSEEN) / (seconds + _BURST_S * n_hits)
