"""Gandiva as ElasticFlow's published program has it (scheme ``gandiva``): jobs of a size share servers and take turns.

Servers are taken in sets; a set serves jobs of one size, and as many of them at a time as fit. Where a set has more,
the first ones run, and change places with the others at events on a full minute. At each event the sets are divided
again among the sizes, in proportion to the demand of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bfreplay.systems.elasticflow.published.placement import SIZES, check_size, check_sizes
from bfreplay.systems.elasticflow.published.program import Moment, PublishedRun, Running, Servers, TraceJob
from bfreplay.systems.elasticflow.published.slots import arrival_events, is_restart, merge_within_slot, overhead_s

TURN_S = 60
"""Jobs of a set change places at events whose time is a multiple of this."""


@dataclass(slots=True, eq=False)
class _Job:
    """Job that has arrived."""

    trace: TraceJob
    served_s: float = 0
    overhead_s: float = 0.0
    start_s: float = 0.0


@dataclass(slots=True, eq=False)
class _ServerSet:
    """Servers for jobs of one size. ``load`` counts all jobs added so far; it does not fall when they end."""

    servers: list[int]
    capacity: int
    load: int = 0
    jobs: list[_Job] = field(default_factory=list)

    def running(self) -> list[_Job]:
        """Return the jobs whose turn it is."""
        return self.jobs[: self.capacity]


class _ServerSets:
    """All sets, by the size of their jobs, and the servers that are in none."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._free = list(range(servers.n_servers))
        self.of_size: dict[int, list[_ServerSet]] = {size: [] for size in SIZES}

    def place(self, job: _Job) -> bool:
        """Put a job into a set of its size.

        That is the first set if a seat stays empty even then (the comparison is strict, so the last seat is never
        used), else a new set, else a full set. Return ``False`` without a set and with too few servers.
        """
        size = job.trace.gpus
        sets = self.of_size[size]
        if sets:
            first = sets.pop(0)
            sets.append(first)  # a job without a seat stays behind the others
            if first.load + 1 < first.capacity:
                return self._put(job, first, sets)
        opened = self._open(size)
        if opened is not None:
            sets.append(opened)
            return self._put(job, opened, sets)
        if not sets:
            return False
        sets.append(sets.pop(0))
        return self._put(job, sets[-1], sets)

    def rebalance(self) -> None:
        """Give each size the GPUs that it asks for, at most its share of the cluster, in whole sets."""
        asked = {size: size * sum(len(each.jobs) for each in sets) for size, sets in self.of_size.items()}
        each = self._servers.gpus_each
        held = {size: each * sum(len(one.servers) for one in sets) for size, sets in self.of_size.items()}
        total = sum(asked.values())
        for size, sets in self.of_size.items():
            if asked[size] == 0:
                continue
            share = int(asked[size] / total * self._servers.n_gpus)
            difference = min(share, asked[size]) - held[size]
            count = -(-abs(difference) // size)
            if difference > 0:
                self._expand(size, sets, count)
            elif difference < 0:
                self._shrink(sets, count)

    def dissolve_empty(self) -> bool:
        """Free the servers of sets without a job; return whether there are any."""
        empty = [(sets, one) for sets in self.of_size.values() for one in sets if not one.jobs]
        for sets, one in empty:
            sets.remove(one)
            self._free.extend(one.servers)
        return bool(empty)

    def gpus(self) -> dict[int, tuple[int, ...]]:
        """Return the GPU numbers of each job whose turn it is; jobs of a set are side by side."""
        each = self._servers.gpus_each
        found: dict[int, tuple[int, ...]] = {}
        for size, sets in self.of_size.items():
            for one in sets:
                numbers = [server * each + k for server in sorted(one.servers) for k in range(each)]
                for place, job in enumerate(one.running()):
                    found[job.trace.index] = tuple(numbers[place * size : (place + 1) * size])
        return found

    def _put(self, job: _Job, chosen: _ServerSet, sets: list[_ServerSet]) -> bool:
        chosen.jobs.append(job)
        chosen.load += 1
        sets.sort(key=lambda one: one.load)
        return True

    def _open(self, size: int) -> _ServerSet | None:
        """Return a new set of the first free servers; ``None`` if there are too few."""
        each = self._servers.gpus_each
        count = -(-size // each)
        if count > len(self._free):
            return None
        servers, self._free = self._free[:count], self._free[count:]
        return _ServerSet(servers, count * each // size)

    def _expand(self, size: int, sets: list[_ServerSet], count: int) -> None:
        """Open up to ``count`` sets, and redistribute all jobs of this size if the program does.

        It does if the last set could not be opened, or has several servers: otherwise its inner loop leaves the
        variable of the outer one at 0. The new sets then stay empty and are dissolved at once.
        """
        opened = [self._open(size) for _ in range(count)]
        last = opened[-1]
        sets.extend(one for one in opened if one is not None)
        if last is not None and len(last.servers) == 1:
            return
        jobs = [job for one in sets for job in one.jobs]
        for one in sets:
            one.jobs.clear()
            one.load = 0
        self._deal(jobs, sets)

    def _shrink(self, sets: list[_ServerSet], count: int) -> None:
        """Dissolve the ``count`` least loaded sets, but not the last one, and redistribute their jobs."""
        jobs: list[_Job] = []
        for _ in range(min(count, len(sets) - 1)):
            dissolved = sets.pop(0)
            jobs.extend(dissolved.jobs)
            self._free.extend(dissolved.servers)
        self._deal(jobs, sets)

    def _deal(self, jobs: list[_Job], sets: list[_ServerSet]) -> None:
        for job in jobs:
            self._put(job, sets[0], sets)


def gandiva(jobs: Sequence[TraceJob], servers: Servers, slot_s: int) -> PublishedRun:
    """Run the published Gandiva.

    Parameters
    ----------
    jobs
        In the order of the file.
    servers
        The cluster.
    slot_s
        Seconds of a slot. After the last arrival, every slot is an event.

    Raises
    ------
    BfreplayError
        A job larger than the cluster: the published program would never end.
    """
    for job in jobs:
        check_size(job.index, job.gpus, servers)
    check_sizes(jobs, servers)
    loop = _Gandiva(jobs, servers, slot_s)
    while loop.is_unfinished():
        loop.step()
    return loop.run


class _Gandiva:
    """State of the loop."""

    def __init__(self, jobs: Sequence[TraceJob], servers: Servers, slot_s: int) -> None:
        self.run = PublishedRun()
        self._traces = jobs
        self._n_gpus = servers.n_gpus
        self._slot_s = slot_s
        self._sets = _ServerSets(servers)
        self._arrivals = arrival_events(jobs)
        self._now_s = self._arrivals[0].time_s if self._arrivals else 0.0
        self._span_s = 0.0
        self._running: list[_Job] = []
        self._pending: list[_Job] = []
        self._waited: list[_Job] = []
        self._n_events = 0

    def is_unfinished(self) -> bool:
        """Return whether jobs have yet to arrive, to start or to end."""
        return bool(self._arrivals or self._pending or self._running)

    def step(self) -> None:
        """Handle the current event, and move to the next."""
        now_s = self._now_s
        self._sets.rebalance()
        self._execute()
        has_free_servers = self._sets.dissolve_empty()
        for job in self._waited:
            job.overhead_s = 0.0
        if self._arrivals and self._arrivals[0].time_s == now_s:
            for index in self._arrivals.pop(0).arrivals:
                self._arrive(_Job(self._traces[index]))
        if has_free_servers:
            self._start_pending()
        gpus = self._sets.gpus()
        self._go_on()
        running = {job.trace.index: job for job in self._running if job.trace.index in gpus}
        self.run.moments.append(
            Moment(now_s, {index: Running(gpus[index], job.overhead_s) for index, job in running.items()})
        )

    def _execute(self) -> None:
        """Count work since the last event, end finished jobs, and let jobs of full sets change places.

        An overhead is kept until the job has its turn.
        """
        for sets in self._sets.of_size.values():
            for one in sets:
                served = one.running()
                for job in served:
                    job.served_s = job.served_s + max(self._span_s - job.overhead_s, 0)
                    job.overhead_s = 0.0
                if int(self._now_s % TURN_S) == 0 and len(one.jobs) > one.capacity:
                    one.jobs = one.jobs[one.capacity :] + served
                for job in served:
                    if job.served_s >= job.trace.duration_s:
                        one.jobs.remove(job)
                        self._end(job)

    def _end(self, job: _Job) -> None:
        self.run.add_end(job.trace, job.start_s, self._now_s - (job.served_s - job.trace.duration_s))
        self._running.remove(job)

    def _arrive(self, job: _Job) -> None:
        if self._sets.place(job):
            self._start(job)
        else:
            self._pending.append(job)
            self._waited.append(job)

    def _start(self, job: _Job) -> None:
        job.start_s = self._now_s
        self._running.append(job)

    def _start_pending(self) -> None:
        """Try to start waiting jobs, in order.

        The program removes a job from the list over which it iterates, and so skips the next one.
        """
        place = 0
        while place < len(self._pending):
            if self._sets.place(self._pending[place]):
                self._start(self._pending.pop(place))
            place += 1

    def _go_on(self) -> None:
        """Find the next event; charge overheads to all jobs that have started, though only while arrivals remain."""
        if not self._arrivals:
            self._now_s += self._slot_s
            self._span_s = self._slot_s
            return
        restart = is_restart(self._n_events, self._slot_s)
        self._n_events += 1
        for job in self._running:
            job.overhead_s = overhead_s(job.trace.gpus, self._n_gpus, restart)
        merge_within_slot(self._arrivals, self._now_s, self._slot_s)
        self._span_s = int(self._arrivals[0].time_s - self._now_s)
        self._now_s = self._arrivals[0].time_s
