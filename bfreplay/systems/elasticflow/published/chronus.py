"""Chronus, a baseline in ElasticFlow's experiments: jobs run in leases of fixed length, accepted ones by a plan.

A job is accepted on arrival if the leases that it needs (by its duration, enlarged by a margin) can be packed before
its deadline beside those planned for the jobs accepted earlier. At the start of each lease a plan for all accepted jobs
chooses those that run; all others share the remaining GPUs until the next lease, and no job is ever declined.

Behaviour of the published program that is repeated here:

* A refused job gets a later deadline that could be kept, and holds back the arrivals after it in the same slot as if
  accepted with that; afterwards it is not planned any more.
* The deadline of an accepted job moves to the start of the lease in which it lies, and the job is judged by that.
* A job that begins a lease after waiting is credited with the time since the last slot, in which it did not run: half
  of the work of a job that runs in every other lease is never done. So its logged end may be before its last lease, or
  before its start.
* A job without a place in the plan is stopped at each lease and started again at once, and pays for a new start.
* A job that is not done after the enlarged duration loses its acceptance and goes first among the jobs without one.
* Where GPUs are in the cluster has no effect on times; here jobs take the lowest free ones, large jobs first.

Its trace converter loses the flag of best-effort jobs and treats them as jobs with the deadline in the file. They must
be given so here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from bfreplay.errors import InputError
from bfreplay.systems.elasticflow.published.event_loop import Event, Job, PublishedLoop, first_fit
from bfreplay.systems.elasticflow.published.leases import LeaseRequest, Plan, fits, pack, postpone
from bfreplay.systems.elasticflow.published.program import PublishedRun, Servers, TraceJob

SLOT_S = 240
"""Arrivals are handled, and free GPUs allocated, at multiples of it; a constant in the published program."""

MARGIN = 1.1
"""Factor by which the assumed duration of an arriving job exceeds that of its trace."""

RESTART_S = 0.5
"""Work that a start adds to a job on one GPU; each doubling of the GPUs adds as much again."""


def restart_s(n_gpus: int) -> float:
    """Return the seconds of work that each start on ``n_gpus`` GPUs adds to a job."""
    return RESTART_S * (1 + math.log2(n_gpus))


@dataclass(slots=True)
class ChronusRun(PublishedRun):
    """Run of Chronus.

    Parameters
    ----------
    starts, stops
        Number of starts, and of stops before its end, by job.
    """

    starts: dict[int, int] = field(default_factory=dict)
    stops: dict[int, int] = field(default_factory=dict)


class Standing(IntEnum):
    """Standing of a job; jobs without a lease run in descending order of it."""

    LATE = -1
    ACCEPTED = 0
    UNACCEPTED = 1


@dataclass(slots=True, eq=False)
class LeaseJob(Job):
    """State of a job in the system.

    Parameters
    ----------
    enlarged_s
        Duration for which leases are planned.
    leases_left
        Leases that it needs after the current one.
    deadline_s
        Deadline by which it is judged.
    plan
        Leases of an accepted job from the next one on; ``None`` until the first lease after its arrival.
    gpus
        Its GPUs; empty while it waits.
    overran
        Whether it was not done after ``enlarged_s``.
    urgency
        Order among jobs of equal standing, descending; 0 or less while a job can be in time, in GPU-seconds.
    """

    enlarged_s: int = field(kw_only=True)
    leases_left: int = field(kw_only=True)
    deadline_s: int = field(kw_only=True)
    progress_s: int = 0
    checked_s: int = 0
    standing: Standing = Standing.ACCEPTED
    plan: Plan | None = None
    gpus: tuple[int, ...] = ()
    overran: bool = False
    urgency: int = 0

    @classmethod
    def arriving(cls, trace: TraceJob, lease_s: int) -> LeaseJob:
        """Return the state of a job on arrival."""
        enlarged_s = int(trace.duration_s * (1 + restart_s(trace.gpus) / lease_s) * MARGIN)
        leases_left = math.ceil(enlarged_s / lease_s)
        return cls(trace, enlarged_s=enlarged_s, leases_left=leases_left, deadline_s=trace.deadline_s)

    @property
    def lease_gpus(self) -> int:
        """GPUs of its planned leases: the number asked for, up to 8 rounded up to a power of two."""
        n_gpus = self.trace.gpus
        return n_gpus if n_gpus > 8 else 1 << (n_gpus - 1).bit_length()

    def request(self, first_lease: int, lease_s: int) -> LeaseRequest:
        """Return its request with leases numbered from ``first_lease`` on."""
        return LeaseRequest(self.lease_gpus, self.leases_left, self.trace.deadline_s // lease_s - first_lease)

    def drop_leases(self, n_leases: int) -> None:
        """Reduce the plan to ``n_leases`` leases by removing the first ones."""
        surplus = self.leases_left - n_leases
        if surplus > 0:
            self.leases_left = n_leases
            if self.plan is not None:
                self.plan[np.flatnonzero(self.plan)[:surplus]] = False

    def review(self, now_s: int) -> None:
        """Update its standing (must it be late?) and its urgency."""
        if self.deadline_s < now_s + self.trace.duration_s - self.progress_s:
            self.standing = Standing.LATE
        remaining_s = self.enlarged_s - self.progress_s
        slack_s = remaining_s if self.standing is Standing.UNACCEPTED else self.deadline_s - now_s - remaining_s
        self.urgency = -slack_s * self.trace.gpus


def chronus(
    jobs: Sequence[TraceJob], servers: Servers, check_s: int, *, lease_s: int = 240, slot_s: int = SLOT_S
) -> ChronusRun:
    """Run Chronus until all jobs are done, as the published program does without a solver.

    The plan of a lease is the previous one, and jobs accepted since are packed into its free GPUs. A job that begins a
    lease after waiting is also credited with the slot before it, as published.

    Parameters
    ----------
    check_s
        Seconds between checks of the running jobs; leases and slots start at such times.

    Returns
    -------
    ChronusRun
        The run, with an event for each lease of a system that is not empty, and for each change between leases.

    Raises
    ------
    InputError
        A job has no deadline or asks for more GPUs than there are, or times are not multiples of ``check_s``.
    """
    if check_s < 2 or check_s % 2 or lease_s % check_s or slot_s % check_s or lease_s <= 30:
        raise InputError(
            "Chronus cannot check its jobs at these times",
            column="slot_s",
            value=check_s,
            expected="an even number of seconds that divides lease_s and slot_s; leases of more than 30 s",
            fix="set slot_s to 60 or 240, with leases of 240 s",
        )
    for job in jobs:
        if job.is_best_effort or job.gpus > servers.n_gpus:
            raise InputError(
                f"Chronus cannot run job {job.index}",
                value=(job.deadline_s, job.gpus),
                expected=f"a deadline, and at most {servers.n_gpus} GPUs",
                fix="give it one, or leave the job out",
            )
    loop = _Chronus([LeaseJob.arriving(job, lease_s) for job in jobs], servers, check_s, lease_s, slot_s)
    loop.run()
    return loop.result


class _Chronus(PublishedLoop[LeaseJob]):
    """Loop of checks."""

    result: ChronusRun

    def __init__(self, jobs: Sequence[LeaseJob], servers: Servers, check_s: int, lease_s: int, slot_s: int) -> None:
        super().__init__(jobs, servers, slot_s)
        self.result = ChronusRun()
        self._n_gpus, self._check_s, self._lease_s = servers.n_gpus, check_s, lease_s
        self._waiting: list[LeaseJob] = []
        self._ran_before: list[LeaseJob] = []
        self._free = list(range(servers.n_gpus))

    def arrival_s(self, trace: TraceJob) -> float:
        """Return the first slot from the submission on."""
        return trace.submit_s + -trace.submit_s % self.slot_s

    def next_event_s(self, now_s: float) -> float:
        """Return the time of the next check."""
        return now_s + self._check_s if self.runnable or self._waiting or len(self.timetable) else math.inf

    def advance(self, now_s: float, elapsed_s: float) -> None:
        """Advance running jobs to now; finished ones leave."""
        self._ran_before = list(self.runnable)
        for job in self._ran_before:
            checked_s = int(now_s) - job.checked_s
            work_s = job.trace.duration_s + self.result.starts[job.trace.index] * restart_s(job.trace.gpus)
            if checked_s + job.progress_s >= work_s:
                job.end_s = job.checked_s + work_s - job.progress_s
                self.end(job, job.trace.gpus, job.end_s <= job.deadline_s)
                self._release(job)
                continue
            job.progress_s += checked_s
            job.checked_s = int(now_s)
            if job.progress_s >= job.enlarged_s:
                job.standing, job.plan, job.overran = Standing.UNACCEPTED, None, True

    def handle(self, event: Event[LeaseJob]) -> None:
        """Handle everything due: a new lease, arrivals, free GPUs."""
        now_s = int(event.time_s)
        is_lease = now_s % self._lease_s == 0
        starting = self._renew(now_s) if is_lease else []
        if now_s % self.slot_s == 0:
            self._admit(event.arrivals, now_s)
            starting += self._fill(now_s)
        if (is_lease and (self.runnable or self._ran_before)) or self.runnable != self._ran_before:
            for job in self.runnable:
                job.overhead_s = restart_s(job.trace.gpus) if job in starting else 0.0
            self.log(float(now_s), self.runnable, {job.trace.index: job.gpus for job in self.runnable})

    def _release(self, job: LeaseJob) -> None:
        self._free = sorted([*self._free, *job.gpus])
        job.gpus = ()

    def _start(self, fitting: list[LeaseJob], now_s: int) -> None:
        """Let waiting jobs run, large ones placed first."""
        for job in sorted(fitting, key=lambda job: -job.trace.gpus):
            n_gpus = job.trace.gpus
            job.gpus, self._free = tuple(self._free[:n_gpus]), self._free[n_gpus:]
        for job in fitting:
            if math.isnan(job.start_s):
                job.start_s = float(now_s)
        self.runnable += fitting
        self._waiting = [job for job in self._waiting if not job.gpus]

    def _renew(self, now_s: int) -> list[LeaseJob]:
        """Begin a lease: all jobs stop, and those with a planned lease run. Return jobs that did not run before."""
        previous = {job.trace.index for job in self.runnable}
        for job in self.runnable:
            self._release(job)
            if job.standing is Standing.ACCEPTED:
                job.drop_leases(math.ceil((job.enlarged_s - job.progress_s) / self._lease_s))
        self._waiting += self.runnable
        self.runnable = []
        accepted_jobs = [job for job in self._waiting if job.standing is Standing.ACCEPTED]
        if accepted_jobs:
            self._plan(accepted_jobs, now_s // self._lease_s)
        holders = [job for job in accepted_jobs if job.plan is not None and job.plan[0]]
        self._start(holders, now_s)
        for job in holders:
            job.leases_left -= 1
        for job in accepted_jobs:
            job.plan = None if job.plan is None else job.plan[1:]
        starting = [job for job in holders if job.trace.index not in previous]
        for job in starting:
            self.result.starts[job.trace.index] += 1
        for job in self._waiting:
            self.result.stops[job.trace.index] += job.trace.index in previous
        return starting

    def _plan(self, accepted_jobs: list[LeaseJob], first_lease: int) -> None:
        """Pack the leases of new jobs, from the current one on, into GPUs that are free in the plans of the others."""
        requests = [job.request(first_lease, self._lease_s) for job in accepted_jobs]
        without_plan = [
            (job, request) for job, request in zip(accepted_jobs, requests, strict=True) if job.plan is None
        ]
        free_gpus = self._planned_free(accepted_jobs, requests)
        plans = pack([request for _, request in without_plan], free_gpus, self._n_gpus)
        for (job, _), plan in zip(without_plan, plans, strict=True):
            job.plan = plan
            if plan is None:  # never seen; the published program would stop here
                job.standing = Standing.UNACCEPTED

    def _planned_free(self, accepted_jobs: list[LeaseJob], requests: list[LeaseRequest]) -> NDArray[np.int64]:
        """Return the GPUs that the plans of accepted jobs leave free, by lease up to the last deadline."""
        free_gpus = np.full(max((request.available for request in requests), default=0), self._n_gpus, dtype=np.int64)
        for job in accepted_jobs:
            if job.plan is not None:
                free_gpus[: job.plan.size] -= job.plan * job.trace.gpus
        return free_gpus

    def _admit(self, arrivals: Sequence[LeaseJob], now_s: int) -> None:
        """Accept or refuse the jobs that have arrived; all of them wait."""
        if not arrivals:
            return
        first_lease = now_s // self._lease_s + 1
        accepted_jobs = [job for job in (*self._waiting, *self.runnable) if job.standing is Standing.ACCEPTED]
        requests = [job.request(first_lease, self._lease_s) for job in accepted_jobs]
        free_gpus = self._planned_free(accepted_jobs, requests)
        requests_so_far = [request for job, request in zip(accepted_jobs, requests, strict=True) if job.plan is None]
        for job in arrivals:
            self.result.starts[job.trace.index] = self.result.stops[job.trace.index] = 0
            request = job.request(first_lease, self._lease_s)
            requests_so_far.append(request)
            if request.needed <= request.available and fits(requests_so_far, free_gpus, self._n_gpus):
                job.deadline_s = job.deadline_s // self._lease_s * self._lease_s
            else:
                requests_so_far[-1] = postpone(requests_so_far, free_gpus, self._n_gpus)
                job.standing = Standing.UNACCEPTED
                self.result.refused.append(job.trace.index)
            self._waiting.append(job)

    def _fill(self, now_s: int) -> list[LeaseJob]:
        """Give free GPUs to jobs that were not accepted, first fit. Return these."""
        for job in self._waiting:
            job.checked_s = now_s
            job.review(now_s)
        # two orders: the remaining one settles later ties
        self._waiting.sort(key=lambda job: (job.standing, job.urgency, job.trace.submit_s), reverse=True)
        if not self._free:
            return []
        self._waiting.sort(key=lambda job: (job.overran, job.standing, job.urgency, -job.trace.submit_s), reverse=True)
        not_accepted = (job for job in self._waiting if job.standing is not Standing.ACCEPTED)
        fitting = first_fit(not_accepted, len(self._free))
        self._start(fitting, now_s)
        for job in fitting:
            job.checked_s = now_s
            self.result.starts[job.trace.index] += 1
        return fitting
