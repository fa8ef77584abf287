"""Plan of one job: its nodes over time, as few as possible, so that it is done by its deadline.

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
from bfreplay.saved_state import restorable

Floats = NDArray[np.float64]

NO_DEADLINE_S = float(2**63)
"""Deadline of a job without one."""

NOT_FORCED = -1


@restorable
class Steps(NamedTuple):
    """A step function of time: ``value[i]`` from ``time[i]`` on."""

    time: Floats  # (k,) s
    value: Floats  # (k,)

    def since(self, at: float) -> Steps:
        """Return the steps from a time on, which is not before the first."""
        first = int(np.searchsorted(self.time, at, side="right")) - 1
        return Steps(np.concatenate(([at], self.time[first + 1 :])), self.value[first:])


@restorable
class Plan(NamedTuple):
    """Nodes of a job over time, and its finish.

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


def finish_of(nodes: Steps, end_s: float, work: float, counts: Floats, rates: Floats) -> float:
    """Return when a job with ``nodes`` up to ``end_s`` has done its work, rounded up to a second; inf if never."""
    for since, until, count in zip(nodes.time, [*nodes.time[1:], end_s], nodes.value, strict=True):
        level = int(np.searchsorted(counts, count, side="right")) - 1
        rate = float(rates[level]) if level >= 0 and counts[level] == count else 0.0
        if rate * (until - since) >= work:
            return float(math.ceil(since + work / rate))
        work -= rate * (until - since)
    return math.inf


@compiled
def _slots_up(seconds: float, slot_s: float) -> float:
    """Return the end of the slot in which a span of time ends."""
    n = seconds // slot_s
    if seconds % slot_s > 0:
        n += 1
    return n * slot_s


@compiled
def _level_within(counts: Floats, free: float) -> int:
    """Return the highest of the allowed ``counts`` within the free nodes; -1 for none."""
    level = counts.size - 1
    while level >= 0 and counts[level] > free:
        level -= 1
    return level


@compiled
def _put(time: Floats, value: Floats, n: int, at: float, new: float, replaces: bool) -> int:
    """Set a step that begins ``at``, in place, and return the new number of steps."""
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
    """Return the first ``n`` steps, without those that change nothing."""
    kept = 0
    for i in range(n):
        if kept == 0 or value[i] != value[kept - 1]:
            time[kept] = time[i]
            value[kept] = value[i]
            kept += 1
    return Steps(time[:kept].copy(), value[:kept].copy())


class _Window(NamedTuple):
    """Times between which a job may be planned."""

    begin: float  # s; before it the plan is settled
    due: float  # the end of the slot that its deadline is in
    deadline_s: float
    slot_s: float


class _Levels(NamedTuple):
    """Node counts that a job may use, in increasing order, and its rates there."""

    counts: Floats  # (L,)
    rates: Floats  # (L,)


class _PartialPlan(NamedTuple):
    """Plan in the making: free nodes, the nodes that it leaves in ``k`` steps, its own ``m`` steps, all nodes."""

    free: Steps
    left: _Draft
    k: int
    plan: _Draft
    m: int
    total: float


class _Draft(NamedTuple):
    """Steps in the making; the number of used entries is kept apart."""

    time: Floats
    value: Floats


@compiled
def _finish_plan(plan: _Draft, m: int, left: _Draft, k: int, end_s: float, finish_s: float) -> Plan:
    nodes = _without_repeats(plan.time, plan.value, m)
    return Plan(nodes, end_s, finish_s, _without_repeats(left.time, left.value, k))


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
    k = free.time.size
    left, plan = _Draft(np.empty(k + 4), np.empty(k + 4)), _Draft(np.zeros(k + 4), np.zeros(k + 4))
    left.time[:k] = free.time
    left.value[:k] = free.value
    plan.time[0], m = now, 1
    due = now + _slots_up(deadline_s - now, slot_s)
    if due >= now:
        k = _put(left.time, left.value, k, due, _value_at(free.time, free.value, due, total), False)
    begin = now
    if forced != NOT_FORCED:
        rate = rates[forced]
        following = free.time[1] if free.time.size > 1 else due
        plan.value[0] = counts[forced]
        finish_s = float(math.ceil(now + work / rate))
        end_s = now + _slots_up(finish_s - now, slot_s)
        left.value[0] -= counts[forced]
        is_over = due <= now and free.time.size == 1  # it is late, and nothing changes: it goes on to its end
        if following < end_s and work <= (following - now) * rate:  # steps of an earlier decision: other slots
            end_s, is_over = following, True
        if is_over or (following >= end_s and deadline_s >= finish_s):
            is_new = free.time.size == 1 or free.time[1] != end_s
            k = _put(left.time, left.value, k, end_s, free.value[0], is_new)
            return _finish_plan(plan, m, left, k, end_s, finish_s)
        work -= ((deadline_s if following == due else following) - now) * rate
        begin = following
        m = _put(plan.time, plan.value, m, begin, 0.0, True)
    for i in range(k):
        if left.time[i] < due:
            m = _put(plan.time, plan.value, m, left.time[i], 0.0, False)
    window, levels = _Window(begin, due, deadline_s, slot_s), _Levels(counts, rates)
    top = _level_within(counts, total)
    for level in range(top + 1):
        since = _latest_start(left, k, window, levels, work, level)
        if since >= begin:
            return _in_time(_PartialPlan(free, left, k, plan, m, total), window, levels, work, level, since)
    last_level = top if forced == NOT_FORCED else forced
    return _late(_PartialPlan(free, left, k, plan, m, total), window, levels, work, last_level)


@compiled
def _latest_start(left: _Draft, k: int, window: _Window, levels: _Levels, work: float, level: int) -> float:
    """Return the latest step from which a count is enough to be done in time; before ``begin`` if none is."""
    until = window.due
    done = 0.0
    for i in range(k - 1, -1, -1):
        since = left.time[i]
        if since >= window.due:
            continue
        if since < window.begin:
            break
        has = min(level, _level_within(levels.counts, left.value[i]))
        if has >= 0:
            done += ((window.deadline_s if until == window.due else until) - since) * levels.rates[has]
            if done >= work:
                return float(since)
        until = since
    return window.begin - 1.0


@compiled
def _in_time(begun: _PartialPlan, window: _Window, levels: _Levels, work: float, level: int, since: float) -> Plan:
    """Return the plan with a count that is enough ``since`` a step, and the next lower one before."""
    free, left, k, plan, m, total = begun
    last = -1
    has = -1
    is_done = False
    end_s = finish_s = until_s = window.due
    for i in range(k):
        time = left.time[i]
        if time > window.due:
            break
        if time < window.begin:
            continue
        if last >= 0:
            count = levels.counts[has] if has >= 0 else 0.0
            m = _put(plan.time, plan.value, m, left.time[last], count, True)
            left.value[last] -= count
            if has >= 0:
                until = window.deadline_s if time == window.due else time
                does = (until - left.time[last]) * levels.rates[has]
                if left.time[last] >= since and does >= work:
                    is_done, until_s = True, time
                    break
                work -= does
        last = i
        has = min(level if time >= since else level - 1, _level_within(levels.counts, left.value[i]))
    if not is_done and has >= 0:
        m = _put(plan.time, plan.value, m, left.time[last], levels.counts[has], True)
        left.value[last] -= levels.counts[has]
    if has >= 0:
        span_s = float(math.ceil(work / levels.rates[has]))
        end_s, finish_s = left.time[last] + _slots_up(span_s, window.slot_s), left.time[last] + span_s
        if is_done:
            end_s = min(end_s, until_s)  # plans of an earlier decision may have other slots
    was_free = total
    is_step = False
    for i in range(free.time.size):
        if window.begin <= free.time[i] < end_s:
            was_free = free.value[i]
        is_step = is_step or free.time[i] == end_s
    if not is_step:
        k = _put(left.time, left.value, k, end_s, was_free, True)
    return _finish_plan(plan, m, left, k, end_s, finish_s)


@compiled
def _late(begun: _PartialPlan, window: _Window, levels: _Levels, work: float, last_level: int) -> Plan:
    """Return the plan if no count is enough: all nodes that fit, past the deadline; at last ``last_level``."""
    free, left, k, plan, m, total = begun
    now, due = free.time[0], window.due
    for i in range(k - 1):
        if left.time[i] < window.begin or left.time[i + 1] > due:
            continue
        has = _level_within(levels.counts, left.value[i])
        count = levels.counts[has] if has >= 0 else 0.0
        m = _put(plan.time, plan.value, m, left.time[i], count, True)
        left.value[i] -= count
        if has >= 0:
            until = window.deadline_s if left.time[i + 1] == due else left.time[i + 1]
            work -= (until - left.time[i]) * levels.rates[has]
    last = 0
    while left.time[last] < max(due, window.begin):
        last += 1
    for i in range(k):
        if left.time[i] <= due:
            continue
        since = left.time[last]
        has = _level_within(levels.counts, left.value[last])
        count = levels.counts[has] if has >= 0 else 0.0
        m = _put(plan.time, plan.value, m, since, count, True)
        if has >= 0:
            does = (left.time[i] - since) * levels.rates[has]
            if does >= work:
                finish_s = float(math.ceil(since + work / levels.rates[has]))
                end_s = min(now + _slots_up(finish_s - now, window.slot_s), left.time[i])
                was_free = _value_at(free.time, free.value, since, total)
                left.value[last] = was_free - count
                k = _put(left.time, left.value, k, end_s, was_free, False)
                return _finish_plan(plan, m, left, k, end_s, finish_s)
            work -= does
            if i > last:
                left.value[last] -= count
        last = i
    since, count = left.time[last], levels.counts[last_level]
    m = _put(plan.time, plan.value, m, since, count, True)
    finish_s = float(math.ceil(since + work / levels.rates[last_level]))
    end_s = now + _slots_up(finish_s - now, window.slot_s)
    left.value[last] = total - count
    k = _put(left.time, left.value, k, end_s, total, True)
    return _finish_plan(plan, m, left, k, end_s, finish_s)
