"""Tiresias as ElasticFlow's published program has it (schedule ``dlas-gpu``): least attained service in three queues.

A job starts in the first queue and sinks to the next when its GPU-seconds reach a limit; it never rises again. Queue by
queue, each job that still fits runs on its requested GPUs; others wait, even if they ran before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bfreplay.systems.elasticflow.published.placement import BuddyPlacement
from bfreplay.systems.elasticflow.published.program import Moment, PublishedRun, Running, Servers, TraceJob
from bfreplay.systems.elasticflow.published.slots import (
    Event,
    arrival_events,
    is_restart,
    merge_within_slot,
    overhead_s,
)

QUEUE_LIMITS_GPU_S = (3250, 7200)
"""GPU-seconds at which a job leaves the first and the second queue; the third has no limit."""


@dataclass(slots=True, eq=False)
class _Job:
    """Job that has arrived and not ended."""

    trace: TraceJob
    checked_s: float
    queue: int = 0
    is_running: bool = False
    served_s: int = 0
    overhead_s: float = 0.0
    start_s: float | None = None
    end_s: float = 0.0

    def sinks_at_gpu_s(self) -> float:
        """Return the GPU-seconds at which it leaves its queue."""
        return QUEUE_LIMITS_GPU_S[self.queue] if self.queue < len(QUEUE_LIMITS_GPU_S) else math.inf


def tiresias(jobs: Sequence[TraceJob], servers: Servers, slot_s: int) -> PublishedRun:
    """Run the published Tiresias.

    Parameters
    ----------
    jobs
        In the order of the file.
    servers
        The cluster. Jobs larger than it never run.
    slot_s
        Seconds of a slot. Jobs end no sooner than a slot after the current event, but the logged and judged end is that
        of their work.
    """
    loop = _Tiresias(jobs, servers, slot_s)
    while loop.step():
        pass
    return loop.run


class _Tiresias:
    """State of the loop."""

    def __init__(self, jobs: Sequence[TraceJob], servers: Servers, slot_s: int) -> None:
        self.run = PublishedRun()
        self._traces = jobs
        self._n_gpus = servers.n_gpus
        self._slot_s = slot_s
        self._placement = BuddyPlacement(servers)
        self._arrivals = arrival_events(jobs)
        self._next_end: Event[int] | None = None
        self._next_sinking_s = math.inf
        self._jobs: dict[int, _Job] = {}
        self._runnable: list[_Job] = []
        self._queues: tuple[list[_Job], ...] = tuple([] for _ in range(len(QUEUE_LIMITS_GPU_S) + 1))
        self._n_events = 0

    def step(self) -> bool:
        """Handle the next event; return ``False`` if there is none."""
        event = self._next_event()
        if event is None:
            return False
        now_s = event.time_s
        self._end(event.ends)
        if self._arrivals and event is self._arrivals[0]:
            self._arrivals.pop(0)
            self._arrive(event.arrivals)
        self._serve_until(now_s)
        restart = is_restart(self._n_events, self._slot_s)
        self._n_events += 1
        self._choose(now_s, restart)
        self._place()
        self._plan_next(now_s, restart)
        self._log(now_s)
        merge_within_slot(self._arrivals, now_s, self._slot_s)
        return True

    def _next_event(self) -> Event[int] | None:
        """Return the earliest of the next arrivals, the next ends and the next sinking of a job.

        Arrivals and ends at the same time are one event. The program adds the ends to that of the arrivals even if a
        sinking comes before them; these jobs then end with the arrivals.
        """
        arrivals = self._arrivals[0] if self._arrivals else None
        ends = self._next_end
        if arrivals and ends and arrivals.time_s == ends.time_s:
            arrivals.ends = ends.ends
            ends = None
        candidates = [event for event in (arrivals, ends) if event]
        if not candidates:
            return None
        event = min(candidates, key=lambda event: event.time_s)
        return event if event.time_s <= self._next_sinking_s else Event(self._next_sinking_s)

    def _end(self, indices: list[int]) -> None:
        for job in [self._jobs[index] for index in indices]:
            assert job.start_s is not None
            self.run.add_end(job.trace, job.start_s, job.end_s)
            self._runnable.remove(job)
            self._queues[job.queue].remove(job)

    def _arrive(self, indices: list[int]) -> None:
        for index in indices:
            job = self._jobs[index] = _Job(self._traces[index], self._traces[index].submit_s)
            self._runnable.append(job)
            self._queues[0].append(job)

    def _serve_until(self, now_s: float) -> None:
        """Count work since the last event, and let jobs sink by at most one queue."""
        for job in self._runnable:
            if job.is_running:
                job.served_s = int(job.served_s + max(int(now_s - job.checked_s) - job.overhead_s, 0))
                job.overhead_s = 0
                if job.served_s * job.trace.gpus >= job.sinks_at_gpu_s():
                    self._queues[job.queue].remove(job)
                    job.queue += 1
                    self._queues[job.queue].append(job)
            job.checked_s = now_s

    def _choose(self, now_s: float, restart: bool) -> None:
        """Run the jobs that fit, queue by queue; a job that starts or resumes pays for it."""
        free = self._n_gpus
        for queue in self._queues:
            for job in queue:
                gpus = job.trace.gpus
                if gpus > free:
                    job.is_running = False
                    continue
                free -= gpus
                if not job.is_running:
                    job.is_running = True
                    job.overhead_s = overhead_s(gpus, self._n_gpus, restart)
                    if job.start_s is None:
                        job.start_s = now_s
            queue.sort(key=lambda job: not job.is_running)

    def _place(self) -> None:
        self._placement.clear()
        self._runnable.sort(key=lambda job: -job.trace.gpus)
        for job in self._running():
            self._placement.place(job.trace.index, job.trace.gpus)

    def _running(self) -> list[_Job]:
        return [job for job in self._runnable if job.is_running]

    def _plan_next(self, now_s: float, restart: bool) -> None:
        """Find the next ends, at least a slot from now, and the next sinking of a job.

        Only the overhead of a restart defers an end; that of a start shows when another event comes in between.
        """
        self._next_end = None
        for job in self._running():
            left_s: float = job.trace.duration_s - job.served_s
            if restart:
                job.overhead_s = overhead_s(job.trace.gpus, self._n_gpus, restart)
                left_s += job.overhead_s
            end_s = int(now_s + left_s)
            seen_s = max(now_s + self._slot_s, end_s)
            if self._next_end is None or seen_s < self._next_end.time_s:
                self._next_end = Event(seen_s)
            if seen_s == self._next_end.time_s:
                self._next_end.ends.append(job.trace.index)
                job.end_s = end_s
        sinkings_s = [
            now_s + math.ceil((job.sinks_at_gpu_s() - job.served_s) / job.trace.gpus)
            for job in self._running()
            if job.sinks_at_gpu_s() < math.inf
        ]
        self._next_sinking_s = max(min(sinkings_s, default=math.inf), now_s + self._slot_s)

    def _log(self, now_s: float) -> None:
        gpus = self._placement.gpus()
        running = {job.trace.index: Running(gpus[job.trace.index], job.overhead_s) for job in self._running()}
        self.run.moments.append(Moment(now_s, running))
