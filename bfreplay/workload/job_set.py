"""Jobs of a replay, known at its start or made during it; and rates of models that share nodes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, overload, runtime_checkable

from bfreplay.documents import pick
from bfreplay.errors import InputError
from bfreplay.wording import duration, value_text
from bfreplay.workload.elastic_job import ElasticJob

if TYPE_CHECKING:
    import pandas as pd

Pair = tuple[str, str, int, str]
"""Model of one job, model of the other, number of shared nodes, node type."""


class Colocation:
    """Rates of pairs of jobs that run on the same nodes at the same time (space sharing).

    Parameters
    ----------
    rates
        ``(model, other model, n_nodes, node type)`` to the samples/s of each. A pair that is missing in both orders
        cannot share nodes.
    alone
        ``(model, n_nodes, node type)`` to the samples/s of a model that does not share the nodes, for policies that
        compare; models without a job are allowed.

    Raises
    ------
    InputError
        A rate is negative or not a number.
    """

    __slots__ = ("_rates", "alone")

    def __init__(
        self, rates: Mapping[Pair, tuple[float, float]], alone: Mapping[tuple[str, int, str], float] | None = None
    ) -> None:
        self.alone = dict(alone or {})
        self._rates = {pair: (float(one), float(other)) for pair, (one, other) in rates.items()}
        for pair, rates_of_pair in self._rates.items():
            if not (all(math.isfinite(rate) and rate >= 0 for rate in rates_of_pair)):
                raise InputError(
                    f"the rates of {pair[0]!r} and {pair[1]!r} on {pair[2]} shared nodes ({pair[3]}) are invalid",
                    value=rates_of_pair,
                    expected="two finite numbers >= 0",
                )

    def __len__(self) -> int:
        return len(self._rates)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Colocation) and self._rates == other._rates

    def __hash__(self) -> int:
        return hash(len(self._rates))

    def rates(self, model: str, other: str, n_nodes: int, node_type: str) -> tuple[float, float]:
        """Return the samples/s of ``model`` and ``other`` on the same ``n_nodes`` nodes; zeros if they cannot share."""
        rates_of_pair = self._rates.get((model, other, n_nodes, node_type))
        if rates_of_pair is not None:
            return rates_of_pair
        rates_of_reverse = self._rates.get((other, model, n_nodes, node_type))
        return (0.0, 0.0) if rates_of_reverse is None else (rates_of_reverse[1], rates_of_reverse[0])


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
        Files the set was read from, with their SHA-256, for the run record.
    colocation
        Rates of jobs that share nodes; ``None``: jobs do not share nodes.

    Raises
    ------
    InputError
        Two jobs have the same name, or the set is empty.
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
        jobs = tuple(jobs)
        for job in jobs:
            if not isinstance(job, ElasticJob):
                raise InputError(
                    "these are no jobs",
                    column="jobs",
                    value=job,
                    expected="ElasticJob objects",
                    fix="a data frame goes in as a file: frame.to_parquet('jobs.parquet'), load_jobs('jobs.parquet')",
                )
        jobs_by_time = tuple(sorted(jobs, key=lambda job: job.submit_us))
        if not jobs_by_time:
            raise InputError("the job set is empty", expected="at least one job")
        names: set[str] = set()
        for job in jobs_by_time:
            if job.name in names:
                raise InputError(
                    f"two jobs have the name {job.name!r}",
                    column="name",
                    value=job.name,
                    expected="unique names",
                    fix="rename one of them",
                )
            names.add(job.name)
        object.__setattr__(self, "jobs", jobs_by_time)
        object.__setattr__(self, "submit_is_relative", submit_is_relative)
        object.__setattr__(self, "sources", tuple(sources))
        object.__setattr__(self, "colocation", colocation)

    def __len__(self) -> int:
        return len(self.jobs)

    def __repr__(self) -> str:
        first_names = ", ".join(job.name for job in self.jobs[:3])
        return f"<JobSet: {len(self.jobs)} jobs: {first_names}{', ...' if len(self.jobs) > 3 else ''}>"

    def _repr_html_(self) -> str:
        columns = ["name", "min_nodes", "max_nodes", "work_samples", "submit"]
        frame, is_relative = self.to_frame(), self.submit_is_relative
        frame["submit"] = [duration(us / 1e6) if is_relative else value_text(us, "time") for us in frame["submit_us"]]
        return frame[columns].to_html(max_rows=10, show_dimensions=True)

    def to_frame(self) -> pd.DataFrame:
        """One row a job, in order of submission; curves are objects."""
        import pandas as pd

        names = [attribute.name for attribute in fields(ElasticJob)]
        return pd.DataFrame([pick(job, *names) for job in self.jobs])

    @overload
    def __getitem__(self, index: int) -> ElasticJob: ...

    @overload
    def __getitem__(self, index: slice) -> JobSet: ...

    def __getitem__(self, index: int | slice) -> ElasticJob | JobSet:
        if isinstance(index, slice):
            return JobSet(self.jobs[index], self.submit_is_relative, colocation=self.colocation)
        return self.jobs[index]

    def __iter__(self) -> Iterator[ElasticJob]:
        return iter(self.jobs)

    def anchored_at(self, window_start_us: int) -> JobSet:
        """Return the jobs with absolute times; relative times count from ``window_start_us``."""
        if not self.submit_is_relative:
            return self
        jobs_at_times = (
            replace(
                job,
                submit_us=job.submit_us + window_start_us,
                deadline_us=None if job.deadline_us is None else job.deadline_us + window_start_us,
            )
            for job in self.jobs
        )
        return JobSet(jobs_at_times, sources=self.sources, colocation=self.colocation)

    def on_type(self, node_type: str) -> JobSet:
        """Return the jobs that run on nodes of one type, without their node types."""
        jobs_on_type = (
            replace(job, throughput=curve, throughput_by_type={}, node_types=())
            if job.throughput_by_type or job.node_types
            else job
            for job in self.jobs
            if (curve := job.throughput_on(node_type)) is not None
        )
        return JobSet(jobs_on_type, self.submit_is_relative, self.sources)

    def endless(self, count: int, submit_us: int) -> JobSet:
        """Return the first ``count`` jobs, all submitted at ``submit_us``, with endless work."""
        endless_jobs = (
            replace(job, submit_us=submit_us, work_samples=math.inf, deadline_us=None) for job in self.jobs[:count]
        )
        return JobSet(endless_jobs, sources=self.sources, colocation=self.colocation)


class Ending(StrEnum):
    """Reason that a job leaves before its work is done."""

    PRUNED = "pruned"  # for its score
    FAILED = "failed"  # it crashed
    DECLINED = "declined"  # by the policy's admission control
    STOPPED = "stopped"  # a budget is used up, or the campaign is over


@dataclass(frozen=True, slots=True)
class JobReport:
    """Progress of a job, reported to its source.

    Parameters
    ----------
    job
        Name of the job.
    time_us
        Microseconds since the epoch.
    samples
        Samples done: one of its ``report_at_samples``, or its whole work.
    node_us
        Node time allocated to it so far, in node-microseconds.
    is_finished
        Its work is done; it leaves whatever the verdict.
    """

    job: str
    time_us: int
    samples: float
    node_us: int
    is_finished: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """Answer of a source to a report.

    Parameters
    ----------
    score
        The job's metric at this progress, for the run record; ``None``: no metric.
    ending
        Reason for which the job leaves now; ``None``: it continues.
    pause
        The job releases its nodes and keeps its progress until it is resumed (``Orders.resume``).
    """

    score: float | None = None
    ending: Ending | None = None
    pause: bool = False


@dataclass(frozen=True, slots=True)
class Orders:
    """Jobs that a source submits, resumes and stops now.

    Parameters
    ----------
    submit
        New jobs, with names not used before and absolute submit times, now or later.
    resume
        Names of paused jobs to queue again with the progress they had.
    stop
        Active, paused or queued jobs that leave now: name to reason.
    ask_again_us
        Time to ask again even if nothing happens; ``None``: when a job of this source reports or leaves.
    """

    submit: tuple[ElasticJob, ...] = ()
    resume: tuple[str, ...] = ()
    stop: Mapping[str, Ending] = field(default_factory=dict)
    ask_again_us: int | None = None


@runtime_checkable
class JobSource(Protocol):
    """Maker of jobs during the replay.

    The replay calls ``begin`` once, then ``ask`` at the window's start. Whenever jobs report, it calls ``tell`` for
    each, in order of admission, then ``ask``. The same log, policy and source must give the same orders: draw random
    numbers from generators that ``begin`` seeds anew, and never read a clock.
    """

    @property
    def name(self) -> str:
        """Label for tables."""
        ...

    @property
    def higher_is_better(self) -> bool:
        """True if larger scores are better."""
        ...

    @property
    def sources(self) -> tuple[tuple[str, str], ...]:
        """Files that it was made from, with their SHA-256, for the run record."""
        ...

    def begin(self, window_start_us: int, window_end_us: int) -> None:
        """Reset for a replay of this window. A source may be replayed several times."""
        ...

    def ask(self, now_us: int) -> Orders:
        """Return the jobs to submit, resume and stop now."""
        ...

    def tell(self, report: JobReport) -> Verdict:
        """Answer a job that has reached one of its ``report_at_samples``, or finished."""
        ...

    def describe(self) -> dict[str, object]:
        """Return every parameter with its value, JSON-ready, for the run record."""
        ...
