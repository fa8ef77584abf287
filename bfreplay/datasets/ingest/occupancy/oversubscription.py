"""Idle time of a log of counts under each rule for oversubscription, without nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled, zero_records
from bfreplay.datasets.ingest.occupancy.inventory import free_again_us
from bfreplay.datasets.ingest.occupancy.machine import CLIP, DELAY, NEVER, DelayedJob, longer, pop_end, push_end
from bfreplay.datasets.ingest.occupancy.rules import OVERSUBSCRIPTION, microseconds
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.occupancy.state_changes import Plan
from bfreplay.datasets.times import HOUR_US


class State:
    """Instant, nodes wanted by running jobs, and the used parts of heap and queue."""

    now: int
    demand: int
    n_active: int
    queue_first: int
    queue_end: int


class Demand(NamedTuple):
    """Machine without nodes: ends and wanted nodes of the running jobs, and the delayed jobs."""

    state: State
    end_us: NDArray[np.int64]
    end_count: NDArray[np.int32]
    queue: Sequence[DelayedJob]


class Terms(NamedTuple):
    """Rule of ``OVERSUBSCRIPTION``, size of the machine, and times as in ``advance.Terms``."""

    rule: int
    n_nodes: int
    log_end_us: int
    down_after_us: int
    window_start_us: int
    window_end_us: int


@compiled
def _begin(end_us: int, count: int, demand: Demand) -> None:
    push_end(end_us, count, demand.state.n_active, demand.end_us, demand.end_count)
    demand.state.demand += count
    demand.state.n_active += 1


@compiled
def _advance(
    until_us: int,
    start_us: NDArray[np.int64],
    end_us: NDArray[np.int64],
    count: NDArray[np.int64],
    terms: Terms,
    demand: Demand,
) -> float:
    """Return idle node-time from ``state.now`` to the last instant before ``until_us``, as ``advance.advance``."""
    state, queue = demand.state, demand.queue
    idle_us, j = 0.0, 0
    while True:
        now = demand.end_us[0] if state.n_active > 0 else NEVER
        if j < len(start_us):
            now = min(now, start_us[j])
        if now >= until_us and until_us != NEVER:
            return idle_us
        upto_us = max(min(now, terms.log_end_us), state.now)
        inside_us = max(min(upto_us, terms.window_end_us) - max(state.now, terms.window_start_us), 0)
        if state.n_active > 0 or upto_us - state.now <= terms.down_after_us:
            idle_us += float(inside_us) * max(terms.n_nodes - state.demand, 0)
        if now >= until_us:
            return idle_us
        state.now = now
        while state.n_active > 0 and demand.end_us[0] == now:
            state.demand -= pop_end(state.n_active, demand.end_us, demand.end_count)
            state.n_active -= 1
        while state.queue_first < state.queue_end and queue[state.queue_first].count <= terms.n_nodes - state.demand:
            job = queue[state.queue_first]
            state.queue_first += 1
            _begin(NEVER if job.end_us == NEVER else job.end_us + now - job.start_us, job.count, demand)
        while j < len(start_us) and start_us[j] == now:
            is_too_wide = count[j] > terms.n_nodes - state.demand
            is_queue = state.queue_first < state.queue_end
            if terms.rule == DELAY and count[j] <= terms.n_nodes and (is_too_wide or is_queue):
                job = queue[state.queue_end]
                state.queue_end += 1
                job.start_us, job.end_us, job.count = now, end_us[j], count[j]
            elif terms.rule == CLIP or not is_too_wide:
                _begin(end_us[j], count[j], demand)
            j += 1


def idle_hours_by_rule(record: ScheduleRecord, plan: Plan, idle_hours: float) -> dict[str, float] | None:
    """Return the idle node-hours of the window under each rule of ``OVERSUBSCRIPTION``.

    Parameters
    ----------
    record, plan
        Input of a sweep.
    idle_hours
        Result of the sweep under ``plan.rules``. It may be below the count, by idle intervals too short to be events;
        the figures of the other rules are lowered as much.

    Returns
    -------
    dict or None
        ``None`` for a log with more than counts (nodes of jobs, outages): the figure of another rule then needs an
        import under that rule.
    """
    if len(plan.outages.start_us):
        return None
    down_after_us = microseconds(plan.rules.empty_after_s) if plan.empty_is_down else NEVER
    times_us = plan.log_end_us, down_after_us, *plan.window_us
    rules = [Terms(rule, plan.n_kept, *times_us) for rule in range(len(OVERSUBSCRIPTION))]
    nothing = np.zeros(0, np.int64), np.zeros(0, np.int32), zero_records(DelayedJob, 0)
    demands = [Demand(zero_records(State, 1)[0], *nothing) for _ in rules]
    idle_us = [0.0 for _ in rules]
    for demand in demands:
        demand.state.now = min(record.first_start_us, plan.window_us[0])
    for jobs, until_us in record.jobs.slices():
        if len(jobs.nodes):
            return None
        end_us = free_again_us(jobs, plan.rules, plan.log_end_us)
        for rule, terms in enumerate(rules):
            demands[rule] = _with_room(demands[rule], len(jobs))
            idle_us[rule] += _advance(until_us, jobs.start_us, end_us, jobs.count, terms, demands[rule])
    chosen = OVERSUBSCRIPTION.index(plan.rules.oversubscription)
    short_hours = idle_us[chosen] / HOUR_US - idle_hours
    return {name: max(us / HOUR_US - short_hours, 0.0) for name, us in zip(OVERSUBSCRIPTION, idle_us, strict=True)}


def _with_room(demand: Demand, n_jobs: int) -> Demand:
    """Return a machine with room for ``n_jobs`` more running or delayed jobs."""
    state = demand.state
    delayed = np.asarray(demand.queue)[state.queue_first : state.queue_end]
    state.queue_first, state.queue_end = 0, len(delayed)
    n_most = n_jobs + len(delayed)
    return Demand(
        state,
        longer(demand.end_us[: state.n_active], state.n_active + n_most),
        longer(demand.end_count[: state.n_active], state.n_active + n_most),
        longer(delayed, n_most),
    )
