"""Progress in the published simulator of ElasticFlow and EDF: jobs, their ends, and costs of placement."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

import numpy as np

from bfreplay.policies.deadlines.plan import Steps
from bfreplay.systems.elasticflow.published.placement import BuddyPlacement, cache_key
from bfreplay.systems.elasticflow.published.program import JobEnd, Moment, PublishedRun, Running, Servers, TraceJob
from bfreplay.systems.elasticflow.published.slots import Event, is_restart, merge_within_slot, overhead_s


class LiveJob:
    """Job of the simulator, with its plan.

    Attributes
    ----------
    left
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
        self.trace = trace
        self.left: float = trace.iterations
        self.gpus = 0
        self.start_s = 0.0
        self.end_s = 0.0
        self.finish_s: float | None = None
        self.overhead_s = 0.0
        self.planned_s = 0.0

    @property
    def deadline_s(self) -> int:
        """Deadline in the trace."""
        return self.trace.deadline_s

    def plan(self, free: Steps, slot_s: float, total: float) -> Steps:
        """Replan it on the free GPUs, of ``total``, and return those that are free then; the default needs none."""
        return free


JobT = TypeVar("JobT", bound=LiveJob)


class Timetable(Generic[JobT]):
    """Events by their times.

    Parameters
    ----------
    arrivals
        Submit time and job; jobs of one time are handled in this order.
    slot_s
        Events within a slot of one another are handled together.
    """

    def __init__(self, arrivals: Iterable[tuple[float, JobT]], slot_s: float) -> None:
        self._slot_s = slot_s
        self._events: dict[float, Event[JobT]] = {}
        for time_s, job in arrivals:
            self.at(time_s).arrivals.append(job)

    def __len__(self) -> int:
        return len(self._events)

    @property
    def next_s(self) -> float:
        """Time of the first event; inf for none."""
        return min(self._events, default=math.inf)

    def at(self, time_s: float) -> Event[JobT]:
        """Return the event at a time, a new one if there is none."""
        return self._events.setdefault(time_s, Event(time_s))

    def pop(self, time_s: float) -> Event[JobT]:
        """Remove and return the event at a time; an empty one if there is none."""
        return self._events.pop(time_s, Event(time_s))

    def add_end(self, job: JobT, time_s: float) -> None:
        """Add the end of a job."""
        event = self.at(time_s)
        if job not in event.ends:
            event.ends.append(job)

    def move_end(self, job: JobT, before_s: float, time_s: float) -> None:
        """Move the end of a job to another time."""
        if before_s == time_s:
            return
        event = self._events.get(before_s)
        if event is not None:
            if job in event.ends:
                event.ends.remove(job)
            if not event.ends and not event.arrivals:
                del self._events[before_s]
        self.add_end(job, time_s)

    def next_after(self, now_s: float) -> float:
        """Merge all events within a slot from now into one at its end, and return the time of the next event.

        The last event of all stays where it is.
        """
        events = list(self._events.values())
        merge_within_slot(events, now_s, self._slot_s)
        self._events = {event.time_s: event for event in events}
        return self.next_s


class PublishedLoop(ABC, Generic[JobT]):
    """Event loop of the published schedulers of elastic jobs; ``admits``: jobs may be declined.

    Attributes
    ----------
    runnable, pending, running
        All jobs in the system; jobs that wait for their first GPUs; and the others. Their order decides ties, as in the
        published program.
    """

    def __init__(self, jobs: Sequence[JobT], servers: Servers, slot_s: int, *, admits: bool = False) -> None:
        self.servers = servers
        self.slot_s = float(slot_s)
        self.admits = admits
        self.timetable = Timetable(((float(job.trace.submit_s), job) for job in jobs), slot_s)
        self.free = Steps(np.zeros(0), np.zeros(0))
        self.runnable: list[JobT] = []
        self.pending: list[JobT] = []
        self.running: list[JobT] = []
        self._placement = BuddyPlacement(servers)
        self._known: set[tuple[int, int]] = set()
        self._n_events = 0
        self._result = PublishedRun()

    @abstractmethod
    def handle(self, now_s: float) -> None:
        """Handle one event: jobs end and arrive, and all get their GPUs."""

    def run(self) -> PublishedRun:
        """Run from the first arrival to the end of the last job."""
        before_s = now_s = self.timetable.next_s
        while now_s < math.inf:
            self._advance(now_s, now_s - before_s)
            self.handle(now_s)
            before_s, now_s = now_s, self.timetable.next_after(now_s)
        return self._result

    def _advance(self, now_s: float, dt_s: float) -> None:
        """Advance jobs by their iterations since the last event."""
        for job in self.runnable:
            if not job.gpus:
                continue
            rate = job.trace.rates[job.gpus]
            until_s = job.end_s if job.finish_s is None else job.finish_s
            run_s = dt_s - max(now_s - until_s, 0.0)
            run_s = 0.0 if run_s < job.overhead_s else run_s - job.overhead_s
            done = run_s * rate
            if job.left <= done and job.end_s > now_s:  # done before the event at which it was expected to end
                done = (job.end_s - now_s + dt_s) * rate
                self.timetable.move_end(job, job.end_s, now_s)
                job.end_s = now_s - dt_s + math.ceil(job.left / rate)
            job.left -= done
            job.overhead_s = 0.0

    def plan_all(self, jobs: Sequence[JobT], now_s: float) -> bool:
        """Plan jobs in the order of their deadlines; return whether all will be in time."""
        total = float(self.servers.n_gpus)
        self.free = Steps(np.array([float(now_s)]), np.array([total]))
        for job in sorted(jobs, key=lambda job: job.deadline_s):
            self.free = job.plan(self.free, self.slot_s, total)
        return all(job.planned_s <= job.deadline_s for job in jobs)

    def wait(self, job: JobT) -> None:
        """Add a job that waits for its first GPUs."""
        self.pending.append(job)
        self.runnable.append(job)

    def start(self, job: JobT, now_s: float) -> None:
        """Give a waiting job its first GPUs."""
        job.start_s = now_s
        self.pending.remove(job)
        self.running.append(job)

    def refuse(self, job: JobT) -> None:
        """Decline a job on arrival."""
        self._result.refused.append(job.trace.index)

    def end(self, job: JobT, judged_s: float) -> None:
        """End a job; it is late if ``judged_s`` is after its deadline."""
        self.running.remove(job)
        self.runnable.remove(job)
        trace = job.trace
        is_met = None if trace.is_best_effort else judged_s <= trace.deadline_s
        self._result.ends.append(JobEnd(trace.index, job.start_s, job.end_s, job.gpus, is_met))

    def release(self) -> None:
        """Take the GPUs of all jobs away."""
        self._placement.clear()
        for job in self.runnable:
            job.gpus = 0

    def place(self, job: JobT, gpus: int) -> None:
        """Give a job GPUs."""
        self._placement.place(job.trace.index, gpus)
        job.gpus = gpus

    def note(self, now_s: float, *, charges: bool) -> None:
        """Log the allocation from now on, and charge every running job if the scheduler ``charges``."""
        gpus_of = self._placement.gpus()
        placed = [job for job in self.runnable if job.gpus]
        keys = {job: cache_key(gpus_of[job.trace.index]) for job in placed}
        restarts = is_restart(self._n_events, int(self.slot_s))
        if len(self.timetable):
            self._n_events += 1
            for job in placed if charges else ():
                job.overhead_s = overhead_s(job.gpus, self.servers.n_gpus, restarts, keys[job] in self._known)
                before_s = job.end_s
                job.end_s += job.overhead_s
                self.timetable.move_end(job, before_s, job.end_s)
        self._known = set() if restarts else self._known | set(keys.values())
        running = {job.trace.index: Running(gpus_of[job.trace.index], job.overhead_s) for job in placed}
        self._result.moments.append(Moment(now_s, running))
