"""ElasticFlow as its authors published it, with and without admission."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from bfreplay.policies.deadlines.plan import Plan, Steps, minimum_share
from bfreplay.policies.deadlines.spare_nodes import PlannedJob, share_spare
from bfreplay.systems.elasticflow.published.cluster_time import LiveJob, PublishedLoop
from bfreplay.systems.elasticflow.published.program import PublishedRun, Servers, TraceJob


def job_to_plan(deadline_s: float, work: float, rates: Mapping[int, float], most_gpus: int) -> PlannedJob:
    """Return a job without a plan; ``rates`` on more than ``most_gpus`` GPUs do not count."""
    usable = np.array([(gpus, rate) for gpus, rate in rates.items() if gpus <= most_gpus], np.float64)
    nothing = Steps(np.zeros(1), np.zeros(1))
    counts, speeds = np.ascontiguousarray(usable.reshape(-1, 2).T)
    return PlannedJob(float(deadline_s), float(work), counts, speeds, Plan(nothing, 0.0, 0.0, nothing))


class _ElasticJob(LiveJob):
    """Job with its plan; ``planned`` is the job as planning sees it."""

    def __init__(self, trace: TraceJob) -> None:
        super().__init__(trace)
        self.planned = job_to_plan(trace.deadline_s, self.left, trace.rates, trace.most_gpus)

    def plan(self, free: Steps, slot_s: float, total: float) -> Steps:
        """Replan it, and return the free GPUs then."""
        planned = self.planned
        planned.work = self.left
        planned.plan = minimum_share(
            free, planned.deadline_s, slot_s, planned.work, planned.counts, planned.rates, total
        )
        self.end_s, self.finish_s = planned.plan.end_s, planned.plan.finish_s
        self.planned_s = self.finish_s
        return planned.plan.free


class _Elastic(PublishedLoop[_ElasticJob]):
    """Loop of both."""

    def handle(self, now_s: float) -> None:
        """One event."""
        event = self.timetable.pop(now_s)
        for job in event.ends:
            if job.gpus:
                self.end(job, job.planned.plan.finish_s if self.admits else job.end_s)
        before = {job: job.end_s for job in self.runnable}
        self.release()
        is_feasible = not event.arrivals or not self.admits or self.plan_all([*self.runnable, *event.arrivals], now_s)
        for job in event.arrivals:
            before[job] = 0.0
            if is_feasible or job.trace.is_best_effort:
                self.wait(job)
            else:
                self.refuse(job)
        self.runnable.sort(key=lambda job: job.deadline_s)
        self.plan_all(self.runnable, now_s)
        for job in self.runnable:
            job.planned.follow(job.planned.plan)
            self.timetable.move_end(job, before[job], job.end_s)
        self._start_due(now_s)
        self._share_spare(now_s)
        self._place(now_s)

    def _start_due(self, now_s: float) -> None:
        """Start the waiting jobs whose plans begin now."""
        for job in list(self.pending):
            nodes = job.planned.plan.nodes
            if job.planned.count > 0:
                self.start(job, now_s)
                self.timetable.add_end(job, job.end_s)
            elif not self.admits:
                self.timetable.at(float(nodes.time[nodes.value > 0][0]))

    def _share_spare(self, now_s: float) -> None:
        def gain(planned: PlannedJob, end_s: float, finish_s: float) -> None:
            job = job_of[id(planned)]
            if job in self.pending:
                self.start(job, now_s)
            before_s, job.end_s, job.finish_s = job.end_s, end_s, finish_s
            self.timetable.move_end(job, before_s, job.end_s)

        job_of = {id(job.planned): job for job in self.runnable}
        order, self.free = share_spare(
            [job.planned for job in self.runnable],
            self.free,
            self.slot_s,
            float(self.servers.n_gpus),
            largest_growth_first=True,
            gained=gain,
        )
        self.runnable[:] = [job_of[id(planned)] for planned in order]

    def _place(self, now_s: float) -> None:
        """Allocate GPUs, and add an event at the first change of plans."""
        changes = [
            (job, float(job.planned.plan.nodes.time[1]))
            for job in self.runnable
            if job.planned.plan.nodes.time.size > 1
        ]
        if self.admits:
            self.runnable.sort(key=lambda job: job.planned.count, reverse=True)
            placed = self.runnable
            first_s = min((time_s for _, time_s in changes), default=math.inf)
            if first_s < self.timetable.next_s:
                self.timetable.at(first_s)
        else:
            whole = [job for job in self.running if job.planned.count >= self.servers.gpus_each]
            parts = [job for job in self.running if job.planned.count < self.servers.gpus_each]
            placed = [*whole, *sorted(parts, key=lambda job: job.planned.count, reverse=True)]
            for job, time_s in changes:
                if job in self.running:
                    self.timetable.at(time_s)
        for job in placed:
            if job.planned.count:
                self.place(job, job.planned.count)
        self.note(now_s, charges=True)


def elasticflow(jobs: Sequence[TraceJob], servers: Servers, slot_s: int) -> PublishedRun:
    """Run jobs under ElasticFlow (``ef-accessctrl``).

    All arrivals of an event are declined if any job would be late with them.
    """
    return _Elastic([_ElasticJob(job) for job in jobs], servers, slot_s, admits=True).run()


def elastic_sharing(jobs: Sequence[TraceJob], servers: Servers, slot_s: int) -> PublishedRun:
    """Run jobs under ElasticFlow without admission (``ef``).

    A job counts as late by the end of its last slot, overheads included; under ``elasticflow`` by the end of its work.
    """
    return _Elastic([_ElasticJob(job) for job in jobs], servers, slot_s, admits=False).run()
