"""Gandiva as ElasticFlow's published program has it (scheme ``gandiva``): jobs of a size share servers and take turns.

Servers are taken in sets; a set serves jobs of one size, and as many of them at a time as fit. Where a set has more,
the first ones run, and change places with the others at events on a full minute. At each event the sets are divided
again among the sizes, in proportion to the demand of each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from bfreplay.systems.elasticflow.published.event_loop import (
    SIZES,
    Event,
    Job,
    PublishedLoop,
    check_size,
    check_sizes,
    overhead_s,
)
from bfreplay.systems.elasticflow.published.program import PublishedRun, Servers, TraceJob

TURN_S = 60
"""Jobs of a set change places at events whose time is a multiple of this."""


@dataclass(slots=True, eq=False)
class _Job(Job):
    """Job that has arrived."""

    served_s: float = 0


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
        self.of_size: dict[int, list[_ServerSet]] = {job_size: [] for job_size in SIZES}

    def place(self, job: _Job) -> bool:
        """Put a job into a set of its size.

        That is the first set if a seat stays empty even then (the comparison is strict, so the last seat is never
        used), else a new set, else a full set. Return ``False`` without a set and with too few servers.
        """
        job_size = job.trace.gpus
        sets = self.of_size[job_size]
        if sets:
            first_set = sets.pop(0)
            sets.append(first_set)  # a job without a seat stays behind the others
            if first_set.load + 1 < first_set.capacity:
                return self._put(job, first_set, sets)
        new_sets = self._open(job_size)
        if new_sets is not None:
            sets.append(new_sets)
            return self._put(job, new_sets, sets)
        if not sets:
            return False
        sets.append(sets.pop(0))
        return self._put(job, sets[-1], sets)

    def rebalance(self) -> None:
        """Give each size the GPUs that it asks for, at most its share of the cluster, in whole sets."""
        demand = {
            job_size: job_size * sum(len(per_server.jobs) for per_server in sets)
            for job_size, sets in self.of_size.items()
        }
        per_server = self._servers.gpus_each
        supply = {
            job_size: per_server * sum(len(server_set.servers) for server_set in sets)
            for job_size, sets in self.of_size.items()
        }
        total_demand = sum(demand.values())
        for job_size, sets in self.of_size.items():
            if demand[job_size] == 0:
                continue
            share = int(demand[job_size] / total_demand * self._servers.n_gpus)
            difference = min(share, demand[job_size]) - supply[job_size]
            n_sets = -(-abs(difference) // job_size)
            if difference > 0:
                self._expand(job_size, sets, n_sets)
            elif difference < 0:  # dissolve the least loaded sets, but not the last one
                jobs: list[_Job] = []
                for _ in range(min(n_sets, len(sets) - 1)):
                    freed_set = sets.pop(0)
                    jobs.extend(freed_set.jobs)
                    self._free.extend(freed_set.servers)
                self._deal(jobs, sets)

    def dissolve_empty(self) -> bool:
        """Free the servers of sets without a job; return whether there are any."""
        empty = [(sets, server_set) for sets in self.of_size.values() for server_set in sets if not server_set.jobs]
        for sets, server_set in empty:
            sets.remove(server_set)
            self._free.extend(server_set.servers)
        return bool(empty)

    def gpus(self) -> dict[int, tuple[int, ...]]:
        """Return the GPU numbers of each job whose turn it is; jobs of a set are side by side."""
        gpus_of_job: dict[int, tuple[int, ...]] = {}
        for job_size, sets in self.of_size.items():
            for server_set in sets:
                numbers = self._servers.gpus_of(server_set.servers)
                for seat, job in enumerate(server_set.running()):
                    gpus_of_job[job.trace.index] = tuple(numbers[seat * job_size : (seat + 1) * job_size])
        return gpus_of_job

    def _put(self, job: _Job, receiving_set: _ServerSet, sets: list[_ServerSet]) -> bool:
        receiving_set.jobs.append(job)
        receiving_set.load += 1
        sets.sort(key=lambda server_set: server_set.load)
        return True

    def _open(self, job_size: int) -> _ServerSet | None:
        """Return a new set of the first free servers; ``None`` if there are too few."""
        per_server = self._servers.gpus_each
        n_servers = -(-job_size // per_server)
        if n_servers > len(self._free):
            return None
        servers, self._free = self._free[:n_servers], self._free[n_servers:]
        return _ServerSet(servers, n_servers * per_server // job_size)

    def _expand(self, job_size: int, sets: list[_ServerSet], n_sets: int) -> None:
        """Open up to ``n_sets`` sets, and redistribute all jobs of this size if the program does.

        It does if the last set could not be opened, or has several servers: otherwise its inner loop leaves the
        variable of the outer one at 0. The new sets then stay empty and are dissolved at once.
        """
        new_sets = [self._open(job_size) for _ in range(n_sets)]
        last_set = new_sets[-1]
        sets.extend(server_set for server_set in new_sets if server_set is not None)
        if last_set is not None and len(last_set.servers) == 1:
            return
        jobs = [job for server_set in sets for job in server_set.jobs]
        for server_set in sets:
            server_set.jobs.clear()
            server_set.load = 0
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
    return _Gandiva([_Job(job) for job in jobs], servers, slot_s).run()


class _Gandiva(PublishedLoop[_Job]):
    """Loop with sets of servers."""

    def __init__(self, jobs: Sequence[_Job], servers: Servers, slot_s: int) -> None:
        super().__init__(jobs, servers, slot_s)
        self._sets = _ServerSets(servers)
        self._pending: list[_Job] = []
        self._delayed: list[_Job] = []

    def next_event_s(self, now_s: float) -> float:
        """Return the time of the next arrivals; without any, the end of the slot."""
        if len(self.timetable):
            return super().next_event_s(now_s)
        return now_s + self.slot_s if self._pending or self.runnable else math.inf

    def advance(self, now_s: float, elapsed_s: float) -> None:
        """Divide the servers, then count work since the last event, and let jobs of full sets change places.

        An overhead is kept until the job has its turn.
        """
        self._sets.rebalance()
        for sets in self._sets.of_size.values():
            for server_set in sets:
                active_jobs = server_set.running()
                for job in active_jobs:
                    job.served_s = job.served_s + max(int(elapsed_s) - job.overhead_s, 0)
                    job.overhead_s = 0.0
                if int(now_s % TURN_S) == 0 and len(server_set.jobs) > server_set.capacity:
                    server_set.jobs = server_set.jobs[server_set.capacity :] + active_jobs
                for job in active_jobs:
                    if job.served_s >= job.trace.duration_s:
                        server_set.jobs.remove(job)
                        job.end_s = now_s - (job.served_s - job.trace.duration_s)
                        self.end(job, job.trace.gpus, job.trace.is_met(job.end_s))

    def handle(self, event: Event[_Job]) -> None:
        """Place jobs, and charge overheads to all that have started, though only while arrivals remain."""
        now_s = event.time_s
        has_free_servers = self._sets.dissolve_empty()
        for job in self._delayed:
            job.overhead_s = 0.0
        for job in event.arrivals:
            if not self._start(job, now_s):
                self._pending.append(job)
                self._delayed.append(job)
        if has_free_servers:
            # the program removes a job from the list over which it iterates, and so skips the next one
            position = 0
            while position < len(self._pending):
                if self._start(self._pending[position], now_s):
                    self._pending.pop(position)
                position += 1
        gpus_of = self._sets.gpus()
        if len(self.timetable):
            restart = self.restarts_all()
            for job in self.runnable:
                job.overhead_s = overhead_s(job.trace.gpus, self.servers.n_gpus, restart)
        self.log(now_s, (job for job in self.runnable if job.trace.index in gpus_of), gpus_of)

    def _start(self, job: _Job, now_s: float) -> bool:
        """Start a job if a set takes it; return whether one does."""
        is_placed = self._sets.place(job)
        if is_placed:
            job.start_s = now_s
            self.runnable.append(job)
        return is_placed
