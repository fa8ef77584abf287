"""ElasticFlow and earliest deadline first as published, each with and without admission: plans against deadlines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np

from bfreplay._compiled import compiled
from bfreplay.policies.deadlines.plan import (
    NOT_FORCED,
    Floats,
    Plan,
    Steps,
    _drafts,
    _finish_plan,
    _level_within,
    _put,
    _slots_up,
    minimum_share,
)
from bfreplay.policies.deadlines.spare_nodes import PlannedJob, share_spare
from bfreplay.systems.elasticflow.published.event_loop import Event, Job, PublishedLoop, cache_key, overhead_s
from bfreplay.systems.elasticflow.published.program import PublishedRun, Servers, TraceJob


class DeadlineJob(Job):
    """Job with a plan.

    Attributes
    ----------
    remaining
        Remaining iterations.
    gpus
        GPUs from the last event on.
    end_s
        Expected end in the simulator, including overheads and whole slots.
    finish_s
        Expected end of its work; ``None`` where the scheduler has only ``end_s``.
    planned_s
        End of its work by the last plan.
    """

    def __init__(self, trace: TraceJob) -> None:
        super().__init__(trace)
        self.remaining = float(trace.iterations)
        self.gpus = 0
        self.finish_s: float | None = None
        self.planned_s = 0.0

    @property
    def deadline_s(self) -> int:
        """Deadline in the trace."""
        return self.trace.deadline_s

    def plan(self, free_gpus: Steps, slot_s: float, total: float) -> Steps:
        """Replan it on the free GPUs, of ``total``, and return those that are free then; the default needs none."""
        return free_gpus


DeadlineJobT = TypeVar("DeadlineJobT", bound=DeadlineJob)


class DeadlineLoop(PublishedLoop[DeadlineJobT]):
    """Loop of the schedulers of elastic jobs; ``admits``: jobs may be declined.

    Attributes
    ----------
    pending, running
        Jobs that wait for their first GPUs; and the others.
    """

    def __init__(self, jobs: Sequence[DeadlineJobT], servers: Servers, slot_s: int, *, admits: bool = False) -> None:
        super().__init__(jobs, servers, float(slot_s))
        self.admits = admits
        self.free = Steps(np.zeros(0), np.zeros(0))
        self.pending: list[DeadlineJobT] = []
        self.running: list[DeadlineJobT] = []
        self._cached: set[tuple[int, int]] = set()

    def arrival_s(self, trace: TraceJob) -> float:
        """Return the time of submission."""
        return float(trace.submit_s)

    def advance(self, now_s: float, elapsed_s: float) -> None:
        """Advance jobs by their iterations since the last event."""
        for job in self.runnable:
            if not job.gpus:
                continue
            rate = job.trace.rates[job.gpus]
            until_s = job.end_s if job.finish_s is None else job.finish_s
            run_s = elapsed_s - max(now_s - until_s, 0.0)
            run_s = 0.0 if run_s < job.overhead_s else run_s - job.overhead_s
            iterations = run_s * rate
            if job.remaining <= iterations and job.end_s > now_s:  # done before the event at which it should have ended
                iterations = (job.end_s - now_s + elapsed_s) * rate
                self.timetable.move_end(job, job.end_s, now_s)
                job.end_s = now_s - elapsed_s + math.ceil(job.remaining / rate)
            job.remaining -= iterations
            job.overhead_s = 0.0

    def plan_all(self, jobs: Sequence[DeadlineJobT], now_s: float) -> bool:
        """Plan jobs in the order of their deadlines; return whether all will be in time."""
        total = float(self.servers.n_gpus)
        self.free = Steps(np.array([float(now_s)]), np.array([total]))
        for job in sorted(jobs, key=lambda job: job.deadline_s):
            self.free = job.plan(self.free, self.slot_s, total)
        return all(job.planned_s <= job.deadline_s for job in jobs)

    def wait(self, job: DeadlineJobT) -> None:
        """Add a job that waits for its first GPUs."""
        self.pending.append(job)
        self.runnable.append(job)

    def start(self, job: DeadlineJobT, now_s: float) -> None:
        """Give a waiting job its first GPUs."""
        job.start_s = now_s
        self.pending.remove(job)
        self.running.append(job)

    def end_running(self, job: DeadlineJobT, end_to_judge_s: float) -> None:
        """End a job; it is late if ``end_to_judge_s`` is after its deadline."""
        self.running.remove(job)
        self.end(job, job.gpus, job.trace.is_met(end_to_judge_s))

    def release(self) -> None:
        """Take the GPUs of all jobs away."""
        self.placement.clear()
        for job in self.runnable:
            job.gpus = 0

    def place(self, job: DeadlineJobT, n_gpus: int) -> None:
        """Give a job GPUs."""
        self.placement.place(job.trace.index, n_gpus)
        job.gpus = n_gpus

    def log_allocation(self, now_s: float, *, charges: bool) -> None:
        """Log the allocation from now on, and charge every running job if the scheduler ``charges``."""
        gpus_of = self.placement.gpus()
        jobs_with_gpus = [job for job in self.runnable if job.gpus]
        keys = {job: cache_key(gpus_of[job.trace.index]) for job in jobs_with_gpus}
        restarts = self.restarts_all()
        if charges and len(self.timetable):
            for job in jobs_with_gpus:
                job.overhead_s = overhead_s(job.gpus, self.servers.n_gpus, restarts, keys[job] in self._cached)
                previous_s = job.end_s
                job.end_s += job.overhead_s
                self.timetable.move_end(job, previous_s, job.end_s)
        self._cached = set() if restarts else self._cached | set(keys.values())
        self.log(now_s, jobs_with_gpus, gpus_of)


def job_to_plan(deadline_s: float, iterations: float, rates: Mapping[int, float], most_gpus: int) -> PlannedJob:
    """Return a job without a plan; ``rates`` on more than ``most_gpus`` GPUs do not count."""
    usable = np.array([(n_gpus, rate) for n_gpus, rate in rates.items() if n_gpus <= most_gpus], np.float64)
    nothing = Steps(np.zeros(1), np.zeros(1))
    counts, speeds = np.ascontiguousarray(usable.reshape(-1, 2).T)
    return PlannedJob(float(deadline_s), float(iterations), counts, speeds, Plan(nothing, 0.0, 0.0, nothing))


class _ElasticJob(DeadlineJob):
    """Job with its plan; ``planned`` is the job as planning sees it."""

    def __init__(self, trace: TraceJob) -> None:
        super().__init__(trace)
        self.planned = job_to_plan(trace.deadline_s, self.remaining, trace.rates, trace.most_gpus)

    def plan(self, free_gpus: Steps, slot_s: float, total: float) -> Steps:
        """Replan it, and return the free GPUs then."""
        planned = self.planned
        planned.work = self.remaining
        planned.plan = minimum_share(
            free_gpus, planned.deadline_s, slot_s, planned.work, planned.counts, planned.rates, total, NOT_FORCED
        )
        self.end_s, self.finish_s = planned.plan.end_s, planned.plan.finish_s
        self.planned_s = self.finish_s
        return planned.plan.free


class _Elastic(DeadlineLoop[_ElasticJob]):
    """Loop of both."""

    def handle(self, event: Event[_ElasticJob]) -> None:
        """One event."""
        now_s = event.time_s
        for job in event.ends:
            if job.gpus:
                self.end_running(job, job.planned.plan.finish_s if self.admits else job.end_s)
        previous_end_s = {job: job.end_s for job in self.runnable}
        self.release()
        is_feasible = not event.arrivals or not self.admits or self.plan_all([*self.runnable, *event.arrivals], now_s)
        for job in event.arrivals:
            previous_end_s[job] = 0.0
            if is_feasible or job.trace.is_best_effort:
                self.wait(job)
            else:
                self.result.refused.append(job.trace.index)
        self.runnable.sort(key=lambda job: job.deadline_s)
        self.plan_all(self.runnable, now_s)
        for job in self.runnable:
            job.planned.follow(job.planned.plan)
            self.timetable.move_end(job, previous_end_s[job], job.end_s)
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
            previous_s, job.end_s, job.finish_s = job.end_s, end_s, finish_s
            self.timetable.move_end(job, previous_s, job.end_s)

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
            jobs_with_gpus = self.runnable
            first_s = min((time_s for _, time_s in changes), default=math.inf)
            if first_s < self.timetable.next_s:
                self.timetable.at(first_s)
        else:
            on_whole_servers = [job for job in self.running if job.planned.count >= self.servers.gpus_each]
            on_parts = [job for job in self.running if job.planned.count < self.servers.gpus_each]
            jobs_with_gpus = [*on_whole_servers, *sorted(on_parts, key=lambda job: job.planned.count, reverse=True)]
            for job, time_s in changes:
                if job in self.running:
                    self.timetable.at(time_s)
        for job in jobs_with_gpus:
            if job.planned.count:
                self.place(job, job.planned.count)
        self.log_allocation(now_s, charges=True)


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


@compiled
def soonest_end(
    free_gpus: Steps, slot_s: float, iterations: float, counts: Floats, rates: Floats, total: float, overbooks: bool
) -> Plan:
    """Plan one job with as many nodes as possible at any time.

    Arguments and result are those of ``minimum_share``. With ``overbooks``, as published, where the job ends within a
    slot the nodes that were free before it are free from the end of the slot on, regardless of other plans then.
    """
    now_s = free_gpus.time[0]
    top_level = _level_within(counts, total)
    n_free = free_gpus.time.size
    (remaining, plan), n_plan = _drafts(free_gpus), 1
    for step in range(free_gpus.time.size - 1):
        begin_s, until_s = free_gpus.time[step], free_gpus.time[step + 1]
        gpus_free = free_gpus.value[step]
        level = min(top_level, _level_within(counts, gpus_free))
        count = counts[level] if level >= 0 else 0.0
        n_plan = _put(plan.time, plan.value, n_plan, begin_s, count, True)
        if level < 0:
            continue
        remaining.value[np.searchsorted(remaining.time[:n_free], begin_s)] = gpus_free - count
        finish_s = float(math.ceil(begin_s + iterations / rates[level]))
        if until_s >= finish_s:
            end_s = min(now_s + _slots_up(finish_s - now_s, slot_s), until_s)  # earlier plans may have had other slots
            if until_s != finish_s:
                n_free = _put(remaining.time, remaining.value, n_free, end_s, gpus_free, overbooks)
            return _finish_plan(plan, n_plan, remaining, n_free, end_s, finish_s)
        iterations -= (until_s - begin_s) * rates[level]
    last_s = free_gpus.time[-1]
    n_plan = _put(plan.time, plan.value, n_plan, last_s, counts[top_level], True)
    finish_s = float(math.ceil(last_s + iterations / rates[top_level]))
    end_s = now_s + _slots_up(finish_s - now_s, slot_s)
    n_free = _put(remaining.time, remaining.value, n_free, last_s, total - counts[top_level], True)
    n_free = _put(remaining.time, remaining.value, n_free, end_s, total, True)
    return _finish_plan(plan, n_plan, remaining, n_free, end_s, finish_s)


class _EdfJob(DeadlineJob):
    """Job and its plan."""

    def __init__(self, trace: TraceJob) -> None:
        super().__init__(trace)
        self.counts, self.rates = (
            np.array(list(column), np.float64) for column in (trace.rates.keys(), trace.rates.values())
        )
        self.planned_gpus = 0
        self.next_gpus = 0  # of the plan that it follows

    def plan(self, free_gpus: Steps, slot_s: float, total: float) -> Steps:
        """Replan it, and return the free GPUs then."""
        plan = soonest_end(free_gpus, slot_s, self.remaining, self.counts, self.rates, total, True)
        self.planned_s, self.planned_gpus = plan.finish_s, int(plan.nodes.value[0])
        return plan.free


class _Edf(DeadlineLoop[_EdfJob]):
    """Loop of both."""

    def handle(self, event: Event[_EdfJob]) -> None:
        """One event."""
        now_s = event.time_s
        for job in event.ends:
            self.end_running(job, job.end_s)
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
        jobs_with_gpus = self.runnable if self.admits else sorted(self.runnable, key=lambda job: -job.next_gpus)
        for job in jobs_with_gpus:
            if job.next_gpus:
                self.place(job, job.next_gpus)
        self.log_allocation(now_s, charges=self.admits)

    def _admit(self, arrivals: Sequence[_EdfJob], now_s: float) -> None:
        """Try arrivals one by one. Without a new job, jobs without GPUs keep their expected ends."""
        is_new = False
        for job in arrivals:
            if self.plan_all([*self.runnable, job], now_s):
                self.wait(job)
                self._follow([*self.running, *self.pending], now_s)
                is_new = True
            else:
                self.result.refused.append(job.trace.index)
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
            previous_s, job.end_s = job.end_s, job.planned_s
            if job in self.running:
                self.timetable.move_end(job, previous_s, job.end_s)
            elif job.planned_gpus:
                self.start(job, now_s)
                self.timetable.add_end(job, job.end_s)


def edf(jobs: Sequence[TraceJob], servers: Servers, slot_s: int) -> PublishedRun:
    """Run jobs under EDF (``edf``): no job is declined, and rescaling costs nothing."""
    return _Edf([_EdfJob(job) for job in jobs], servers, slot_s, admits=False).run()


def edf_with_admission(jobs: Sequence[TraceJob], servers: Servers, slot_s: int) -> PublishedRun:
    """Run jobs under EDF with admission (``edf-accessctrl``): jobs are tried one by one, and rescaling costs."""
    return _Edf([_EdfJob(job) for job in jobs], servers, slot_s, admits=True).run()
