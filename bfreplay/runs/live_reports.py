"""Reality that a session is told while it runs: measured progress, jobs that have ended, measured curves and costs."""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from bfreplay import checks
from bfreplay.datasets.log.events import time_us_of
from bfreplay.datasets.log.portions import Portions
from bfreplay.datasets.log.states import EventBatch
from bfreplay.errors import InputError
from bfreplay.replay.engine import Engine
from bfreplay.saved_state import restorable
from bfreplay.scalability import TabulatedCurve
from bfreplay.scalability.law import LARGEST_RATE
from bfreplay.scalability.stepped import curve_as_given
from bfreplay.workload import ElasticJob, Ending

ENDINGS = ("finished", *(ending.value for ending in Ending if ending is not Ending.DECLINED))
"""Ways in which a job can really have ended."""


@restorable
@dataclass(frozen=True, slots=True)
class _Report:
    """One report: of progress, of an end too, or of measured curves and costs."""

    time_us: int
    job: int  # its number
    samples: float = 0.0
    ending: str = ""
    changes: Mapping[str, Any] = field(default_factory=dict)


class LiveReports:
    """Reports on the jobs of a session, which wait until the replay gets to their time.

    Attributes
    ----------
    submitted
        Jobs that were submitted while the session ran, as they were given, with absolute times.
    """

    not_saved = ("_engine", "_portions")

    def __init__(self, engine: Engine, portions: Portions | None) -> None:
        self._engine, self._portions = engine, portions
        self._waiting: list[_Report] = []
        self._updates: dict[int, dict[str, Any]] = {}  # that were applied, by number of the job
        self.submitted: list[ElasticJob] = []
        self._n_progress = self._n_ends = self._n_updates = self._n_unused = 0

    # -- what is reported ---------------------------------------------------------------------------------

    def report(self, job: str, samples: float, at: Any, ended: str | None) -> None:
        """Take measured progress, as ``ReplaySession.report``."""
        number = self._number(job)
        samples = checks.number("samples", samples, least=0.0, most=LARGEST_RATE)
        ending = "" if ended is None else checks.one_of("ended", ended, ENDINGS)
        self._wait(_Report(self.time_us(at), number, samples, ending))

    def update(self, job: str, changes: Mapping[str, Any], at: Any) -> None:
        """Take measured curves and costs, as ``ReplaySession.update_job``; entries that are ``None`` do not change."""
        number = self._number(job)
        changes = {name: value for name, value in changes.items() if value is not None}
        known = self._engine.feed.jobs[number]
        if not changes:
            raise InputError(f"nothing of job {job!r} is to change", expected="throughput, or a cost")
        if "throughput" in changes and known.throughput_by_type:
            raise InputError(
                f"job {job!r} has curves by node type, which cannot be updated", column="throughput", expected="costs"
            )
        updated = replace(known, **changes)
        changes = {name: getattr(updated, name) for name in changes}
        if "throughput" in changes:  # a curve of a class that no state may make is saved as well
            curve, most = curve_as_given(updated.throughput), known.max_nodes
            is_table = isinstance(curve, TabulatedCurve)
            changes["throughput"] = curve if is_table else TabulatedCurve(range(most + 1), curve.table(most).tolist())
        jobs = [*self._engine.feed.jobs]
        jobs[number] = replace(known, **changes)
        self._engine.policy.check_jobs(jobs, max(self._engine.events.node_types.counts.values()))
        self._wait(_Report(self.time_us(at), number, changes=changes))

    def time_us(self, at: Any) -> int:
        """Time from which something that is given now can count: ``at``, but not before all that is final."""
        portions = self._portions
        if portions is None:
            raise InputError("this session reads its log itself", expected="NodeEvents.to_come(...) as its log")
        try:
            at_us = portions.until_us if at is None else time_us_of(at)
        except ValueError as error:
            expected = "whole microseconds since 1970-01-01 UTC, ISO-8601 text or a datetime"
            raise InputError(f"at is not a time: {error}", column="at", value=at, expected=expected) from error
        return min(max(at_us, portions.until_us), portions.log.window_end_us)

    def _number(self, job: str) -> int:
        """Return the number of a job of which something can be reported."""
        engine = self._engine
        self.time_us(None)
        if engine.is_published or engine.feed.source is not None:
            conflict = "the published clock" if engine.is_published else "a job source, which is told its own progress"
            raise InputError(f"nothing can be reported to a session with {conflict}", expected="a plain set of jobs")
        names = engine.feed.names
        if not isinstance(job, str) or job not in names:
            near = checks.nearest(str(job), names, "name a job of the session, or submit it first")
            raise InputError(f"there is no job {job!r}", column="job", value=job, expected="a job's name", fix=near)
        number = names.index(job)
        if number in engine.feed.gone or any(report.job == number and report.ending for report in self._waiting):
            raise InputError(f"job {job!r} has left", column="job", value=job, expected="a job that has not ended")
        return number

    def _wait(self, report: _Report) -> None:
        insort(self._waiting, report, key=lambda waiting: waiting.time_us)

    # -- what becomes of it -------------------------------------------------------------------------------

    def advance(self, events: EventBatch, until_us: int) -> None:
        """Advance the engine, with each report after all instants up to its time and before any later one."""
        engine = self._engine
        while self._waiting and (time_us := self._waiting[0].time_us) < until_us:
            engine.advance(events, time_us + 1)
            events = events.take(slice(0, 0))
            report = self._waiting.pop(0)
            if report.job in engine.feed.gone:
                self._n_unused += 1
            else:
                engine.correct(time_us, partial(self._apply, report))
        engine.advance(events, until_us)

    def _apply(self, report: _Report, now_us: int) -> int:
        """Apply a report to the jobs of the engine; return the ``Trigger`` of a decision, or 0."""
        job_flow, job = self._engine.job_flow, self._engine.feed.jobs[report.job]
        if report.changes:
            self._n_updates += 1
            job_flow.update_job(report.job, self._change(report.job, report.changes), now_us)
            return 0
        samples = report.samples if report.ending else min(report.samples, job.work_samples)
        is_active = job_flow.correct_progress(report.job, samples, now_us)
        if not report.ending:
            self._n_progress += is_active
            self._n_unused += not is_active
            return 0
        self._n_ends += 1
        if is_active and report.ending == "finished" and samples > 0:
            self._change(report.job, {"work_samples": samples})
        return job_flow.end(report.job, report.ending, now_us)

    def _change(self, number: int, changes: Mapping[str, Any]) -> ElasticJob:
        """Let a job be another one from now on, in restored sessions too."""
        self._updates.setdefault(number, {}).update(changes)
        job = self._engine.feed.jobs[number] = replace(self._engine.feed.jobs[number], **changes)
        return job

    def reapply(self) -> None:
        """Let the jobs have their updates again, which were replaced by those that a session was opened with."""
        jobs = self._engine.feed.jobs
        for number, changes in self._updates.items():
            jobs[number] = replace(jobs[number], **changes)

    @property
    def text(self) -> str:
        """Numbers of reports by kind, as words; ``""`` without any."""
        kinds = [
            (self._n_progress, "report of progress", "reports of progress"),
            (self._n_ends, "end of a job", "ends of jobs"),
            (self._n_updates, "update of curves or costs", "updates of curves or costs"),
            (self._n_unused, "unused report of an inactive job", "unused reports of inactive jobs"),
        ]
        return ", ".join(f"{number:,} {one if number == 1 else many}" for number, one, many in kinds if number)
