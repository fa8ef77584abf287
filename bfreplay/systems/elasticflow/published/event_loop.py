"""Event loop of ElasticFlow's published schedulers: jobs, events moved to the end of a slot, overheads, logs.

Events within a slot of the current one are merged into one at the end of the slot, so that an arrival may be handled up
to a slot after its submission. Only the very last event keeps its time.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from bfreplay.systems.elasticflow.published.placement import BuddyPlacement
from bfreplay.systems.elasticflow.published.program import JobEnd, Moment, PublishedRun, Running, Servers, TraceJob

LARGE_CLUSTER_GPUS = 256
"""Number of GPUs from which the program has larger overheads."""


@dataclass(slots=True, eq=False)
class Job:
    """Job of a scheduler: its row of the trace, start and expected end, and the time for which it stands still."""

    trace: TraceJob
    start_s: float = math.nan
    end_s: float = 0.0
    overhead_s: float = 0.0


AnyT = TypeVar("AnyT")
JobT = TypeVar("JobT", bound=Job)


@dataclass(slots=True, eq=False)
class Event(Generic[AnyT]):
    """Jobs that arrive or end at a time."""

    time_s: float
    arrivals: list[AnyT] = field(default_factory=list)
    ends: list[AnyT] = field(default_factory=list)


class Timetable(Generic[AnyT]):
    """Events by their times.

    Parameters
    ----------
    arrivals
        Submit time and job; jobs of one time are handled in this order.
    slot_s
        Events within a slot of one another are handled together.
    """

    def __init__(self, arrivals: Iterable[tuple[float, AnyT]], slot_s: float) -> None:
        self._slot_s = slot_s
        self._events: dict[float, Event[AnyT]] = {}
        for time_s, job in arrivals:
            self.at(time_s).arrivals.append(job)

    def __len__(self) -> int:
        return len(self._events)

    @property
    def next_s(self) -> float:
        """Time of the first event; inf for none."""
        return min(self._events, default=math.inf)

    def at(self, time_s: float) -> Event[AnyT]:
        """Return the event at a time, a new one if there is none."""
        return self._events.setdefault(time_s, Event(time_s))

    def pop(self, time_s: float) -> Event[AnyT]:
        """Remove and return the event at a time; an empty one if there is none."""
        return self._events.pop(time_s, Event(time_s))

    def add_end(self, job: AnyT, time_s: float) -> None:
        """Add the end of a job."""
        event = self.at(time_s)
        if job not in event.ends:
            event.ends.append(job)

    def move_end(self, job: AnyT, previous_s: float, time_s: float) -> None:
        """Move the end of a job to another time."""
        if previous_s == time_s:
            return
        event = self._events.get(previous_s)
        if event is not None:
            if job in event.ends:
                event.ends.remove(job)
            if not event.ends and not event.arrivals:
                del self._events[previous_s]
        self.add_end(job, time_s)

    def merge_slot(self, now_s: float) -> float:
        """Merge all events within a slot from now into one at its end, and return the time of the next event.

        A single event keeps its time. An event a fraction of a second after the slot counts as within it only if it is
        the first: the program cuts off the fraction of the first only.
        """
        events = sorted(self._events.values(), key=lambda event: event.time_s)
        if len(events) > 1 and int(events[0].time_s - now_s) <= self._slot_s:
            merged_event, *later = events
            merged_event.time_s = now_s + self._slot_s
            while later and later[0].time_s - now_s <= self._slot_s:
                event = later.pop(0)
                merged_event.arrivals.extend(event.arrivals)
                merged_event.ends.extend(event.ends)
            self._events = {event.time_s: event for event in (merged_event, *later)}
        return self.next_s


class PublishedLoop(ABC, Generic[JobT]):
    """Clock of the published program, from the first arrival to the end of the last job.

    Attributes
    ----------
    result
        Log of the run.
    timetable
        Events to come.
    runnable
        Jobs in the system; of Gandiva and Chronus those that have GPUs or a turn. Their order decides ties, as in the
        published program.
    """

    def __init__(self, jobs: Sequence[JobT], servers: Servers, slot_s: float) -> None:
        self.servers = servers
        self.slot_s = slot_s
        by_submission = sorted(jobs, key=lambda job: job.trace.submit_s)
        self.timetable = Timetable(((self.arrival_s(job.trace), job) for job in by_submission), slot_s)
        self.placement = BuddyPlacement(servers)
        self.runnable: list[JobT] = []
        self.result = PublishedRun()
        self._n_events = 0

    def run(self) -> PublishedRun:
        """Run until no event is left."""
        previous_s = now_s = self.timetable.next_s
        while now_s < math.inf:
            self.advance(now_s, now_s - previous_s)
            self.handle(self.timetable.pop(now_s))
            previous_s, now_s = now_s, self.next_event_s(now_s)
        return self.result

    def arrival_s(self, trace: TraceJob) -> float:
        """Return the time of the event at which a job arrives."""
        return trace.submit_s

    @abstractmethod
    def advance(self, now_s: float, elapsed_s: float) -> None:
        """Count the work of jobs since the last event."""

    @abstractmethod
    def handle(self, event: Event[JobT]) -> None:
        """Handle one event: jobs end and arrive, and all get their GPUs."""

    def next_event_s(self, now_s: float) -> float:
        """Return the time of the next event; inf at the end. The default: that of the timetable, at a slot's end."""
        return self.timetable.merge_slot(now_s)

    def end(self, job: JobT, n_gpus: int, is_met: bool | None) -> None:
        """Remove a job, and log its end."""
        self.runnable.remove(job)
        self.result.ends.append(JobEnd(job.trace.index, job.start_s, job.end_s, n_gpus, is_met))

    def place_requested(self, jobs: Iterable[JobT]) -> None:
        """Place these jobs anew, in this order, each on the GPUs that it asks for."""
        self.placement.clear()
        for job in jobs:
            self.placement.place(job.trace.index, job.trace.gpus)

    def log(self, now_s: float, jobs: Iterable[JobT], gpus_of: Mapping[int, tuple[int, ...]]) -> None:
        """Log the allocation from now on: ``gpus_of`` these jobs, by index."""
        running = {job.trace.index: Running(gpus_of[job.trace.index], job.overhead_s) for job in jobs}
        self.result.moments.append(Moment(now_s, running))

    def restarts_all(self) -> bool:
        """Count an event, and return whether all jobs are restarted at it."""
        restarts = is_restart(self._n_events, int(self.slot_s))
        self._n_events += 1
        return restarts


def first_fit(jobs: Iterable[JobT], n_free: int) -> list[JobT]:
    """Return the jobs that run if each, in this order, takes the GPUs that it asks for where they are left."""
    fitting = []
    for job in jobs:
        if job.trace.gpus <= n_free:
            fitting.append(job)
            n_free -= job.trace.gpus
    return fitting


def is_restart(n_events: int, slot_s: int) -> bool:
    """Return whether all jobs are restarted at an event after ``n_events`` others.

    The program compares this number with the *seconds* of a slot: with slots of 240 s, every 240th event is one.
    """
    return n_events > 0 and n_events % slot_s == 0


def overhead_s(n_gpus: int, n_gpus_of_cluster: int, restart: bool, is_cached: bool = False) -> float:
    """Return the seconds for which a job that gets ``n_gpus`` GPUs stands still.

    Parameters
    ----------
    n_gpus
        GPUs of the job, at least one.
    n_gpus_of_cluster
        GPUs of the whole cluster.
    restart
        Whether all jobs are restarted at this event.
    is_cached
        Whether a job had these GPUs since the last restart (``placement.cache_key``).
    """
    is_large = n_gpus_of_cluster >= LARGE_CLUSTER_GPUS
    seconds = 7 if is_large else 2
    if is_cached:
        return seconds
    if restart:
        seconds += 47 if is_large else 27
    return seconds + (math.log(n_gpus, 2) + 1) * 2
