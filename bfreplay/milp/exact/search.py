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

from bfreplay._compiled import ascending, compiled, copy_into
from bfreplay.milp.exact.relaxation import Hulls

FIRST_TRIAL = 1 / 64
"""Share of the allowance that is tried first."""

GROWTH = 4.0
"""Of the trial allowance, while no answer is found: so all failed trials together cost a fraction of the last one."""

SMALL = 256
"""Undecided counts up to which all are searched at once, first: mostly no answer is better, and no trial is needed."""

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
def counts_worth_searching(
    hulls: Hulls, vertex: NDArray[np.int64], value: NDArray[np.float64], capacity: int, price: float, allowance: float
) -> Undecided:
    """Return the counts that alone lose at most ``allowance`` against the job's best with nodes at ``price``.

    ``vertex (J,)`` is the best on each job's hull. Along a hull the loss grows with the distance from there. So
    once a vertex loses more than ``allowance``, all counts beyond it do.
    """
    points, worth, _, start, stop = hulls
    n_jobs, width = value.shape
    width = min(width, capacity + 1)
    limit = 1.25 * allowance  # hulls may be bent by rounding, by far less than a quarter of the least allowance
    room = 1024
    count = np.empty(room, np.int64)
    loss = np.empty(room, np.float64)
    offset = np.empty(n_jobs + 1, np.int64)
    n_counts = 0
    for job_index in range(n_jobs):
        offset[job_index] = n_counts
        if n_counts + width > room:
            room = 2 * room + width
            wider_count = np.empty(room, np.int64)
            wider_loss = np.empty(room, np.float64)
            copy_into(wider_count, count[:n_counts])
            copy_into(wider_loss, loss[:n_counts])
            count = wider_count
            loss = wider_loss
        vertex_low = vertex_high = vertex[job_index]
        best = worth[vertex_low] - price * points[vertex_low]
        while vertex_low > start[job_index] and best - (worth[vertex_low] - price * points[vertex_low]) <= limit:
            vertex_low -= 1
        while vertex_high < stop[job_index] - 1 and best - (worth[vertex_high] - price * points[vertex_high]) <= limit:
            vertex_high += 1
        last = points[vertex_high]
        if (
            best - (worth[vertex_high] - price * last) <= limit
        ):  # counts beyond the peak may be as good but for their price
            last = width - 1
        for n in range(points[vertex_low], last + 1):
            loss_here = best - (value[job_index, n] - price * n)
            if loss_here <= allowance:
                count[n_counts] = n
                loss[n_counts] = max(loss_here, 0.0)
                n_counts += 1
    offset[n_jobs] = n_counts
    return Undecided(count[:n_counts], loss[:n_counts], offset)


@compiled
def _within(search_space: Undecided, allowance: float) -> Undecided:
    """Return the undecided counts that lose at most ``allowance``."""
    count, loss, offset = search_space
    n_jobs = offset.shape[0] - 1
    count_within = np.empty_like(count)
    loss_within = np.empty_like(loss)
    offset_within = np.empty_like(offset)
    n_counts = 0
    for job_index in range(n_jobs):
        offset_within[job_index] = n_counts
        for choice in range(offset[job_index], offset[job_index + 1]):
            if loss[choice] <= allowance:
                count_within[n_counts] = count[choice]
                loss_within[n_counts] = loss[choice]
                n_counts += 1
    offset_within[n_jobs] = n_counts
    return Undecided(count_within[:n_counts], loss_within[:n_counts], offset_within)


@compiled
def _completion(search_space: Undecided, relaxation: Relaxed, step: int, allowance: float) -> NDArray[np.float64]:
    """Lower bounds on what it costs all jobs but the broken one to hold d nodes more or fewer than ``base``.

    More with ``step`` 1, fewer with -1. Element d is the bound for d nodes; the first one that reaches ``allowance``
    and all after it are left out. Going up, a node may also stay unused, for its price.
    """
    count, loss, offset = search_space
    base = relaxation.base
    n_jobs = offset.shape[0] - 1
    slope = np.empty(count.shape[0] + 1, np.float64)
    length = np.empty(count.shape[0] + 1, np.int64)
    hull = np.empty(count.shape[0], np.int64)
    n_segments = 0
    for job_index in range(n_jobs):
        if job_index == relaxation.broken:
            continue
        choice = offset[job_index]
        while count[choice] != base[job_index]:
            choice += 1
        end = offset[job_index + 1] if step == 1 else offset[job_index] - 1
        top = 0
        hull[0] = choice
        choice += step
        while choice != end:
            while top > 0:
                p = hull[top]
                q = hull[top - 1]
                # p lies on or above the chord from q to k: it is no vertex
                if (loss[p] - loss[q]) * (count[choice] - count[q]) * step >= (loss[choice] - loss[q]) * (
                    count[p] - count[q]
                ) * step:
                    top -= 1
                else:
                    break
            top += 1
            hull[top] = choice
            choice += step
        for t in range(1, top + 1):
            nodes = (count[hull[t]] - count[hull[t - 1]]) * step
            slope[n_segments] = (loss[hull[t]] - loss[hull[t - 1]]) / nodes
            length[n_segments] = nodes
            n_segments += 1
    if step == 1:
        slope[n_segments] = relaxation.price
        length[n_segments] = relaxation.capacity
        n_segments += 1
    order = ascending(slope[:n_segments])
    room = 64
    bound = np.zeros(room, np.float64)
    n_bounds = 1
    loss_before = 0.0
    for segment in order:
        for d in range(1, length[segment] + 1):
            loss_here = loss_before + slope[segment] * d
            if loss_here * (1.0 - _ROUNDING) >= allowance:
                return bound[:n_bounds]
            if n_bounds == room:
                room *= 2
                wider = np.empty(room, np.float64)
                copy_into(wider, bound)
                bound = wider
            bound[n_bounds] = loss_here * (1.0 - _ROUNDING)
            n_bounds += 1
        loss_before += slope[segment] * length[segment]
    return bound[:n_bounds]


@compiled
def _order(offset: NDArray[np.int64], first: int) -> NDArray[np.int64]:
    """Job ``first``, then those with fewest choices; first come first served among equals."""
    n_choices = np.empty(offset.shape[0] - 1, np.float64)  # the sort of floats is compiled already
    for job_index in range(n_choices.shape[0]):
        n_choices[job_index] = offset[job_index + 1] - offset[job_index]
    order = ascending(n_choices)
    position = 0
    while order[position] != first:
        position += 1
    while position > 0:
        order[position] = order[position - 1]
        position -= 1
    order[0] = first
    return order


@compiled
def _least_loss(search_space: Undecided, relaxation: Relaxed, allowance: float, answer: NDArray[np.int64]) -> float:
    """Least total loss over these counts, unused nodes at ``price`` each, if below ``allowance``.

    Writes the counts to ``answer (J,)`` and returns the loss; returns ``inf`` and leaves ``answer`` alone when nothing
    is below the allowance. The states are sums of the counts of the jobs so far; every job has its ``base`` count,
    which loses nothing, among its choices.
    """
    count, loss, offset = search_space
    base, cut_job, capacity, price = relaxation
    n_jobs = offset.shape[0] - 1
    loss_above = _completion(search_space, relaxation, 1, allowance)
    loss_below = _completion(search_space, relaxation, -1, allowance)
    order = _order(offset, cut_job)
    rest_nodes = 0  # nodes of the jobs to come at their base counts
    fewest_rest = 0
    for job_index in range(n_jobs):
        rest_nodes += base[job_index]
        fewest_rest += count[offset[job_index]]
    first = 0  # states are first .. first + lost.size - 1 nodes
    state_loss = np.zeros(1, np.float64)
    # choices of all stages one after the other: that of state s of stage i is at start[i] + s - first_of[i]
    choice = np.empty(1024, np.int32)
    start = np.empty(n_jobs, np.int64)
    first_of = np.empty(n_jobs, np.int64)
    n_choices = 0
    for i in range(n_jobs):
        job_index = order[i]
        first_choice = offset[job_index]
        end = offset[job_index + 1]
        rest_nodes -= base[job_index]
        fewest_rest -= count[first_choice]
        if end - first_choice == 1:  # its base, for nothing: all sums are larger by as much
            first += count[first_choice]
            continue
        new_first = max(first + count[first_choice], capacity - rest_nodes - (loss_above.shape[0] - 1))
        new_last = min(
            first + state_loss.shape[0] - 1 + count[end - 1], capacity - rest_nodes + loss_below.shape[0] - 1
        )
        new_last = min(new_last, capacity - fewest_rest)
        if new_last < new_first:
            return np.inf
        size = new_last - new_first + 1
        if n_choices + size > choice.shape[0]:
            wider = np.empty(2 * (n_choices + size), np.int32)
            copy_into(wider, choice[:n_choices])
            choice = wider
        new_loss = np.full(size, np.inf)
        for k in range(first_choice, end):
            shift = first + count[k] - new_first
            own_loss = loss[k]
            for s in range(max(0, -shift), min(state_loss.shape[0], size - shift)):
                total = state_loss[s] + own_loss
                if total < new_loss[s + shift]:
                    new_loss[s + shift] = total
                    choice[n_choices + s + shift] = k - first_choice
        low = size
        high = 0
        for s in range(size):
            shortage = capacity - rest_nodes - new_first - s
            bound = new_loss[s] + (loss_above[shortage] if shortage >= 0 else loss_below[-shortage])
            if bound < allowance:
                low = min(low, s)
                high = s + 1
            else:
                new_loss[s] = np.inf
        if low >= high:
            return np.inf
        start[i] = n_choices
        first_of[i] = new_first
        n_choices += high
        first = new_first + low
        state_loss = new_loss[low:high]
    best = np.inf
    nodes = -1
    for s in range(state_loss.shape[0]):
        total = state_loss[s] + price * (capacity - first - s)
        if total < best:
            best = total
            nodes = first + s
    if not best < allowance:
        return np.inf
    for back in range(n_jobs):
        i = n_jobs - 1 - back
        job_index = order[i]
        k = offset[job_index]
        if offset[job_index + 1] - k > 1:
            k += choice[start[i] + nodes - first_of[i]]
        n = count[k]
        answer[job_index] = n
        nodes -= n
    return best


@compiled
def better_answer(search_space: Undecided, relaxation: Relaxed, allowance: float, answer: NDArray[np.int64]) -> bool:
    """Find the counts that lose least, if that is below ``allowance``, and write them to ``answer (J,)``.

    ``search_space`` is ``counts_worth_searching(..., allowance)`` or more. Returns whether there was an answer.
    """
    is_small = search_space.counts.shape[0] <= SMALL
    least_loss = _least_loss(search_space, relaxation, allowance, answer) if is_small else 0.0
    if least_loss == np.inf:
        return False
    # of several answers that lose least, the one that the first trial in reach of them finds
    trial = FIRST_TRIAL * allowance
    while trial > 0.0 and 2.0 * trial < allowance:  # the smallest numbers round to 0
        if trial >= least_loss * (1.0 - _ROUNDING) and (
            _least_loss(_within(search_space, trial), relaxation, trial, answer) < np.inf
        ):
            return True
        trial *= GROWTH
    return is_small or _least_loss(search_space, relaxation, allowance, answer) < np.inf
