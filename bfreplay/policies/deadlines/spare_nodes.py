"""Allocation of the nodes that no plan needs: ElasticFlow's second step (ASPLOS'23, section 4.2).

One job after the other is given the next higher of its counts until the next change of any plan, and planned anew from
there on, for as long as nodes are left. Which job comes first is a matter of how much its node time changes by that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import ascending, compiled, copy_into
from bfreplay.policies.deadlines.plan import Floats, Plan, Steps, _put, _value_at, _without_repeats, minimum_share


@dataclass(slots=True, eq=False)
class PlannedJob:
    """A job with its plan.

    Parameters
    ----------
    deadline_s, work, counts, rates
        As ``minimum_share`` takes them.
    plan
        The plan that it has.
    level
        Position in ``counts`` of the nodes that it has now, -1 for none.
    """

    deadline_s: float
    work: float
    counts: Floats
    rates: Floats
    plan: Plan
    level: int = -1

    @property
    def count(self) -> int:
        """Nodes that it has now."""
        return int(self.counts[self.level]) if self.level >= 0 else 0

    def follow(self, plan: Plan) -> None:
        """Adopt a plan and its present count."""
        self.plan = plan
        self.level = int(np.searchsorted(self.counts, plan.nodes.value[0], side="right")) - 1


@compiled
def node_time(nodes: Steps, end_s: float) -> float:
    """Node seconds of a plan up to the end of its last slot."""
    node_seconds = 0.0
    for i in range(nodes.time.size - 1):
        node_seconds += nodes.value[i] * (nodes.time[i + 1] - nodes.time[i])
    return node_seconds + float(nodes.value[-1] * (end_s - nodes.time[-1]))


@compiled
def free_without(free: Steps, nodes: Steps, end_s: float, n_nodes: float) -> Steps:
    """Return the free nodes without a plan."""
    room = free.time.size + nodes.time.size + 1
    times, values = np.empty(room), np.empty(room)
    size = free.time.size
    copy_into(times, free.time)
    copy_into(values, free.value)
    size = _put(times, values, size, end_s, _value_at(times[:size], values[:size], end_s, n_nodes), False)
    nodes_before = 0.0
    for j in range(nodes.time.size):
        since = nodes.time[j]
        size = _put(times, values, size, since, _value_at(times[:size], values[:size], since, n_nodes), False)
        for i in range(size):
            if since <= times[i] < end_s:
                values[i] += nodes.value[j] - nodes_before
        nodes_before = nodes.value[j]
    return _without_repeats(times, values, size)


class _Jobs(NamedTuple):
    """J jobs with their plans, as arrays: those of job j are between ``offset[j]`` and ``offset[j + 1]``."""

    offset: NDArray[np.int64]  # (J + 1,)
    counts: Floats
    rates: Floats
    deadline_s: Floats  # (J,)
    work: Floats  # (J,)
    level: NDArray[np.int64]  # (J,)
    time: Floats  # (J, W), steps of the plans
    value: Floats  # (J, W)
    n_steps: NDArray[np.int64]  # (J,)
    end_s: Floats  # (J,)
    finish_s: Floats  # (J,)


@compiled
def _plan_with_more(jobs: _Jobs, j: int, free: Steps, slot_s: float, n_nodes: float) -> Plan:
    """Return the plan of a job with the next higher count for now."""
    n_steps = jobs.n_steps[j]
    nodes = Steps(jobs.time[j][:n_steps], jobs.value[j][:n_steps])
    without = free_without(free, nodes, jobs.end_s[j], n_nodes)
    counts = jobs.counts[jobs.offset[j] : jobs.offset[j + 1]]
    rates = jobs.rates[jobs.offset[j] : jobs.offset[j + 1]]
    return minimum_share(without, jobs.deadline_s[j], slot_s, jobs.work[j], counts, rates, n_nodes, jobs.level[j] + 1)


@compiled
def _count_added(jobs: _Jobs, j: int) -> float:
    """Return the nodes that a job gains with its next higher count; inf if it has none."""
    next_level = jobs.offset[j] + jobs.level[j] + 1
    if next_level >= jobs.offset[j + 1]:
        return np.inf
    count_now = jobs.counts[next_level - 1] if jobs.level[j] >= 0 else 0.0
    return float(jobs.counts[next_level] - count_now)


@compiled
def _score(jobs: _Jobs, j: int, free: Steps, slot_s: float, n_nodes: float, growth_first: bool) -> float:
    """Return the score of a job; the job with the largest one is next."""
    n_added = _count_added(jobs, j)
    if n_added > free.value[0]:
        return -np.inf
    is_first = jobs.level[j] < 0
    if is_first and growth_first:
        return np.inf
    plan = _plan_with_more(jobs, j, free, slot_s, n_nodes)
    if not growth_first and plan.finish_s > jobs.deadline_s[j] and jobs.finish_s[j] <= jobs.deadline_s[j]:
        return -np.inf
    if is_first:
        return np.inf
    n_steps = jobs.n_steps[j]
    grows = node_time(plan.nodes, plan.end_s) - node_time(
        Steps(jobs.time[j][:n_steps], jobs.value[j][:n_steps]), jobs.end_s[j]
    )
    if growth_first:
        return grows / n_added
    return -grows / n_added


@compiled
def _with_room(jobs: _Jobs, width: int) -> _Jobs:
    """Return the jobs with room for plans of ``width`` steps."""
    n_jobs = jobs.time.shape[0]
    time, value = np.zeros((n_jobs, width)), np.zeros((n_jobs, width))
    for j in range(n_jobs):
        copy_into(time[j], jobs.time[j])
        copy_into(value[j], jobs.value[j])
    return _Jobs(
        jobs.offset,
        jobs.counts,
        jobs.rates,
        jobs.deadline_s,
        jobs.work,
        jobs.level,
        time,
        value,
        jobs.n_steps,
        jobs.end_s,
        jobs.finish_s,
    )


@compiled
def _share_spare(
    jobs: _Jobs, free: Steps, slot_s: float, n_nodes: float, growth_first: bool
) -> tuple[_Jobs, NDArray[np.int64], NDArray[np.int64], Floats, Steps]:
    """Apply ``share_spare`` to arrays; return jobs, order, the job that gained each time and its ends, free nodes."""
    n_jobs = jobs.level.size
    order = np.arange(n_jobs)
    scores = np.full(n_jobs, -np.inf)
    most_gains = int(free.value[0])
    gainers, ends = np.zeros(most_gains, np.int64), np.zeros((most_gains, 2))
    n_gains = 0
    while free.value[0] > 0:
        for j in range(n_jobs):
            if _count_added(jobs, j) < np.inf:
                scores[j] = _score(jobs, j, free, slot_s, n_nodes, growth_first)
        order = order[ascending(-scores[order])]
        best_job = -1
        for k in range(n_jobs):
            if _count_added(jobs, order[k]) <= free.value[0] and (growth_first or scores[order[k]] > -np.inf):
                best_job = order[k]
                break
        if best_job < 0:
            break
        plan = _plan_with_more(jobs, best_job, free, slot_s, n_nodes)
        jobs.level[best_job] += 1
        n_steps = plan.nodes.time.size
        if n_steps > jobs.time.shape[1]:
            jobs = _with_room(jobs, 2 * n_steps)
        copy_into(jobs.time[best_job], plan.nodes.time)
        copy_into(jobs.value[best_job], plan.nodes.value)
        jobs.n_steps[best_job], jobs.end_s[best_job], jobs.finish_s[best_job] = n_steps, plan.end_s, plan.finish_s
        gainers[n_gains], ends[n_gains, 0], ends[n_gains, 1] = best_job, plan.end_s, plan.finish_s
        n_gains += 1
        free = plan.free
    else:
        # the published program sorts once more when nothing is left
        for j in range(n_jobs):
            if n_gains > 0 and _count_added(jobs, j) < np.inf:
                scores[j] = -np.inf
        order = order[ascending(-scores[order])]
    return jobs, order, gainers[:n_gains], ends[:n_gains], free


def _arrays_of(jobs: Sequence[PlannedJob], free: Steps) -> _Jobs:
    width = 2 * max(job.plan.nodes.time.size for job in jobs)
    time, value = np.zeros((len(jobs), width)), np.zeros((len(jobs), width))
    for job_row, job in enumerate(jobs):
        n_steps = job.plan.nodes.time.size
        time[job_row, :n_steps], value[job_row, :n_steps] = job.plan.nodes
    return _Jobs(
        np.concatenate([np.zeros(1, np.int64), np.cumsum([job.counts.size for job in jobs])]),
        np.concatenate([job.counts for job in jobs]),
        np.concatenate([job.rates for job in jobs]),
        np.array([job.deadline_s for job in jobs]),
        np.array([job.work for job in jobs], np.float64),
        np.array([job.level for job in jobs], np.int64),
        time,
        value,
        np.array([job.plan.nodes.time.size for job in jobs], np.int64),
        np.array([job.plan.end_s for job in jobs]),
        np.array([job.plan.finish_s for job in jobs]),
    )


def share_spare(
    jobs: Sequence[PlannedJob],
    free: Steps,
    slot_s: float,
    n_nodes: float,
    *,
    largest_growth_first: bool = False,
    gained: Callable[[PlannedJob, float, float], None] | None = None,
) -> tuple[list[PlannedJob], Steps]:
    """Give spare nodes to jobs until none fits, and update their plans.

    Parameters
    ----------
    jobs
        The jobs; ties go to those that come first.
    free
        Free nodes, the plans of ``jobs`` taken off.
    slot_s, n_nodes
        As ``minimum_share`` takes them.
    largest_growth_first
        The job whose node time grows most per added node comes first, in time or not, as in the published program;
        otherwise the one whose node time shrinks most, or grows least, among those that will be in time or would have
        been late anyway. A job without nodes comes before all others either way.
    gained
        Called with each job that gains nodes, each time, and the ``end_s`` and ``finish_s`` of its plan then.

    Returns
    -------
    jobs
        In the order of their last scores.
    free
        Free nodes after that.
    """
    if not jobs:
        return [], free
    arrays = _arrays_of(jobs, free)
    arrays, order, gainers, ends, free = _share_spare(arrays, free, float(slot_s), n_nodes, largest_growth_first)
    for job_row in dict.fromkeys(gainers.tolist()):
        n_steps = arrays.n_steps[job_row]
        nodes = Steps(arrays.time[job_row, :n_steps].copy(), arrays.value[job_row, :n_steps].copy())
        jobs[job_row].plan = Plan(nodes, float(arrays.end_s[job_row]), float(arrays.finish_s[job_row]), free)
        jobs[job_row].level = int(arrays.level[job_row])
    if gained is not None:
        for job_row, (end_s, finish_s) in zip(gainers.tolist(), ends.tolist(), strict=True):
            gained(jobs[job_row], end_s, finish_s)
    return [jobs[job_row] for job_row in order.tolist()], free
