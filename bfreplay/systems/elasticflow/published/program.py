"""What the published programs of ElasticFlow are given and what they leave behind.

Their simulator has a clock of its own, in whole seconds: it looks at jobs only at its events, moves these to the end of
a slot, and judges a job by the end that it computed, not by the one that it saw. ``published`` repeats each of its
schedulers as it is, to be compared with what it left; ``played_back`` runs the result through the replay.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

NO_DEADLINE_S = sys.maxsize
"""Deadline of a best-effort job, as the published program writes it."""


@dataclass(frozen=True, slots=True, eq=False)
class TraceJob:
    """A row of a trace.

    Parameters
    ----------
    index
        Its position in the file.
    submit_s, deadline_s
        Seconds of the trace; ``NO_DEADLINE_S`` for a best-effort job.
    gpus
        As many as its user asked for.
    duration_s
        Seconds that it takes on these.
    iterations
        Its work.
    rates
        Iterations per second by number of GPUs, in increasing order; numbers that are not there cannot be used.
    most_gpus
        More are of no use to it, as ElasticFlow has it.
    """

    index: int
    submit_s: int
    deadline_s: int
    gpus: int
    duration_s: int
    iterations: int
    rates: Mapping[int, float]
    most_gpus: int

    @property
    def is_best_effort(self) -> bool:
        """Whether it has no deadline."""
        return self.deadline_s == NO_DEADLINE_S


@dataclass(frozen=True, slots=True)
class Servers:
    """A cluster of equal servers; GPU ``g`` is in server ``g // gpus_each``."""

    n_servers: int
    gpus_each: int

    @property
    def n_gpus(self) -> int:
        """GPUs of all servers."""
        return self.n_servers * self.gpus_each


@dataclass(frozen=True, slots=True)
class Running:
    """What one job does from an event to the next: on which GPUs, and for how long it stands still at first."""

    gpus: tuple[int, ...]
    overhead_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Moment:
    """An event: who runs on what from here on, by the index of the job."""

    time_s: float
    running: Mapping[int, Running]


@dataclass(frozen=True, slots=True)
class JobEnd:
    """The end of a job as the program logs it; ``is_met`` as it counts, ``None`` for a best-effort job."""

    index: int
    start_s: float
    end_s: float
    gpus: int
    is_met: bool | None


@dataclass(slots=True)
class PublishedRun:
    """What a scheduler left: events and ends in the order of its logs, and its counters."""

    moments: list[Moment] = field(default_factory=list)
    ends: list[JobEnd] = field(default_factory=list)
    accepted: int = 0
    declined: int = 0
    refused: list[int] = field(default_factory=list)
    """Jobs that were declined on arrival."""


def efficiency(jobs: Sequence[TraceJob], moment: Moment, n_gpus: int) -> float:
    """Throughput of all running jobs over that on one GPU each, per GPU of the cluster; it may exceed 1."""
    total = 0.0
    for index, running in moment.running.items():
        rates = jobs[index].rates
        total += rates[len(running.gpus)] / rates[1]
    return total / n_gpus
