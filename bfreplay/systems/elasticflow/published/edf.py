"""Earliest deadline first with as many GPUs as a job can use, as published with ElasticFlow."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bfreplay._compiled import compiled
from bfreplay.policies.deadlines.plan import Floats, Plan, Steps, _Draft, _finish_plan, _level_within, _put, _slots_up
from bfreplay.systems.elasticflow.published.cluster_time import LiveJob, PublishedLoop
from bfreplay.systems.elasticflow.published.program import PublishedRun, Servers, TraceJob


@compiled
def soonest_end(
    free: Steps, slot_s: float, work: float, counts: Floats, rates: Floats, total: float, overbooks: bool
) -> Plan:
    """Plan one job with as many nodes as possible at any time.

    Arguments and result are those of ``minimum_share``. With ``overbooks``, as published, where the job ends within a
    slot the nodes that were free before it are free from the end of the slot on, regardless of other plans then.
    """
    now = free.time[0]
    top = _level_within(counts, total)
    k = free.time.size
    left, plan = _Draft(np.empty(k + 4), np.empty(k + 4)), _Draft(np.zeros(k + 4), np.zeros(k + 4))
    left.time[:k] = free.time
    left.value[:k] = free.value
    plan.time[0], m = now, 1
    for i in range(free.time.size - 1):
        since, until = free.time[i], free.time[i + 1]
        was_free = free.value[i]
        has = min(top, _level_within(counts, was_free))
        count = counts[has] if has >= 0 else 0.0
        m = _put(plan.time, plan.value, m, since, count, True)
        if has < 0:
            continue
        left.value[np.searchsorted(left.time[:k], since)] = was_free - count
        finish_s = float(math.ceil(since + work / rates[has]))
        if until >= finish_s:
            end_s = min(now + _slots_up(finish_s - now, slot_s), until)  # earlier plans may have had other slots
            if until != finish_s:
                k = _put(left.time, left.value, k, end_s, was_free, overbooks)
            return _finish_plan(plan, m, left, k, end_s, finish_s)
        work -= (until - since) * rates[has]
    last = free.time[-1]
    m = _put(plan.time, plan.value, m, last, counts[top], True)
    finish_s = float(math.ceil(last + work / rates[top]))
    end_s = now + _slots_up(finish_s - now, slot_s)
    k = _put(left.time, left.value, k, last, total - counts[top], True)
    k = _put(left.time, left.value, k, end_s, total, True)
    return _finish_plan(plan, m, left, k, end_s, finish_s)


class _EdfJob(LiveJob):
    """Job and its plan."""

    def __init__(self, trace: TraceJob) -> None:
        super().__init__(trace)
        self.counts, self.rates = (
            np.array(list(each), np.float64) for each in (trace.rates.keys(), trace.rates.values())
        )
        self.planned_gpus = 0
        self.next_gpus = 0  # of the plan that it follows

    def plan(self, free: Steps, slot_s: float, total: float) -> Steps:
        """Replan it, and return the free GPUs then."""
        plan = soonest_end(free, slot_s, self.left, self.counts, self.rates, total, True)
        self.planned_s, self.planned_gpus = plan.finish_s, int(plan.nodes.value[0])
        return plan.free


class _Edf(PublishedLoop[_EdfJob]):
    """Loop of both."""

    def handle(self, now_s: float) -> None:
        """One event."""
        event = self.timetable.pop(now_s)
        for job in event.ends:
            self.end(job, job.end_s)
        self.release()
        if self.admits:
            self._admit(event.arrivals, now_s)
        else:
            for job in event.arrivals:
                self.wait(job)
            if not event.arrivals:
                self.runnable.sort(key=lambda job: job.deadline_s)
            self.plan_all(self.runnable, now_s)
            self._follow(self.runnable, now_s)
        placed = self.runnable if self.admits else sorted(self.runnable, key=lambda job: -job.next_gpus)
        for job in placed:
            if job.next_gpus:
                self.place(job, job.next_gpus)
        self.note(now_s, charges=self.admits)

    def _admit(self, arrivals: Sequence[_EdfJob], now_s: float) -> None:
        """Try arrivals one by one. Without a new job, jobs without GPUs keep their expected ends."""
        is_new = False
        for job in arrivals:
            if self.plan_all([*self.runnable, job], now_s):
                self.wait(job)
                self._follow([*self.running, *self.pending], now_s)
                is_new = True
            else:
                self.refuse(job)
        if not is_new:
            self.runnable.sort(key=lambda job: job.deadline_s)
            self.plan_all(self.runnable, now_s)
            for job in self.runnable:
                job.next_gpus = 0
            self._follow([job for job in self.runnable if job.planned_gpus], now_s)

    def _follow(self, jobs: Sequence[_EdfJob], now_s: float) -> None:
        """Give jobs the GPUs of their plans."""
        for job in jobs:
            job.next_gpus = job.planned_gpus
            before_s, job.end_s = job.end_s, job.planned_s
            if job in self.running:
                self.timetable.move_end(job, before_s, job.end_s)
            elif job.planned_gpus:
                self.start(job, now_s)
                self.timetable.add_end(job, job.end_s)


def edf(jobs: Sequence[TraceJob], servers: Servers, slot_s: int) -> PublishedRun:
    """Run jobs under EDF (``edf``): no job is declined, and rescaling costs nothing."""
    return _Edf([_EdfJob(job) for job in jobs], servers, slot_s, admits=False).run()


def edf_with_admission(jobs: Sequence[TraceJob], servers: Servers, slot_s: int) -> PublishedRun:
    """Run jobs under EDF with admission (``edf-accessctrl``): jobs are tried one by one, and rescaling costs."""
    return _Edf([_EdfJob(job) for job in jobs], servers, slot_s, admits=True).run()
