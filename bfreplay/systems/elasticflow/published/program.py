"""Inputs and results of the published programs of ElasticFlow.

Their simulator has a clock of its own, in whole seconds: it checks jobs only at its events, moves these to the end of a
slot, and judges a job by the end that it computed, not by the event at which it noticed it. ``published`` repeats each
of its schedulers, for comparison with recorded runs; ``played_back`` runs the result through the replay.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

NO_DEADLINE_S = sys.maxsize
"""Deadline of a best-effort job in the published program."""


@dataclass(frozen=True, slots=True, eq=False)
class TraceJob:
    """Row of a trace.

    Parameters
    ----------
    index
        Position in the file.
    submit_s, deadline_s
        Seconds of the trace; ``NO_DEADLINE_S`` for a best-effort job.
    gpus
        Requested GPUs.
    duration_s
        Seconds on these.
    iterations
        Work.
    rates
        Iterations per second by number of GPUs, in increasing order; other numbers cannot be used.
    most_gpus
        Most GPUs that ElasticFlow gives it.
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
        """True if it has no deadline."""
        return self.deadline_s == NO_DEADLINE_S

    def is_met(self, end_s: float) -> bool | None:
        """Return whether an end keeps the deadline; ``None`` for a best-effort job."""
        return None if self.is_best_effort else end_s <= self.deadline_s


@dataclass(frozen=True, slots=True)
class Servers:
    """Cluster of equal servers; GPU ``g`` is in server ``g // gpus_each``."""

    n_servers: int
    gpus_each: int

    @property
    def n_gpus(self) -> int:
        """Number of GPUs of all servers."""
        return self.n_servers * self.gpus_each

    def gpus_of(self, servers: Iterable[int]) -> list[int]:
        """Return the GPUs of these servers, in ascending order."""
        return [server * self.gpus_each + offset for server in sorted(servers) for offset in range(self.gpus_each)]


@dataclass(frozen=True, slots=True)
class Running:
    """Job from an event to the next: its GPUs, and the time for which it stands still at first."""

    gpus: tuple[int, ...]
    overhead_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Moment:
    """Event: running jobs and their GPUs from here on, by the index of the job."""

    time_s: float
    running: Mapping[int, Running]


@dataclass(frozen=True, slots=True)
class JobEnd:
    """End of a job in the log of the program; ``is_met`` as it counts, ``None`` for a best-effort job."""

    index: int
    start_s: float
    end_s: float
    gpus: int
    is_met: bool | None


@dataclass(slots=True)
class PublishedRun:
    """Results of a scheduler: events and ends in the order of its logs."""

    moments: list[Moment] = field(default_factory=list)
    ends: list[JobEnd] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    """Jobs refused on arrival; only Chronus runs them."""

    @property
    def accepted(self) -> int:
        """Number of jobs that met their deadlines."""
        return sum(end.is_met is True for end in self.ends)

    @property
    def declined(self) -> int:
        """Number of jobs that ended late, or were refused and never ran."""
        ended_jobs = {end.index for end in self.ends}
        return sum(end.is_met is False for end in self.ends) + sum(index not in ended_jobs for index in self.refused)
