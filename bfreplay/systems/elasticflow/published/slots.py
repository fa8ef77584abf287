"""What the published schedulers have in common: events that are moved to the end of a slot, overheads, and the count.

All loops of the published program end alike. What is due within a slot of the event at hand is put together into one
event at the end of the slot, so that an arrival may be seen up to a slot after its submission. Only an event that is
the last one of all keeps its time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from bfreplay.systems.elasticflow.published.program import JobEnd, PublishedRun, TraceJob

LARGE_CLUSTER_GPUS = 256
"""From so many GPUs on, the program takes overheads to be larger."""


JobT = TypeVar("JobT")


@dataclass(slots=True, eq=False)
class Event(Generic[JobT]):
    """Jobs that arrive or end at a time."""

    time_s: float
    arrivals: list[JobT] = field(default_factory=list)
    ends: list[JobT] = field(default_factory=list)


def arrival_events(jobs: Sequence[TraceJob]) -> list[Event[int]]:
    """One event for each time of submission, in order; jobs, by index, are in the order of the file."""
    events: dict[float, Event[int]] = {}
    for job in sorted(jobs, key=lambda job: job.submit_s):
        events.setdefault(job.submit_s, Event(job.submit_s)).arrivals.append(job.index)
    return list(events.values())


def merge_within_slot(events: list[Event[JobT]], now_s: float, slot_s: float) -> None:
    """Sort the events; put all that are due within a slot from now into the first, which moves to the slot's end.

    A single event is left alone. That which is due a fraction of a second after the slot counts as within it where it
    is the first, and as after it where it is not: the program cuts off the fraction of the first only.
    """
    events.sort(key=lambda event: event.time_s)
    if len(events) < 2 or int(events[0].time_s - now_s) > slot_s:
        return
    first = events[0]
    first.time_s = now_s + slot_s
    while len(events) > 1 and events[1].time_s - now_s <= slot_s:
        merged = events.pop(1)
        first.arrivals.extend(merged.arrivals)
        first.ends.extend(merged.ends)


def is_restart(n_events: int, slot_s: int) -> bool:
    """Whether all jobs are restarted at an event that ``n_events`` came before.

    The program compares this number with the *seconds* of a slot: with slots of 240 s, every 240th event is one.
    """
    return n_events > 0 and n_events % slot_s == 0


def overhead_s(n: int, n_gpus_of_cluster: int, restart: bool, cached: bool = False) -> float:
    """Seconds for which a job that gets ``n`` GPUs stands still.

    Parameters
    ----------
    n
        Its GPUs, at least one.
    n_gpus_of_cluster
        GPUs of the whole cluster.
    restart
        Whether all jobs are restarted at this event.
    cached
        Whether a job had just these GPUs since the last restart (``placement.cache_key``).
    """
    is_large = n_gpus_of_cluster >= LARGE_CLUSTER_GPUS
    seconds = 7 if is_large else 2
    if cached:
        return seconds
    if restart:
        seconds += 47 if is_large else 27
    return seconds + (math.log(n, 2) + 1) * 2


def log_end(run: PublishedRun, job: TraceJob, start_s: float, end_s: float, gpus: int) -> bool:
    """Log the end of a job, count it as declined where it is late, and return whether it is in time."""
    is_late = end_s > job.deadline_s
    run.ends.append(JobEnd(job.index, start_s, end_s, gpus, None if job.is_best_effort else not is_late))
    if is_late:
        run.declined += 1
    return not is_late
