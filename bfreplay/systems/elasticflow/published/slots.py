"""Common parts of the published schedulers: events moved to the end of a slot, and overheads.

All loops of the published program end alike: events within a slot of the current one are merged into one at the end of
the slot, so that an arrival may be handled up to a slot after its submission. Only the very last event keeps its time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from bfreplay.systems.elasticflow.published.program import TraceJob

LARGE_CLUSTER_GPUS = 256
"""Number of GPUs from which the program has larger overheads."""


JobT = TypeVar("JobT")


@dataclass(slots=True, eq=False)
class Event(Generic[JobT]):
    """Jobs that arrive or end at a time."""

    time_s: float
    arrivals: list[JobT] = field(default_factory=list)
    ends: list[JobT] = field(default_factory=list)


def arrival_events(jobs: Sequence[TraceJob]) -> list[Event[int]]:
    """Return an event for each time of submission, in order; jobs, by index, are in the order of the file."""
    events: dict[float, Event[int]] = {}
    for job in sorted(jobs, key=lambda job: job.submit_s):
        events.setdefault(job.submit_s, Event(job.submit_s)).arrivals.append(job.index)
    return list(events.values())


def merge_within_slot(events: list[Event[JobT]], now_s: float, slot_s: float) -> None:
    """Sort the events; merge all within a slot from now into the first, which moves to the slot's end.

    A single event keeps its time. An event a fraction of a second after the slot counts as within it only if it is the
    first: the program cuts off the fraction of the first only.
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
    """Return whether all jobs are restarted at an event after ``n_events`` others.

    The program compares this number with the *seconds* of a slot: with slots of 240 s, every 240th event is one.
    """
    return n_events > 0 and n_events % slot_s == 0


def overhead_s(n: int, n_gpus_of_cluster: int, restart: bool, cached: bool = False) -> float:
    """Return the seconds for which a job that gets ``n`` GPUs stands still.

    Parameters
    ----------
    n
        GPUs of the job, at least one.
    n_gpus_of_cluster
        GPUs of the whole cluster.
    restart
        Whether all jobs are restarted at this event.
    cached
        Whether a job had these GPUs since the last restart (``placement.cache_key``).
    """
    is_large = n_gpus_of_cluster >= LARGE_CLUSTER_GPUS
    seconds = 7 if is_large else 2
    if cached:
        return seconds
    if restart:
        seconds += 47 if is_large else 27
    return seconds + (math.log(n, 2) + 1) * 2
