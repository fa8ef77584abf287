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

from bfreplay._compiled import compiled, copy_into
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

    def since(self, from_s: float) -> Steps:
        """Return the steps from a time on, which is not before the first."""
        first = int(np.searchsorted(self.time, from_s, side="right")) - 1
        return Steps(np.concatenate(([from_s], self.time[first + 1 :])), self.value[first:])


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
    n_slots = seconds // slot_s
    if seconds % slot_s > 0:
        n_slots += 1
    return n_slots * slot_s


@compiled
def _level_within(counts: Floats, free: float) -> int:
    """Return the highest of the allowed ``counts`` within the free nodes; -1 for none."""
    level = counts.size - 1
    while level >= 0 and counts[level] > free:
        level -= 1
    return level


@compiled
def _put(time: Floats, value: Floats, n_steps: int, at_s: float, new_value: float, replaces: bool) -> int:
    """Set a step that begins ``at_s``, in place, and return the new number of steps."""
    position = n_steps
    while position > 0 and time[position - 1] >= at_s:
        position -= 1
    if position < n_steps and time[position] == at_s:
        if replaces:
            value[position] = new_value
        return n_steps
    for k in range(n_steps, position, -1):
        time[k] = time[k - 1]
        value[k] = value[k - 1]
    time[position] = at_s
    value[position] = new_value
    return n_steps + 1


@compiled
def _value_at(time: Floats, value: Floats, at_s: float, otherwise: float) -> float:
    """Value of the last step that begins at or before a time."""
    current = otherwise
    for step_index in range(time.size):
        if time[step_index] > at_s:
            break
        current = value[step_index]
    return current


@compiled
def _without_repeats(time: Floats, value: Floats, n_steps: int) -> Steps:
    """Return the first ``n_steps`` steps, without those that change nothing."""
    n_kept = 0
    for step_index in range(n_steps):
        if n_kept == 0 or value[step_index] != value[n_kept - 1]:
            time[n_kept] = time[step_index]
            value[n_kept] = value[step_index]
            n_kept += 1
    return Steps(time[:n_kept].copy(), value[:n_kept].copy())


class _Window(NamedTuple):
    """Times between which a job may be planned."""

    begin: float  # s; before it the plan is settled
    due: float  # the end of the slot that its deadline is in
    deadline_s: float
    slot_s: float


class Levels(NamedTuple):
    """Node counts that a job may use, each faster than all lower ones, in increasing order, and its rates there."""

    counts: Floats  # (L,)
    rates: Floats  # (L,)

    @classmethod
    def of(cls, curve: Floats, min_nodes: int) -> Levels:
        """Return the levels of a job with ``curve (K + 1,)`` that runs on ``min_nodes`` nodes or more.

        A count on which it is no faster than on fewer nodes, as where only powers of two can be used, is none.
        """
        fastest = np.maximum.accumulate(np.concatenate(([0.0], curve[min_nodes:])))
        counts = min_nodes + np.flatnonzero(fastest[1:] > fastest[:-1])
        return cls(counts.astype(np.float64), curve[counts].astype(np.float64))


class _PartialPlan(NamedTuple):
    """Plan in the making: free nodes, the nodes that it leaves free and its own in so many steps, all nodes."""

    free: Steps
    rest: _Draft
    n_rest: int
    plan: _Draft
    n_own_steps: int
    n_nodes: float


class _Draft(NamedTuple):
    """Steps in the making; the number of used entries is kept apart."""

    time: Floats
    value: Floats


@compiled
def _drafts(free: Steps) -> tuple[_Draft, _Draft]:
    """Return copies of the free nodes and of no nodes, with room for the changes of one plan."""
    room = free.time.size + 4
    rest, plan = _Draft(np.empty(room), np.empty(room)), _Draft(np.zeros(room), np.zeros(room))
    copy_into(rest.time, free.time)
    copy_into(rest.value, free.value)
    plan.time[0] = free.time[0]
    return rest, plan


@compiled
def _finish_plan(plan: _Draft, n_own_steps: int, rest: _Draft, n_rest: int, end_s: float, finish_s: float) -> Plan:
    nodes = _without_repeats(plan.time, plan.value, n_own_steps)
    return Plan(nodes, end_s, finish_s, _without_repeats(rest.time, rest.value, n_rest))


@compiled
def minimum_share(
    free: Steps,
    deadline_s: float,
    slot_s: float,
    work: float,
    counts: Floats,
    rates: Floats,
    n_nodes: float,
    forced: int = NOT_FORCED,
) -> Plan:
    """Plan one job.

    The lowest of the allowed counts is taken with which the job can be done in time: few nodes at first, the next lower
    count, and that count from as late as possible on. Where none is enough, it runs on as many as it can have, and goes
    on after its deadline.

    Parameters
    ----------
    free
        Free nodes from now on; from the last step on all ``n_nodes`` are free.
    deadline_s
        When the job has to be done, on the clock of ``free``.
    slot_s
        Length of a slot.
    work
        Left to do, in the unit of ``rates``; above 0.
    counts, rates : (L,)
        Node counts that the job may use, in increasing order, and what it does in a second on each.
    n_nodes
        Nodes of the cluster.
    forced
        Position in ``counts`` of what it has until the next step of ``free``; ``NOT_FORCED`` for a free choice.

    Returns
    -------
    Plan
        The job is in time if ``finish_s <= deadline_s``.
    """
    now_s = free.time[0]
    n_rest = free.time.size
    (rest, plan), n_own = _drafts(free), 1
    due_s = now_s + _slots_up(deadline_s - now_s, slot_s)
    if due_s >= now_s:
        n_rest = _put(rest.time, rest.value, n_rest, due_s, _value_at(free.time, free.value, due_s, n_nodes), False)
    begin = now_s
    if forced != NOT_FORCED:
        rate = rates[forced]
        following = free.time[1] if free.time.size > 1 else due_s
        plan.value[0] = counts[forced]
        finish_s = float(math.ceil(now_s + work / rate))
        end_s = now_s + _slots_up(finish_s - now_s, slot_s)
        rest.value[0] -= counts[forced]
        is_over = due_s <= now_s and free.time.size == 1  # it is late, and nothing changes: it goes on to its end
        if following < end_s and work <= (following - now_s) * rate:  # steps of an earlier decision: other slots
            end_s, is_over = following, True
        if is_over or (following >= end_s and deadline_s >= finish_s):
            is_new = free.time.size == 1 or free.time[1] != end_s
            n_rest = _put(rest.time, rest.value, n_rest, end_s, free.value[0], is_new)
            return _finish_plan(plan, n_own, rest, n_rest, end_s, finish_s)
        work -= ((deadline_s if following == due_s else following) - now_s) * rate
        begin = following
        n_own = _put(plan.time, plan.value, n_own, begin, 0.0, True)
    for step_index in range(n_rest):
        if rest.time[step_index] < due_s:
            n_own = _put(plan.time, plan.value, n_own, rest.time[step_index], 0.0, False)
    window, levels = _Window(begin, due_s, deadline_s, slot_s), Levels(counts, rates)
    top_level = _level_within(counts, n_nodes)
    for level in range(top_level + 1):
        since = _latest_start(rest, n_rest, window, levels, work, level)
        if since >= begin:
            return _in_time(_PartialPlan(free, rest, n_rest, plan, n_own, n_nodes), window, levels, work, level, since)
    last_level = top_level if forced == NOT_FORCED else forced
    return _late(_PartialPlan(free, rest, n_rest, plan, n_own, n_nodes), window, levels, work, last_level)


@compiled
def _latest_start(rest: _Draft, n_rest: int, window: _Window, levels: Levels, work: float, level: int) -> float:
    """Return the latest step from which a count is enough to be done in time; before ``begin`` if none is."""
    until = window.due
    work_done = 0.0
    for step_index in range(n_rest - 1, -1, -1):
        since = rest.time[step_index]
        if since >= window.due:
            continue
        if since < window.begin:
            break
        level_here = min(level, _level_within(levels.counts, rest.value[step_index]))
        if level_here >= 0:
            work_done += ((window.deadline_s if until == window.due else until) - since) * levels.rates[level_here]
            if work_done >= work:
                return float(since)
        until = since
    return window.begin - 1.0


@compiled
def _in_time(partial: _PartialPlan, window: _Window, levels: Levels, work: float, level: int, since: float) -> Plan:
    """Return the plan with a count that is enough ``since`` a step, and the next lower one before."""
    free, rest, n_rest, plan, n_own_steps, n_nodes = partial
    last = -1
    level_here = -1
    is_complete = False
    end_s = finish_s = until_s = window.due
    for step_index in range(n_rest):
        time = rest.time[step_index]
        if time > window.due:
            break
        if time < window.begin:
            continue
        if last >= 0:
            count = levels.counts[level_here] if level_here >= 0 else 0.0
            n_own_steps = _put(plan.time, plan.value, n_own_steps, rest.time[last], count, True)
            rest.value[last] -= count
            if level_here >= 0:
                until = window.deadline_s if time == window.due else time
                does = (until - rest.time[last]) * levels.rates[level_here]
                if rest.time[last] >= since and does >= work:
                    is_complete, until_s = True, time
                    break
                work -= does
        last = step_index
        level_here = min(level if time >= since else level - 1, _level_within(levels.counts, rest.value[step_index]))
    if not is_complete and level_here >= 0:
        n_own_steps = _put(plan.time, plan.value, n_own_steps, rest.time[last], levels.counts[level_here], True)
        rest.value[last] -= levels.counts[level_here]
    if level_here >= 0:
        span_s = float(math.ceil(work / levels.rates[level_here]))
        end_s, finish_s = rest.time[last] + _slots_up(span_s, window.slot_s), rest.time[last] + span_s
        if is_complete:
            end_s = min(end_s, until_s)  # plans of an earlier decision may have other slots
    was_free = n_nodes
    is_step = False
    for step_index in range(free.time.size):
        if window.begin <= free.time[step_index] < end_s:
            was_free = free.value[step_index]
        is_step = is_step or free.time[step_index] == end_s
    if not is_step:
        n_rest = _put(rest.time, rest.value, n_rest, end_s, was_free, True)
    return _finish_plan(plan, n_own_steps, rest, n_rest, end_s, finish_s)


@compiled
def _late(partial: _PartialPlan, window: _Window, levels: Levels, work: float, last_level: int) -> Plan:
    """Return the plan if no count is enough: all nodes that fit, past the deadline; at last ``last_level``."""
    free, rest, n_rest, plan, n_own_steps, n_nodes = partial
    now_s, due_s = free.time[0], window.due
    for step_index in range(n_rest - 1):
        if rest.time[step_index] < window.begin or rest.time[step_index + 1] > due_s:
            continue
        level_here = _level_within(levels.counts, rest.value[step_index])
        count = levels.counts[level_here] if level_here >= 0 else 0.0
        n_own_steps = _put(plan.time, plan.value, n_own_steps, rest.time[step_index], count, True)
        rest.value[step_index] -= count
        if level_here >= 0:
            until = window.deadline_s if rest.time[step_index + 1] == due_s else rest.time[step_index + 1]
            work -= (until - rest.time[step_index]) * levels.rates[level_here]
    last = 0
    while rest.time[last] < max(due_s, window.begin):
        last += 1
    for step_index in range(n_rest):
        if rest.time[step_index] <= due_s:
            continue
        since = rest.time[last]
        level_here = _level_within(levels.counts, rest.value[last])
        count = levels.counts[level_here] if level_here >= 0 else 0.0
        n_own_steps = _put(plan.time, plan.value, n_own_steps, since, count, True)
        if level_here >= 0:
            does = (rest.time[step_index] - since) * levels.rates[level_here]
            if does >= work:
                finish_s = float(math.ceil(since + work / levels.rates[level_here]))
                end_s = min(now_s + _slots_up(finish_s - now_s, window.slot_s), rest.time[step_index])
                was_free = _value_at(free.time, free.value, since, n_nodes)
                rest.value[last] = was_free - count
                n_rest = _put(rest.time, rest.value, n_rest, end_s, was_free, False)
                return _finish_plan(plan, n_own_steps, rest, n_rest, end_s, finish_s)
            work -= does
            if step_index > last:
                rest.value[last] -= count
        last = step_index
    since, count = rest.time[last], levels.counts[last_level]
    n_own_steps = _put(plan.time, plan.value, n_own_steps, since, count, True)
    finish_s = float(math.ceil(since + work / levels.rates[last_level]))
    end_s = now_s + _slots_up(finish_s - now_s, window.slot_s)
    rest.value[last] = n_nodes - count
    n_rest = _put(rest.time, rest.value, n_rest, end_s, n_nodes, True)
    return _finish_plan(plan, n_own_steps, rest, n_rest, end_s, finish_s)
