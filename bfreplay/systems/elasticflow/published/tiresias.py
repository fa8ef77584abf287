"""Tiresias as ElasticFlow's published program has it (schedule ``dlas-gpu``): least attained service in three queues.

A job starts in the first queue and sinks to the next when its GPU-seconds reach a limit; it never rises again. Queue by
queue, each job that still fits runs on its requested GPUs; others wait, even if they ran before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bfreplay.systems.elasticflow.published.event_loop import Event, Job, PublishedLoop, overhead_s
from bfreplay.systems.elasticflow.published.program import PublishedRun, Servers, TraceJob

QUEUE_LIMITS_GPU_S = (3250, 7200)
"""GPU-seconds at which a job leaves the first and the second queue; the third has no limit."""


@dataclass(slots=True, eq=False)
class _Job(Job):
    """Job that has arrived and not ended."""

    queue: int = 0
    is_running: bool = False
    served_s: int = 0

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
    return _Tiresias([_Job(job) for job in jobs], servers, slot_s).run()


class _Tiresias(PublishedLoop[_Job]):
    """Loop with queues of jobs."""

    def __init__(self, jobs: Sequence[_Job], servers: Servers, slot_s: int) -> None:
        super().__init__(jobs, servers, slot_s)
        self._next_end = Event[_Job](math.inf)
        self._next_sinking_s = math.inf
        self._queues: tuple[list[_Job], ...] = tuple([] for _ in range(len(QUEUE_LIMITS_GPU_S) + 1))

    def next_event_s(self, now_s: float) -> float:
        """Return the earliest of the next arrivals, the next ends and the next sinking of a job.

        Arrivals and ends at the same time are one event. The program adds the ends to that of the arrivals even if a
        sinking comes before them; these jobs then end with the arrivals.
        """
        arrivals_s, end = super().next_event_s(now_s), self._next_end
        if end.ends and (end.time_s == arrivals_s or end.time_s <= min(arrivals_s, self._next_sinking_s)):
            self.timetable.at(end.time_s).ends = end.ends
        return min(arrivals_s, end.time_s, self._next_sinking_s)

    def advance(self, now_s: float, elapsed_s: float) -> None:
        """Count work since the last event, and let jobs sink by at most one queue."""
        for job in self._running():
            job.served_s = int(job.served_s + max(int(elapsed_s) - job.overhead_s, 0))
            job.overhead_s = 0
            if job.served_s * job.trace.gpus >= job.sinks_at_gpu_s():
                self._queues[job.queue].remove(job)
                job.queue += 1
                self._queues[job.queue].append(job)

    def handle(self, event: Event[_Job]) -> None:
        """Handle ends and arrivals, and choose the jobs that run."""
        for job in event.ends:
            self.end(job, job.trace.gpus, job.trace.is_met(job.end_s))
            self._queues[job.queue].remove(job)
        for job in event.arrivals:
            self.runnable.append(job)
            self._queues[0].append(job)
        restart = self.restarts_all()
        self._choose(event.time_s, restart)
        self.runnable.sort(key=lambda job: -job.trace.gpus)
        self.place_requested(self._running())
        self._plan_next(event.time_s, restart)
        self.log(event.time_s, self._running(), self.placement.gpus())

    def _choose(self, now_s: float, restart: bool) -> None:
        """Run the jobs that fit, queue by queue; a job that starts or resumes pays for it."""
        n_free = self.servers.n_gpus
        for queue in self._queues:
            for job in queue:
                n_gpus = job.trace.gpus
                if n_gpus > n_free:
                    job.is_running = False
                    continue
                n_free -= n_gpus
                if not job.is_running:
                    job.is_running = True
                    job.overhead_s = overhead_s(n_gpus, self.servers.n_gpus, restart)
                    if math.isnan(job.start_s):
                        job.start_s = now_s
            queue.sort(key=lambda job: not job.is_running)

    def _running(self) -> list[_Job]:
        return [job for job in self.runnable if job.is_running]

    def _plan_next(self, now_s: float, restart: bool) -> None:
        """Find the next ends, at least a slot from now, and the next sinking of a job.

        Only the overhead of a restart defers an end; that of a start shows when another event comes in between.
        """
        self._next_end = Event(math.inf)
        for job in self._running():
            remaining_s: float = job.trace.duration_s - job.served_s
            if restart:
                job.overhead_s = overhead_s(job.trace.gpus, self.servers.n_gpus, restart)
                remaining_s += job.overhead_s
            end_s = int(now_s + remaining_s)
            event_s = max(now_s + self.slot_s, end_s)
            if event_s < self._next_end.time_s:
                self._next_end = Event(event_s)
            if event_s == self._next_end.time_s:
                self._next_end.ends.append(job)
                job.end_s = end_s
        sinkings_s = [
            now_s + math.ceil((job.sinks_at_gpu_s() - job.served_s) / job.trace.gpus)
            for job in self._running()
            if job.sinks_at_gpu_s() < math.inf
        ]
        self._next_sinking_s = max(min(sinkings_s, default=math.inf), now_s + self.slot_s)
