"""Themis as ElasticFlow's published program has it: in every slot, the GPUs go to the jobs with the largest fractions.

Fractions of time are those of ``finish_time_fairness``. Progress in isolation is measured as in the program: by share
of time, without throughput.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bfreplay.errors import BfreplayError
from bfreplay.systems.elasticflow.published.finish_time_fairness import Floats, fair_fractions, missing_solver
from bfreplay.systems.elasticflow.published.placement import BuddyPlacement, check_sizes
from bfreplay.systems.elasticflow.published.program import Moment, PublishedRun, Running, Servers, TraceJob
from bfreplay.systems.elasticflow.published.slots import Event, arrival_events, merge_within_slot

NO_START_S = sys.maxsize
"""Start in the log of every job: the program never sets one."""


@dataclass(slots=True, eq=False)
class _Job:
    """Job that has arrived and not ended."""

    trace: TraceJob
    left_s: float
    iterations_left: float
    isolated: float = 0.0
    last_iterations_left: float | None = None
    last_share: float = 1.0
    end_s: float = 0.0

    @property
    def rate(self) -> float:
        """Iterations per second on the requested GPUs."""
        return self.trace.rates[self.trace.gpus]

    def add_isolated_time(self, share: float) -> None:
        """Count the iterations since the last slot as time in isolation at the share then."""
        if self.last_iterations_left is not None:
            self.isolated += (self.last_iterations_left - self.iterations_left) / self.last_share
        self.last_iterations_left = self.iterations_left
        self.last_share = share

    def run(self, now_s: float, slot_s: int) -> bool:
        """Run for a slot; return whether the job ends in it, by its duration or by its iterations."""
        end_s = now_s + self.left_s
        self.left_s = max(0, self.left_s - slot_s)
        self.iterations_left -= slot_s * self.rate
        if self.iterations_left <= 0:
            self.left_s = 0
            end_s = now_s + slot_s
        if end_s > now_s + slot_s:
            return False
        self.end_s = end_s
        return True


def themis(jobs: Sequence[TraceJob], servers: Servers, slot_s: int, *, only_contended: bool = True) -> PublishedRun:
    """Run the published Themis.

    No job is ever charged an overhead, and none has a start (``NO_START_S``).

    Parameters
    ----------
    jobs, servers, slot_s
        As for ``gandiva``; each slot is an event.
    only_contended
        Compute fractions only if the jobs do not all fit at once, which is several times as fast. The same jobs run and
        end at the same times, perhaps on other GPUs than in the published program.

    Raises
    ------
    BfreplayError
        As ``check_sizes``, or ECOS is not installed.
    """
    check_sizes(jobs, servers)
    if problem := missing_solver():
        raise BfreplayError(f"the published Themis needs its solver: {problem}")
    loop = _Themis(jobs, servers, slot_s, only_contended)
    while loop.is_unfinished():
        loop.step()
    return loop.run


class _Themis:
    """State of the loop."""

    def __init__(self, jobs: Sequence[TraceJob], servers: Servers, slot_s: int, only_contended: bool) -> None:
        self.run = PublishedRun()
        self._only_contended = only_contended
        self._traces = jobs
        self._n_gpus = servers.n_gpus
        self._slot_s = slot_s
        self._placement = BuddyPlacement(servers)
        self._events = arrival_events(jobs)
        self._now_s = self._events[0].time_s if self._events else 0.0
        self._last_event_s = self._now_s
        self._runnable: list[_Job] = []

    def is_unfinished(self) -> bool:
        """Return whether jobs have yet to arrive or to end."""
        return bool(self._events or self._runnable)

    def step(self) -> None:
        """Handle a slot: ends and arrivals, then the choice of jobs, then their work."""
        if self._events and self._events[0].time_s == self._now_s:
            self._last_event_s = self._now_s
            self._handle(self._events.pop(0))
        chosen = self._choose() if self._runnable else []
        self._place(chosen)
        self._work(chosen)
        self._now_s += self._slot_s

    def _handle(self, event: Event[int]) -> None:
        for job in [job for index in event.ends for job in self._runnable if job.trace.index == index]:
            self.run.add_end(job.trace, NO_START_S, job.end_s)
            self._runnable.remove(job)
        for index in event.arrivals:
            trace = self._traces[index]
            self._runnable.append(_Job(trace, trace.duration_s, trace.iterations))

    def _fractions(self) -> Floats:
        """Return the fractions of time of all jobs; the elapsed time is that at the last event, not now."""
        jobs = self._runnable
        equal_gpus = math.ceil(self._n_gpus / len(jobs))
        shares = [min(equal_gpus / job.trace.gpus, 1.0) for job in jobs]
        for job, share in zip(jobs, shares, strict=True):
            job.add_isolated_time(share)
        gpus = np.array([job.trace.gpus for job in jobs], dtype=float)
        if self._only_contended and gpus.sum() <= self._n_gpus:
            return np.zeros(len(jobs))
        return fair_fractions(
            elapsed_s=np.array([self._last_event_s - job.trace.submit_s for job in jobs], dtype=float),
            iterations=np.array([job.iterations_left for job in jobs]),
            rates=np.array([job.rate for job in jobs]),
            isolated=np.array(
                [job.isolated + job.iterations_left / each for job, each in zip(jobs, shares, strict=True)]
            ),
            gpus=gpus,
            n_gpus=self._n_gpus,
        )

    def _choose(self) -> list[_Job]:
        """Sort jobs by fraction, the largest first, which also breaks later ties; choose the jobs that fit."""
        self._runnable = [self._runnable[k] for k in np.argsort(-self._fractions(), kind="stable")]
        chosen: list[_Job] = []
        free = self._n_gpus
        for job in self._runnable:
            if job.trace.gpus <= free:
                chosen.append(job)
                free -= job.trace.gpus
        return sorted(chosen, key=lambda job: -job.trace.gpus)

    def _place(self, chosen: list[_Job]) -> None:
        self._placement.clear()
        for job in chosen:
            self._placement.place(job.trace.index, job.trace.gpus)
        self.run.moments.append(
            Moment(self._now_s, {index: Running(gpus) for index, gpus in self._placement.gpus().items()})
        )

    def _work(self, chosen: list[_Job]) -> None:
        """Run the jobs for a slot, and add their ends; all events of this slot are at its end."""
        next_s = self._now_s + self._slot_s
        merge_within_slot(self._events, self._now_s, self._slot_s)
        if self._events and self._events[0].time_s < next_s:
            self._events[0].time_s = next_s
        runs = set(chosen)
        ends = [job.trace.index for job in self._runnable if job in runs and job.run(self._now_s, self._slot_s)]
        if self._events and self._events[0].time_s == next_s:
            self._events[0].ends.extend(ends)
        elif ends:
            self._events.insert(0, Event(next_s, ends=ends))
