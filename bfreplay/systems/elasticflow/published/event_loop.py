"""Event loop of ElasticFlow's published schedulers, and the GPUs of the jobs of an event.

Events within a slot of the current one are merged into one at the end of the slot, so that an arrival may be handled up
to a slot after its submission. Only the very last event keeps its time.

A block is one server, or the servers of one larger job. Blocks are in classes: a block with free GPUs is in that of the
largest size that divides their number, a full one in that of the job that filled it. Inside a class they are sorted by
used GPUs, then by the order of filing.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from bfreplay.errors import BfreplayError
from bfreplay.systems.elasticflow.published.program import JobEnd, Moment, PublishedRun, Running, Servers, TraceJob

SIZES = (1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 56, 64, 72, 88, 128, 256)
"""Possible numbers of GPUs of a job."""


@dataclass(slots=True, eq=False)
class _Block:
    """Servers taken together, and the GPUs of their jobs in order of placement."""

    servers: list[int]
    capacity: int
    gpus_of: dict[int, int] = field(default_factory=dict)

    def n_gpus_in_use(self) -> int:
        """Return the number of GPUs of its jobs."""
        return sum(self.gpus_of.values())

    def n_gpus_free(self) -> int:
        """Return the number of GPUs of no job."""
        return self.capacity - self.n_gpus_in_use()


class BuddyPlacement:
    """GPUs of every job that runs now.

    The published program clears all at each event and places again, the largest jobs first; then a job always fits if
    enough GPUs are free.
    """

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self.clear()

    def clear(self) -> None:
        """Remove all jobs and dissolve all blocks; free servers are in order again."""
        self._free = list(range(self._servers.n_servers))
        self._classes: dict[int, list[_Block]] = {job_size: [] for job_size in SIZES}
        self._block_of: dict[int, _Block] = {}

    def place(self, job: int, n_gpus: int) -> None:
        """Give ``n_gpus`` GPUs to a job.

        It goes to the least used block of its own class, else to that of the largest class with room, else to free
        servers.

        Raises
        ------
        BfreplayError
            A number that the published program cannot place, or no room.
        """
        check_size(job, n_gpus, self._servers)
        block = self._with_room(n_gpus) or self._open(job, n_gpus)
        block.gpus_of[job] = n_gpus
        self._block_of[job] = block
        n_free = block.n_gpus_free()
        job_size = _class_of(n_free) if n_free else n_gpus
        self._classes[job_size].append(block)
        for changed_class in (job_size, n_gpus):
            self._classes[changed_class].sort(key=_Block.n_gpus_in_use)

    def gpus(self) -> dict[int, tuple[int, ...]]:
        """Return the GPU numbers of each placed job: those of a block are side by side, in order of placement."""
        gpus_of_job: dict[int, tuple[int, ...]] = {}
        for block in dict.fromkeys(self._block_of.values()):
            numbers = self._servers.gpus_of(block.servers)
            first_gpu = 0
            for job, n_gpus in block.gpus_of.items():
                gpus_of_job[job] = tuple(numbers[first_gpu : first_gpu + n_gpus])
                first_gpu += n_gpus
        return {job: gpus_of_job[job] for job in self._block_of}

    def _with_room(self, n_gpus: int) -> _Block | None:
        """Return a block with room for ``n_gpus`` more, removed from its class; ``None`` if there is none."""
        larger = [job_size for job_size in reversed(SIZES) if job_size > n_gpus]
        for job_size in [n_gpus, *larger]:
            blocks = self._classes[job_size]
            if not blocks:
                continue
            block = blocks.pop(0)
            if block.n_gpus_free() >= n_gpus:
                return block
            blocks.append(block)  # the published program moves a block without room behind the others
        return None

    def _open(self, job: int, n_gpus: int) -> _Block:
        """Take the first free servers that ``n_gpus`` GPUs need."""
        per_server = self._servers.gpus_each
        n_servers = -(-n_gpus // per_server)
        if n_servers > len(self._free):
            raise BfreplayError(
                f"job {job} needs {n_servers} free servers for {n_gpus} GPUs, and {len(self._free)} are: "
                "place larger jobs first"
            )
        servers, self._free = self._free[:n_servers], self._free[n_servers:]
        return _Block(servers, n_servers * per_server)


def _class_of(n_free: int) -> int:
    """Return the largest size that divides ``n_free``."""
    return next(job_size for job_size in reversed(SIZES) if n_free % job_size == 0 and job_size <= n_free)


def check_sizes(jobs: Sequence[TraceJob], servers: Servers) -> None:
    """Raise ``BfreplayError`` for a job larger than the cluster: the published program would never end."""
    for job in jobs:
        if job.gpus > servers.n_gpus:
            raise BfreplayError(f"job {job.index} wants {job.gpus} GPUs, and the cluster has {servers.n_gpus}")


def check_size(job: int, n_gpus: int, servers: Servers) -> None:
    """Refuse a number of GPUs at which the published program stops with an error.

    Raises
    ------
    BfreplayError
        With the job and the number.
    """
    if n_gpus not in SIZES or (n_gpus > servers.gpus_each and n_gpus % servers.gpus_each):
        raise BfreplayError(
            f"job {job} cannot have {n_gpus} GPUs: must be one of {SIZES}, and beyond one server of {servers.gpus_each}"
            " a multiple of it"
        )


def cache_key(gpus: tuple[int, ...]) -> tuple[int, int]:
    """Return the key by which the published program recognises the GPUs that a job had before.

    It is the first GPU and the number: the program assumes consecutive GPUs, also where the servers of the job are not.
    The key does not include the job.
    """
    return min(gpus), len(gpus)


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
