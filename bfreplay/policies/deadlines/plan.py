"""The plan of one job: how many nodes it has until when, so that it is done by its deadline on as few as possible.

ElasticFlow (ASPLOS'23, section 4.1) calls this the minimum satisfactory share. Time is in seconds and cut into slots
that begin with the decision. The nodes that are free in future are a step function: ``time (k,)`` increasing, the first
the time of the decision, and ``free (k,)`` from each on. A plan is a step function of the same form.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled

Floats = NDArray[np.float64]

NO_DEADLINE_S = float(2**63)
"""Deadline of a job without one."""

NOT_FORCED = -1


class Steps(NamedTuple):
    """A step function of time: ``value[i]`` from ``time[i]`` on."""

    time: Floats  # (k,) s
    value: Floats  # (k,)


class Plan(NamedTuple):
    """What a job gets, and when it is done.

    Parameters
    ----------
    nodes
        Nodes that it has, as a step function.
    end_s
        When its nodes are free again: the end of a slot.
    finish_s
        When its work is done, rounded up to a second.
    free
        Free nodes, this plan taken off.
    """

    nodes: Steps
    end_s: float
    finish_s: float
    free: Steps


@compiled
def _slots_up(seconds: float, slot_s: float) -> float:
    """The end of the slot that a span of time ends in."""
    n = seconds // slot_s
    if seconds % slot_s > 0:
        n += 1
    return n * slot_s


@compiled
def _level_within(counts: Floats, free: float) -> int:
    """The highest of the allowed ``counts`` within the free nodes; -1 where there is none."""
    level = counts.size - 1
    while level >= 0 and counts[level] > free:
        level -= 1
    return level


@compiled
def _put(time: Floats, value: Floats, n: int, at: float, new: float, replaces: bool) -> int:
    """Set a step that begins ``at``, in place; returns how many steps there are then."""
    i = n
    while i > 0 and time[i - 1] >= at:
        i -= 1
    if i < n and time[i] == at:
        if replaces:
            value[i] = new
        return n
    for j in range(n, i, -1):
        time[j] = time[j - 1]
        value[j] = value[j - 1]
    time[i] = at
    value[i] = new
    return n + 1


@compiled
def _value_at(time: Floats, value: Floats, at: float, otherwise: float) -> float:
    """Value of the last step that begins at or before a time."""
    found = otherwise
    for i in range(time.size):
        if time[i] > at:
            break
        found = value[i]
    return found


@compiled
def _without_repeats(time: Floats, value: Floats, n: int) -> Steps:
    """The first ``n`` steps, without those that change nothing."""
    kept = 0
    for i in range(n):
        if kept == 0 or value[i] != value[kept - 1]:
            time[kept] = time[i]
            value[kept] = value[i]
            kept += 1
    return Steps(time[:kept].copy(), value[:kept].copy())


@compiled
def _done(at: Floats, nodes: Floats, m: int, t: Floats, f: Floats, k: int, end_s: float, finish_s: float) -> Plan:
    return Plan(_without_repeats(at, nodes, m), end_s, finish_s, _without_repeats(t, f, k))


@compiled
def minimum_share(
    free: Steps,
    deadline_s: float,
    slot_s: float,
    work: float,
    counts: Floats,
    rates: Floats,
    total: float,
    forced: int = NOT_FORCED,
) -> Plan:
    """Plan one job.

    The lowest of the allowed counts is taken with which the job can be done in time: few nodes at first, the next lower
    count, and that count from as late as possible on. Where none is enough, it runs on as many as it can have, and goes
    on after its deadline.

    Parameters
    ----------
    free
        Free nodes from now on; from the last step on all ``total`` are free.
    deadline_s
        When the job has to be done, on the clock of ``free``.
    slot_s
        Length of a slot.
    work
        Left to do, in the unit of ``rates``; above 0.
    counts, rates : (L,)
        Node counts that the job may use, in increasing order, and what it does in a second on each.
    total
        Nodes of the cluster.
    forced
        Position in ``counts`` of what it has until the next step of ``free``; ``NOT_FORCED`` for a free choice.

    Returns
    -------
    Plan
        The job is in time if ``finish_s <= deadline_s``.
    """
    now = free.time[0]
    room = free.time.size + 4
    t, f = np.empty(room), np.empty(room)
    k = free.time.size
    t[:k] = free.time
    f[:k] = free.value
    at, nodes = np.zeros(room), np.zeros(room)
    at[0], m = now, 1
    due = now + _slots_up(deadline_s - now, slot_s)
    if due >= now:
        k = _put(t, f, k, due, _value_at(free.time, free.value, due, total), False)
    begin = now
    if forced != NOT_FORCED:
        rate = rates[forced]
        following = free.time[1] if free.time.size > 1 else due
        nodes[0] = counts[forced]
        finish_s = float(math.ceil(now + work / rate))
        end_s = now + _slots_up(finish_s - now, slot_s)
        f[0] -= counts[forced]
        if following >= end_s and deadline_s >= finish_s:
            k = _put(t, f, k, end_s, free.value[0], free.time.size == 1 or free.time[1] != end_s)
            return _done(at, nodes, m, t, f, k, end_s, finish_s)
        work -= ((deadline_s if following == due else following) - now) * rate
        begin = following
        m = _put(at, nodes, m, begin, 0.0, True)
    for i in range(k):
        if t[i] < due:
            m = _put(at, nodes, m, t[i], 0.0, False)
    top = _level_within(counts, total)
    for level in range(top + 1):
        since = _latest_start(t, f, k, begin, due, deadline_s, work, counts, rates, level)
        if since >= begin:
            return _in_time(
                free, t, f, k, at, nodes, m, begin, due, deadline_s, slot_s, work, counts, rates, total, level, since
            )
    return _late(free, t, f, k, at, nodes, m, begin, due, deadline_s, slot_s, work, counts, rates, total, top, forced)


@compiled
def _latest_start(
    t: Floats,
    f: Floats,
    k: int,
    begin: float,
    due: float,
    deadline_s: float,
    work: float,
    counts: Floats,
    rates: Floats,
    level: int,
) -> float:
    """The latest step from which on a count is enough to be done in time; before ``begin`` where none is."""
    until = due
    done = 0.0
    for i in range(k - 1, -1, -1):
        if t[i] >= due:
            continue
        if t[i] < begin:
            break
        has = min(level, _level_within(counts, f[i]))
        if has >= 0:
            done += ((deadline_s if until == due else until) - t[i]) * rates[has]
            if done >= work:
                return float(t[i])
        until = t[i]
    return begin - 1.0


@compiled
def _in_time(
    free: Steps,
    t: Floats,
    f: Floats,
    k: int,
    at: Floats,
    nodes: Floats,
    m: int,
    begin: float,
    due: float,
    deadline_s: float,
    slot_s: float,
    work: float,
    counts: Floats,
    rates: Floats,
    total: float,
    level: int,
    since: float,
) -> Plan:
    """The plan with a count that is enough ``since`` a step, and the next lower one before."""
    last = -1
    has = -1
    is_done = False
    end_s = finish_s = due
    for i in range(k):
        if t[i] > due:
            break
        if t[i] < begin:
            continue
        if last >= 0:
            count = counts[has] if has >= 0 else 0.0
            m = _put(at, nodes, m, t[last], count, True)
            f[last] -= count
            if has >= 0:
                does = ((deadline_s if t[i] == due else t[i]) - t[last]) * rates[has]
                if t[last] >= since and does >= work:
                    is_done = True
                    break
                work -= does
        last = i
        has = min(level if t[i] >= since else level - 1, _level_within(counts, f[i]))
    if not is_done and has >= 0:
        m = _put(at, nodes, m, t[last], counts[has], True)
        f[last] -= counts[has]
    if has >= 0:
        span_s = float(math.ceil(work / rates[has]))
        end_s, finish_s = t[last] + _slots_up(span_s, slot_s), t[last] + span_s
    was_free = total
    is_step = False
    for i in range(free.time.size):
        if begin <= free.time[i] < end_s:
            was_free = free.value[i]
        is_step = is_step or free.time[i] == end_s
    if not is_step:
        k = _put(t, f, k, end_s, was_free, True)
    return _done(at, nodes, m, t, f, k, end_s, finish_s)


@compiled
def _late(
    free: Steps,
    t: Floats,
    f: Floats,
    k: int,
    at: Floats,
    nodes: Floats,
    m: int,
    begin: float,
    due: float,
    deadline_s: float,
    slot_s: float,
    work: float,
    counts: Floats,
    rates: Floats,
    total: float,
    top: int,
    forced: int,
) -> Plan:
    """The plan where no count is enough: as many nodes as there are, past the deadline."""
    now = free.time[0]
    for i in range(k - 1):
        if t[i] < begin or t[i + 1] > due:
            continue
        has = min(top, _level_within(counts, f[i]))
        count = counts[has] if has >= 0 else 0.0
        m = _put(at, nodes, m, t[i], count, True)
        f[i] -= count
        if has >= 0:
            work -= ((deadline_s if t[i + 1] == due else t[i + 1]) - t[i]) * rates[has]
    last = 0
    while t[last] < max(due, begin):
        last += 1
    for i in range(k):
        if t[i] <= due:
            continue
        has = _level_within(counts, f[last])
        count = counts[has] if has >= 0 else 0.0
        m = _put(at, nodes, m, t[last], count, True)
        if has >= 0:
            does = (t[i] - t[last]) * rates[has]
            if does >= work:
                finish_s = float(math.ceil(t[last] + work / rates[has]))
                end_s = now + _slots_up(finish_s - now, slot_s)
                was_free = _value_at(free.time, free.value, t[last], total)
                f[last] = was_free - count
                k = _put(t, f, k, end_s, was_free, False)
                return _done(at, nodes, m, t, f, k, end_s, finish_s)
            work -= does
            if i > last:
                f[last] -= count
        last = i
    has = top if forced == NOT_FORCED else forced
    m = _put(at, nodes, m, t[last], counts[has], True)
    finish_s = float(math.ceil(t[last] + work / rates[has]))
    end_s = now + _slots_up(finish_s - now, slot_s)
    f[last] = total - counts[has]
    k = _put(t, f, k, end_s, total, True)
    return _done(at, nodes, m, t, f, k, end_s, finish_s)
