"""A source of jobs: asked for new ones and told of progress while time goes on.

An HPO or NAS campaign is one: which trial comes next, and which goes on, depends on the scores so far.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, runtime_checkable

from bfreplay.workload.elastic_job import ElasticJob


class Ending(StrEnum):
    """Why a job leaves before its work is done."""

    PRUNED = "pruned"  # its score is not good enough
    FAILED = "failed"  # it crashed
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
