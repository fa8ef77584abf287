"""An ordered set of elastic jobs, all known from the start."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import overload

from bfreplay.errors import InputError
from bfreplay.workload.colocation import Colocation
from bfreplay.workload.elastic_job import ElasticJob


@dataclass(frozen=True, slots=True)
class JobSet(Sequence[ElasticJob]):
    """Jobs in first-come-first-served order: by submit time, then by their order in the file.

    Parameters
    ----------
    jobs
        In any order; sorted here (stable).
    submit_is_relative
        Submit times and deadlines count from the start of the replay window instead of the epoch.
    sources
        Files the set was read from with their SHA-256, for the run's record.
    colocation
        How fast jobs are that share nodes; ``None`` where none may.

    Raises
    ------
    InputError
        Two jobs bear one name, or there is no job.
    """

    jobs: tuple[ElasticJob, ...]
    submit_is_relative: bool = False
    sources: tuple[tuple[str, str], ...] = field(default=())
    colocation: Colocation | None = None

    def __init__(
        self,
        jobs: Iterable[ElasticJob],
        submit_is_relative: bool = False,
        sources: Iterable[tuple[str, str]] = (),
        colocation: Colocation | None = None,
    ) -> None:
        ordered = tuple(sorted(jobs, key=lambda job: job.submit_us))
        if not ordered:
            raise InputError("the job set is empty", expected="at least one job")
        seen: set[str] = set()
        for job in ordered:
            if job.name in seen:
                raise InputError(
                    f"two jobs are called {job.name!r}",
                    column="name",
                    value=job.name,
                    expected="unique names",
                    fix="rename one of them",
                )
            seen.add(job.name)
        object.__setattr__(self, "jobs", ordered)
        object.__setattr__(self, "submit_is_relative", submit_is_relative)
        object.__setattr__(self, "sources", tuple(sources))
        object.__setattr__(self, "colocation", colocation)

    def __len__(self) -> int:
        return len(self.jobs)

    def __repr__(self) -> str:
        names = ", ".join(job.name for job in self.jobs[:3])
        return f"<JobSet: {len(self.jobs)} jobs: {names}{', ...' if len(self.jobs) > 3 else ''}>"

    @overload
    def __getitem__(self, index: int) -> ElasticJob: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[ElasticJob, ...]: ...

    def __getitem__(self, index: int | slice) -> ElasticJob | tuple[ElasticJob, ...]:
        return self.jobs[index]

    def __iter__(self) -> Iterator[ElasticJob]:
        return iter(self.jobs)

    def anchored_at(self, window_start_us: int) -> JobSet:
        """The same jobs with absolute times, relative ones counted from ``window_start_us``."""
        if not self.submit_is_relative:
            return self
        moved = (
            replace(
                job,
                submit_us=job.submit_us + window_start_us,
                deadline_us=None if job.deadline_us is None else job.deadline_us + window_start_us,
            )
            for job in self.jobs
        )
        return JobSet(moved, sources=self.sources, colocation=self.colocation)

    def on_type(self, node_type: str) -> JobSet:
        """The jobs that run on nodes of one type, as jobs that know no types."""
        there = (
            replace(job, throughput=curve, throughput_by_type={}, node_types=())
            for job in self.jobs
            if (curve := job.throughput_on(node_type)) is not None
        )
        return JobSet(there, self.submit_is_relative, self.sources)

    def endless(self, count: int, submit_us: int) -> JobSet:
        """The first ``count`` jobs, all submitted at ``submit_us``, with work that never runs out."""
        chosen = (
            replace(job, submit_us=submit_us, work_samples=math.inf, deadline_us=None) for job in self.jobs[:count]
        )
        return JobSet(chosen, sources=self.sources, colocation=self.colocation)
