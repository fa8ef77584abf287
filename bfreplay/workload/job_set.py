"""Jobs of a replay, known at its start or made as it goes on; and how fast models are that share nodes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, overload, runtime_checkable

from bfreplay.errors import InputError
from bfreplay.workload.elastic_job import ElasticJob

if TYPE_CHECKING:
    import pandas as pd

Pair = tuple[str, str, int, str]
"""Model of one job, model of the other, nodes that they share, type of these."""


class Colocation:
    """Rates of pairs of jobs that run on the same nodes at the same time (space sharing).

    Parameters
    ----------
    rates
        ``(model, other model, n_nodes, node type)`` to the samples/s of the one and of the other. A pair that is not
        there, in neither order, cannot share nodes.
    alone
        ``(model, n_nodes, node type)`` to the samples/s of a model that has the nodes for itself, for policies that
        compare; they may be of models that no job has.

    Raises
    ------
    InputError
        A rate that is negative or no number.
    """

    __slots__ = ("_rates", "alone")

    def __init__(
        self, rates: Mapping[Pair, tuple[float, float]], alone: Mapping[tuple[str, int, str], float] | None = None
    ) -> None:
        self.alone = dict(alone or {})
        self._rates = {pair: (float(one), float(other)) for pair, (one, other) in rates.items()}
        for pair, both in self._rates.items():
            if not (all(math.isfinite(rate) and rate >= 0 for rate in both)):
                raise InputError(
                    f"the rates of {pair[0]!r} and {pair[1]!r} on {pair[2]} shared nodes ({pair[3]}) make no sense",
                    value=both, expected="two finite numbers >= 0",
                )  # fmt: skip

    def __len__(self) -> int:
        return len(self._rates)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Colocation) and self._rates == other._rates

    def __hash__(self) -> int:
        return hash(len(self._rates))

    def rates(self, model: str, other: str, n_nodes: int, node_type: str) -> tuple[float, float]:
        """Samples/s of ``model`` and of ``other`` on the same ``n_nodes`` nodes; zeros where they cannot share them."""
        known = self._rates.get((model, other, n_nodes, node_type))
        if known is not None:
            return known
        turned = self._rates.get((other, model, n_nodes, node_type))
        return (0.0, 0.0) if turned is None else (turned[1], turned[0])


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
        jobs = tuple(jobs)
        strange = next((job for job in jobs if not isinstance(job, ElasticJob)), None)
        if strange is not None:
            raise InputError("these are no jobs", column="jobs", value=strange, expected="ElasticJob objects")
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

    def to_frame(self) -> pd.DataFrame:
        """One row a job, in order of submission; curves are objects."""
        import pandas as pd

        return pd.DataFrame([{each.name: getattr(job, each.name) for each in fields(job)} for job in self.jobs])

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
            if job.throughput_by_type or job.node_types
            else job
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


class Ending(StrEnum):
    """Why a job leaves before its work is done."""

    PRUNED = "pruned"  # its score is not good enough
    FAILED = "failed"  # it crashed
    DECLINED = "declined"  # the policy does not take it
    STOPPED = "stopped"  # a budget is used up, or the campaign is over


@dataclass(frozen=True, slots=True)
class JobReport:
    """What a source is told about one of its jobs.

    Parameters
    ----------
    job
        Its name.
    time_us
        When, in microseconds since the epoch.
    samples
        Samples done: one of its ``report_at_samples``, or its whole work.
    node_us
        Node time it has held so far, in node-microseconds.
    is_finished
        Its work is done; whatever the verdict, it leaves.
    """

    job: str
    time_us: int
    samples: float
    node_us: int
    is_finished: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a source answers to a report.

    Parameters
    ----------
    score
        The job's metric at this progress, for the run's record; ``None`` for none.
    ending
        The job leaves now, for this reason; ``None``: it goes on.
    pause
        The job gives up its nodes and keeps its progress until it is resumed (``Orders.resume``).
    """

    score: float | None = None
    ending: Ending | None = None
    pause: bool = False


@dataclass(frozen=True, slots=True)
class Orders:
    """What a source wants now.

    Parameters
    ----------
    submit
        New jobs, names never used before, with absolute submit times: now or later.
    resume
        Names of paused jobs that shall queue again, with the progress they had.
    stop
        Names of jobs that leave now, and why: active, paused or queued ones.
    ask_again_us
        When to ask next even if nothing happens; ``None``: when a job of this source reports or leaves.
    """

    submit: tuple[ElasticJob, ...] = ()
    resume: tuple[str, ...] = ()
    stop: Mapping[str, Ending] = field(default_factory=dict)
    ask_again_us: int | None = None


@runtime_checkable
class JobSource(Protocol):
    """Jobs that are made while the replay runs.

    The replay calls ``begin`` once, then ``ask`` at the window's start. Whenever jobs report, it calls ``tell`` for
    each, in order of admission, then ``ask``. The same log, policy and source must give the same orders: draw random
    numbers from generators that ``begin`` seeds anew, and never look at a clock.
    """

    @property
    def name(self) -> str:
        """Label for tables."""
        ...

    @property
    def higher_is_better(self) -> bool:
        """Whether a larger score is a better one."""
        ...

    @property
    def sources(self) -> tuple[tuple[str, str], ...]:
        """Files that it was made from, with their SHA-256, for the run's record; empty for none."""
        ...

    def begin(self, window_start_us: int, window_end_us: int) -> None:
        """Forget everything: a replay of this window begins. A source may be replayed several times."""
        ...

    def ask(self, now_us: int) -> Orders:
        """What shall be submitted, resumed or stopped now."""
        ...

    def tell(self, report: JobReport) -> Verdict:
        """A job has reached one of its ``report_at_samples``, or finished."""
        ...

    def describe(self) -> dict[str, object]:
        """Every parameter with its value, JSON-ready, for the run's record."""
        ...
