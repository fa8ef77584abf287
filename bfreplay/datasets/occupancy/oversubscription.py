"""Idle node-time under each rule for jobs that need more nodes than are free, where a log has only counts.

How many nodes are idle does then not depend on which nodes a job gets, so that counting them is enough: a small part of
the work of a sweep, from which the results of all rules follow while a log is imported under one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.datasets.occupancy.inventory import HOUR_US
from bfreplay.datasets.occupancy.machine import CLIP, DELAY, DROP, NEVER, sift_down, sift_up
from bfreplay.datasets.occupancy.node_use import free_again_us
from bfreplay.datasets.occupancy.record import ScheduleRecord
from bfreplay.datasets.occupancy.rules import OVER_CAPACITY, microseconds
from bfreplay.datasets.occupancy.sweep import Plan

NOW, DEMAND, ACTIVE, ENDS, QUEUE_FIRST, QUEUE_END, N_STATE = range(7)


@compiled
def _start(
    end_us: int, count: int, state: NDArray[np.int64], heap_end: NDArray[np.int64], heap_count: NDArray[np.int32]
) -> None:
    at = state[ENDS]
    heap_end[at], heap_count[at] = end_us, count
    state[DEMAND] += count
    state[ACTIVE] += 1
    state[ENDS] += 1
    sift_up(heap_end, heap_count, at)


@compiled
def _advance(
    rule: int, n_nodes: int, until_us: int, log_end_us: int, down_after_us: int, window_start_us: int,
    window_end_us: int, start_us: NDArray[np.int64], end_us: NDArray[np.int64], count: NDArray[np.int64],
    queue: NDArray[np.int64], state: NDArray[np.int64], heap_end: NDArray[np.int64], heap_count: NDArray[np.int32],
) -> float:  # fmt: skip
    """Idle node-microseconds from ``state[NOW]`` to the last instant before ``until_us``, as ``machine.advance``."""
    idle_us, j = 0.0, 0
    while True:
        now = heap_end[0] if state[ENDS] > 0 else NEVER
        if j < len(start_us):
            now = min(now, start_us[j])
        if now >= until_us and until_us != NEVER:
            return idle_us
        upto_us = max(min(now, log_end_us), state[NOW])
        inside_us = max(min(upto_us, window_end_us) - max(state[NOW], window_start_us), 0)
        if state[ACTIVE] > 0 or upto_us - state[NOW] <= down_after_us:
            idle_us += float(inside_us) * max(n_nodes - state[DEMAND], 0)
        if now >= until_us:
            return idle_us
        state[NOW] = now
        while state[ENDS] > 0 and heap_end[0] == now:
            state[DEMAND] -= heap_count[0]
            state[ACTIVE] -= 1
            state[ENDS] -= 1
            heap_end[0], heap_count[0] = heap_end[state[ENDS]], heap_count[state[ENDS]]
            sift_down(heap_end, heap_count, state[ENDS])
        while state[QUEUE_FIRST] < state[QUEUE_END] and queue[2, state[QUEUE_FIRST]] <= n_nodes - state[DEMAND]:
            q = state[QUEUE_FIRST]
            state[QUEUE_FIRST] += 1
            end = NEVER if queue[1, q] == NEVER else queue[1, q] + now - queue[0, q]
            _start(end, queue[2, q], state, heap_end, heap_count)
        while j < len(start_us) and start_us[j] == now:
            is_too_wide = count[j] > n_nodes - state[DEMAND]
            if rule == DELAY and count[j] <= n_nodes and (is_too_wide or state[QUEUE_FIRST] < state[QUEUE_END]):
                q = state[QUEUE_END]
                state[QUEUE_END] += 1
                queue[0, q], queue[1, q], queue[2, q] = now, end_us[j], count[j]
            elif rule == CLIP or not is_too_wide:
                _start(end_us[j], count[j], state, heap_end, heap_count)
            j += 1


def idle_hours_by_rule(record: ScheduleRecord, plan: Plan, idle_hours: float) -> dict[str, float] | None:
    """Return the idle node-hours of the window under each rule of ``OVER_CAPACITY``.

    Parameters
    ----------
    record, plan
        What a sweep depends on.
    idle_hours
        What the sweep under ``plan.rules`` found. It may be less than the count, by holes too short to be events; the
        figures of the other rules are lowered by as much.

    Returns
    -------
    dict or None
        ``None`` for a log of which more is known than counts (nodes of jobs, outages): then a figure of another rule
        takes an import under that rule.
    """
    if len(plan.outages.start_us):
        return None
    window_start_us, window_end_us = plan.window_us
    down_after_us = microseconds(plan.rules.empty_after_s) if plan.empty_is_down else NEVER
    states = {rule: np.zeros(N_STATE, np.int64) for rule in (CLIP, DROP, DELAY)}
    queue = {rule: np.zeros((3, 0), np.int64) for rule in states}
    ends = {rule: (np.zeros(0, np.int64), np.zeros(0, np.int32)) for rule in states}
    idle_us = dict.fromkeys(states, 0.0)
    for state in states.values():
        state[NOW] = min(record.first_start_us, window_start_us)
    for jobs, until_us in record.jobs.slices():
        if len(jobs.nodes):
            return None
        end_us = free_again_us(jobs, plan.rules, plan.log_end_us)
        for rule, state in states.items():
            first, end = state[QUEUE_FIRST], state[QUEUE_END]
            more = len(jobs)
            queue[rule] = np.concatenate([queue[rule][:, first:end], np.zeros((3, more), np.int64)], axis=1)
            state[QUEUE_FIRST], state[QUEUE_END] = 0, end - first
            more += end - first
            heap_end, heap_count = (
                np.concatenate([each[: state[ENDS]], np.zeros(more, each.dtype)]) for each in ends[rule]
            )
            ends[rule] = heap_end, heap_count
            idle_us[rule] += _advance(
                rule, plan.n_kept, until_us, plan.log_end_us, down_after_us, window_start_us, window_end_us,
                jobs.start_us, end_us, jobs.count, queue[rule], state, heap_end, heap_count,
            )  # fmt: skip
    chosen = OVER_CAPACITY.index(plan.rules.over_capacity)
    short_hours = idle_us[chosen] / HOUR_US - idle_hours
    return {name: max(idle_us[rule] / HOUR_US - short_hours, 0.0) for rule, name in enumerate(OVER_CAPACITY)}
