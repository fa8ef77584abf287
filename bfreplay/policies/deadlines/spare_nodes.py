"""Who gets the nodes that no plan needs: ElasticFlow's second step (ASPLOS'23, section 4.2).

One job after the other is given the next higher of its counts until the next change of any plan, and planned anew from
there on, for as long as nodes are left. Which job comes first is a matter of how much its node time changes by that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bfreplay._compiled import compiled
from bfreplay.policies.deadlines.plan import (
    Floats,
    Plan,
    Steps,
    _put,
    _value_at,
    _without_repeats,
    minimum_share,
)


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

    @property
    def is_in_time(self) -> bool:
        """Whether its plan meets its deadline."""
        return self.plan.finish_s <= self.deadline_s

    def follow(self, plan: Plan) -> None:
        """Take a plan over, and what it says of now."""
        self.plan = plan
        self.level = int(np.searchsorted(self.counts, plan.nodes.value[0], side="right")) - 1


@compiled
def node_time(nodes: Steps, end_s: float) -> float:
    """Node seconds of a plan up to the end of its last slot."""
    total = 0.0
    for i in range(nodes.time.size - 1):
        total += nodes.value[i] * (nodes.time[i + 1] - nodes.time[i])
    return total + float(nodes.value[-1] * (end_s - nodes.time[-1]))


@compiled
def free_without(free: Steps, nodes: Steps, end_s: float, total: float) -> Steps:
    """Free nodes once a plan is given back."""
    room = free.time.size + nodes.time.size + 1
    t, f = np.empty(room), np.empty(room)
    k = free.time.size
    t[:k] = free.time
    f[:k] = free.value
    k = _put(t, f, k, end_s, _value_at(t[:k], f[:k], end_s, total), False)
    before = 0.0
    for j in range(nodes.time.size):
        since = nodes.time[j]
        k = _put(t, f, k, since, _value_at(t[:k], f[:k], since, total), False)
        for i in range(k):
            if since <= t[i] < end_s:
                f[i] += nodes.value[j] - before
        before = nodes.value[j]
    return _without_repeats(t, f, k)


@compiled
def _replanned(
    free: Steps,
    nodes: Steps,
    end_s: float,
    deadline_s: float,
    slot_s: float,
    work: float,
    counts: Floats,
    rates: Floats,
    total: float,
    level: int,
) -> Plan:
    return minimum_share(
        free_without(free, nodes, end_s, total), deadline_s, slot_s, work, counts, rates, total, level
    )  # fmt: skip


def _grown(job: PlannedJob, free: Steps, slot_s: float, total: float) -> Plan:
    """The job's plan with the next higher count for now."""
    return _replanned(
        free, job.plan.nodes, job.plan.end_s, job.deadline_s, slot_s, job.work, job.counts, job.rates, total,
        job.level + 1,
    )  # fmt: skip


def share_spare(
    jobs: Sequence[PlannedJob],
    free: Steps,
    slot_s: float,
    total: float,
    *,
    largest_growth_first: bool = False,
    gained: Callable[[PlannedJob], None] | None = None,
) -> tuple[list[PlannedJob], Steps]:
    """Give spare nodes to jobs until none fits, and update their plans.

    Parameters
    ----------
    jobs
        The jobs; ties go to those that come first.
    free
        Free nodes, the plans of ``jobs`` taken off.
    slot_s, total
        As ``minimum_share`` takes them.
    largest_growth_first
        The job whose node time grows most per added node comes first, in time or not, as in the published program;
        otherwise the one whose node time shrinks most, or grows least, among those that will be in time or would have
        been late anyway. A job without nodes comes before all others either way.
    gained
        Called with each job that gains nodes, each time.

    Returns
    -------
    jobs
        In the order of their last scores.
    free
        Free nodes after that.
    """
    spare = free.value[0]
    order = list(jobs)
    scores = {id(job): 0.0 for job in order}

    def score(job: PlannedJob) -> float:
        more = job.counts[job.level + 1] - job.count
        if more > spare:
            return -math.inf
        if job.level < 0:
            return math.inf
        plan = _grown(job, free, slot_s, total)
        grows = (node_time(plan.nodes, plan.end_s) - node_time(job.plan.nodes, job.plan.end_s)) / more
        if largest_growth_first:
            return float(grows)
        gets_late = plan.finish_s > job.deadline_s and job.is_in_time
        return -math.inf if gets_late else -float(grows)

    def sort() -> None:
        for job in order:
            if job.level + 1 < job.counts.size:
                scores[id(job)] = score(job)
            elif id(job) not in seen:
                scores[id(job)] = -math.inf
            seen.add(id(job))
        order.sort(key=lambda job: scores[id(job)], reverse=True)

    seen: set[int] = set()
    if spare > 0:
        sort()
    while spare > 0:
        for job in order:
            can_grow = job.level + 1 < job.counts.size and job.counts[job.level + 1] - job.count <= spare
            if can_grow and (largest_growth_first or scores[id(job)] > -math.inf):
                break
        else:
            break
        plan = _grown(job, free, slot_s, total)
        spare -= job.counts[job.level + 1] - job.count
        job.level += 1
        job.plan, free = plan, plan.free
        if gained is not None:
            gained(job)
        sort()
    return order, free
