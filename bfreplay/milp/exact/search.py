"""The core: an exact search among the counts that the relaxation leaves undecided.

Losses are what an answer gives up against the relaxation (see the package). The answer of least loss is searched by a
dynamic program over sums of counts. Three things keep it small:

- *Deepening.* The best answer mostly loses far less than the best known one. So the search first asks for an answer
  that loses less than a small part of what is known, among the few counts that lose less than that themselves, and
  allows more only when there is none. Whatever it finds is optimal: every answer that loses less was in reach. Few
  counts are searched whole before that, which mostly proves that there is no better answer.
- *Completion.* A sum is kept only if the remaining jobs can still bring it to the capacity within the allowance. What
  that costs them at least follows from the convex hulls of their losses, cheapest slope first.
- *Order.* The job whose hull segment the capacity cuts can change by many nodes for nothing, and would make every such
  bound 0: it is decided first, then the others, those with fewest choices first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.milp.exact.relaxation import Hulls

FIRST_TRIAL = 1 / 64
"""Share of the allowance that is tried first."""

GROWTH = 4.0
"""Of the trial allowance, while no answer is found: so all failed trials together cost a fraction of the last one."""

SMALL = 256
"""Undecided counts up to which all are searched at once, first: mostly no answer is better, and no trial is needed."""

_FEW = 64
"""Keys that are sorted faster by insertion."""

_ROUNDING = 1e-9
"""Completion bounds are lowered by this share, so that the rounding of long sums never excludes an answer."""


class Relaxed(NamedTuple):
    """The relaxation's answer for J jobs."""

    base: NDArray[np.int64]  # (J,) counts
    broken: int  # job whose hull segment the capacity cuts
    capacity: int
    price: float  # of a node


class Undecided(NamedTuple):
    """Counts that J jobs may have: those of job j are ``counts[offset[j]:offset[j + 1]]``, ascending."""

    counts: NDArray[np.int64]  # (A,)
    loss: NDArray[np.float64]  # (A,) of each against the job's best
    offset: NDArray[np.int64]  # (J + 1,)


@compiled
def undecided_counts(
    hulls: Hulls, vertex: NDArray[np.int64], value: NDArray[np.float64], capacity: int, price: float, allowance: float
) -> Undecided:
    """Return the counts that alone lose at most ``allowance`` against the job's best with nodes at ``price``.

    ``vertex (J,)`` is the best on each job's hull. Along a hull the loss grows with the distance from there. So
    once a vertex loses more than ``allowance``, all counts beyond it do.
    """
    points, worth, _, start, stop = hulls
    n_jobs, width = value.shape
    width = min(width, capacity + 1)
    far = 1.25 * allowance  # hulls may be bent by rounding, by far less than a quarter of the least allowance
    room = 1024
    count = np.empty(room, np.int64)
    loss = np.empty(room, np.float64)
    offset = np.empty(n_jobs + 1, np.int64)
    top = 0
    for j in range(n_jobs):
        offset[j] = top
        if top + width > room:
            room = 2 * room + width
            wider_count = np.empty(room, np.int64)
            wider_loss = np.empty(room, np.float64)
            wider_count[:top] = count[:top]
            wider_loss[:top] = loss[:top]
            count = wider_count
            loss = wider_loss
        low = high = vertex[j]
        best = worth[low] - price * points[low]
        while low > start[j] and best - (worth[low] - price * points[low]) <= far:
            low -= 1
        while high < stop[j] - 1 and best - (worth[high] - price * points[high]) <= far:
            high += 1
        last = points[high]
        if best - (worth[high] - price * last) <= far:  # counts beyond the peak may be as good but for their price
            last = width - 1
        for n in range(points[low], last + 1):
            lost = best - (value[j, n] - price * n)
            if lost <= allowance:
                count[top] = n
                loss[top] = max(lost, 0.0)
                top += 1
    offset[n_jobs] = top
    return Undecided(count[:top], loss[:top], offset)


@compiled
def _within(undecided: Undecided, allowance: float) -> Undecided:
    """Return the undecided counts that lose at most ``allowance``."""
    count, loss, offset = undecided
    n_jobs = offset.shape[0] - 1
    kept_count = np.empty_like(count)
    kept_loss = np.empty_like(loss)
    kept_offset = np.empty_like(offset)
    top = 0
    for j in range(n_jobs):
        kept_offset[j] = top
        for k in range(offset[j], offset[j + 1]):
            if loss[k] <= allowance:
                kept_count[top] = count[k]
                kept_loss[top] = loss[k]
                top += 1
    kept_offset[n_jobs] = top
    return Undecided(kept_count[:top], kept_loss[:top], kept_offset)


@compiled
def _completion(undecided: Undecided, relaxed: Relaxed, step: int, allowance: float) -> NDArray[np.float64]:
    """Lower bounds on what it costs all jobs but the broken one to hold d nodes more or fewer than ``base``.

    More with ``step`` 1, fewer with -1. Element d is the bound for d nodes; the first one that reaches ``allowance``
    and all after it are left out. Going up, a node may also stay unused, for its price.
    """
    count, loss, offset = undecided
    base = relaxed.base
    n_jobs = offset.shape[0] - 1
    slope = np.empty(count.shape[0] + 1, np.float64)
    length = np.empty(count.shape[0] + 1, np.int64)
    hull = np.empty(count.shape[0], np.int64)
    n_segments = 0
    for j in range(n_jobs):
        if j == relaxed.broken:
            continue
        k = offset[j]
        while count[k] != base[j]:
            k += 1
        end = offset[j + 1] if step == 1 else offset[j] - 1
        top = 0
        hull[0] = k
        k += step
        while k != end:
            while top > 0:
                p = hull[top]
                q = hull[top - 1]
                # p lies on or above the chord from q to k: it is no vertex
                if (loss[p] - loss[q]) * (count[k] - count[q]) * step >= (loss[k] - loss[q]) * (
                    count[p] - count[q]
                ) * step:
                    top -= 1
                else:
                    break
            top += 1
            hull[top] = k
            k += step
        for t in range(1, top + 1):
            nodes = (count[hull[t]] - count[hull[t - 1]]) * step
            slope[n_segments] = (loss[hull[t]] - loss[hull[t - 1]]) / nodes
            length[n_segments] = nodes
            n_segments += 1
    if step == 1:
        slope[n_segments] = relaxed.price
        length[n_segments] = relaxed.capacity
        n_segments += 1
    order = _ascending(slope[:n_segments])
    room = 64
    bound = np.zeros(room, np.float64)
    filled = 1
    before = 0.0
    for segment in order:
        for d in range(1, length[segment] + 1):
            spent = before + slope[segment] * d
            if spent * (1.0 - _ROUNDING) >= allowance:
                return bound[:filled]
            if filled == room:
                room *= 2
                wider = np.empty(room, np.float64)
                wider[:filled] = bound
                bound = wider
            bound[filled] = spent * (1.0 - _ROUNDING)
            filled += 1
        before += slope[segment] * length[segment]
    return bound[:filled]


@compiled
def _ascending(key: NDArray[np.float64] | NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the order of ascending keys; stable, so the same everywhere."""
    if key.shape[0] > _FEW:
        return np.argsort(key, kind="mergesort")
    order = np.arange(key.shape[0])
    for i in range(1, key.shape[0]):
        k = order[i]
        while i > 0 and key[order[i - 1]] > key[k]:
            order[i] = order[i - 1]
            i -= 1
        order[i] = k
    return order


@compiled
def _order(offset: NDArray[np.int64], first: int) -> NDArray[np.int64]:
    """Job ``first``, then those with fewest choices; first come first served among equals."""
    order = _ascending(offset[1:] - offset[:-1])
    at = 0
    while order[at] != first:
        at += 1
    while at > 0:
        order[at] = order[at - 1]
        at -= 1
    order[0] = first
    return order


@compiled
def _least_loss(undecided: Undecided, relaxed: Relaxed, allowance: float, answer: NDArray[np.int64]) -> float:
    """Least total loss over these counts, unused nodes at ``price`` each, if below ``allowance``.

    Writes the counts to ``answer (J,)`` and returns the loss; returns ``inf`` and leaves ``answer`` alone when nothing
    is below the allowance. The states are sums of the counts of the jobs so far; every job has its ``base`` count,
    which loses nothing, among its choices.
    """
    count, loss, offset = undecided
    base, broken, capacity, price = relaxed
    n_jobs = offset.shape[0] - 1
    up = _completion(undecided, relaxed, 1, allowance)
    down = _completion(undecided, relaxed, -1, allowance)
    order = _order(offset, broken)
    rest = 0  # nodes of the jobs to come at their base counts
    fewest_rest = 0
    for j in range(n_jobs):
        rest += base[j]
        fewest_rest += count[offset[j]]
    first = 0  # states are first .. first + lost.size - 1 nodes
    lost = np.zeros(1, np.float64)
    # choices of all stages one after the other: that of state s of stage i is at start[i] + s - first_of[i]
    choice = np.empty(1024, np.int32)
    start = np.empty(n_jobs, np.int64)
    first_of = np.empty(n_jobs, np.int64)
    filled = 0
    for i in range(n_jobs):
        j = order[i]
        a = offset[j]
        b = offset[j + 1]
        rest -= base[j]
        fewest_rest -= count[a]
        if b - a == 1:  # its base, for nothing: all sums are larger by as much
            first += count[a]
            continue
        new_first = max(first + count[a], capacity - rest - (up.shape[0] - 1))
        new_last = min(first + lost.shape[0] - 1 + count[b - 1], capacity - rest + down.shape[0] - 1)
        new_last = min(new_last, capacity - fewest_rest)
        if new_last < new_first:
            return np.inf
        size = new_last - new_first + 1
        if filled + size > choice.shape[0]:
            wider = np.empty(2 * (filled + size), np.int32)
            wider[:filled] = choice[:filled]
            choice = wider
        new_lost = np.full(size, np.inf)
        for k in range(a, b):
            shift = first + count[k] - new_first
            own = loss[k]
            for s in range(max(0, -shift), min(lost.shape[0], size - shift)):
                total = lost[s] + own
                if total < new_lost[s + shift]:
                    new_lost[s + shift] = total
                    choice[filled + s + shift] = k - a
        low = size
        high = 0
        for s in range(size):
            needed = capacity - rest - new_first - s
            completed = new_lost[s] + (up[needed] if needed >= 0 else down[-needed])
            if completed < allowance:
                low = min(low, s)
                high = s + 1
            else:
                new_lost[s] = np.inf
        if low >= high:
            return np.inf
        start[i] = filled
        first_of[i] = new_first
        filled += high
        first = new_first + low
        lost = new_lost[low:high]
    best = np.inf
    nodes = -1
    for s in range(lost.shape[0]):
        total = lost[s] + price * (capacity - first - s)
        if total < best:
            best = total
            nodes = first + s
    if not best < allowance:
        return np.inf
    for back in range(n_jobs):
        i = n_jobs - 1 - back
        j = order[i]
        k = offset[j]
        if offset[j + 1] - k > 1:
            k += choice[start[i] + nodes - first_of[i]]
        n = count[k]
        answer[j] = n
        nodes -= n
    return best


@compiled
def better_answer(undecided: Undecided, relaxed: Relaxed, allowance: float, answer: NDArray[np.int64]) -> bool:
    """Find the counts that lose least, if that is below ``allowance``, and write them to ``answer (J,)``.

    ``undecided`` is ``undecided_counts(..., allowance)`` or more. Returns whether there was an answer.
    """
    is_small = undecided.counts.shape[0] <= SMALL
    least = _least_loss(undecided, relaxed, allowance, answer) if is_small else 0.0
    if least == np.inf:
        return False
    # of several answers that lose least, the one that the first trial in reach of them finds
    trial = FIRST_TRIAL * allowance
    while trial > 0.0 and 2.0 * trial < allowance:  # the smallest numbers round to 0
        if trial >= least * (1.0 - _ROUNDING) and (
            _least_loss(_within(undecided, trial), relaxed, trial, answer) < np.inf
        ):
            return True
        trial *= GROWTH
    return is_small or _least_loss(undecided, relaxed, allowance, answer) < np.inf
