"""Outcome of every job of the set, whether it ran or not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from bfreplay.policies.state import NEVER_US
from bfreplay.replay.active import ACTIVE_JOB
from bfreplay.replay.ledger import HELD
from bfreplay.replay.tables import JOBS, RowTable
from bfreplay.result_folders.records import Amount, Count, JsonObject, RecordPart, TimeUs
from bfreplay.workload import ElasticJob, Ending

ENDED = ("finished", *(ending.value for ending in Ending))
"""Statuses of jobs that have left for good."""

STATUSES = (*ENDED, "running", "waiting", "paused", "queued", "not_submitted")
"""Of jobs at the end of the window."""

_COUNTS = ("n_starts", "n_scale_ups", "n_scale_downs", "n_preemptions")
_in_order = itemgetter(*JOBS.names[:-1])  # the last one, of the isolated policy, is known when the table is written
_NEVER_ADMITTED: np.void = np.zeros(1, ACTIVE_JOB)[0]
_NEVER_ADMITTED["admitted_us"] = _NEVER_ADMITTED["first_start_us"] = NEVER_US


class Times(RecordPart, frozen=True, kw_only=True):
    """Seconds from submission to an event, of the ``n_jobs`` that got there."""

    n_jobs: Count
    median_s: Amount | None
    p95_s: Amount | None

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Times:
        """Return median and 95 % quantile, by linear interpolation; ``None`` without values."""
        median, late = (float(np.percentile(seconds, share)) if seconds else None for share in (50, 95))
        return cls(n_jobs=len(seconds), median_s=median, p95_s=late)


class JobTimes(RecordPart, frozen=True, kw_only=True):
    """Waiting and completion times of jobs."""

    submit_to_start: Times
    submit_to_finish: Times


class Scores(RecordPart, frozen=True, kw_only=True):
    """Reports of jobs to their source, the best score of all, and the best last score of a finished job."""

    n_reports: Count
    best_score: float | None
    best_job: str | None
    best_params: JsonObject | None
    best_time_us: TimeUs | None
    best_finished_score: float | None
    best_finished_job: str | None


class JobOutcomes:
    """One row a job, in order of submission; written at the end.

    Parameters
    ----------
    jobs
        The jobs by number; the list may grow.
    table
        Where rows go.
    higher_is_better
        Of scores; ``None`` where there are none.
    measured
        First and one after the last of the jobs that the run is about; ``None``: all.
    """

    not_saved = ("_jobs", "_table", "_better")

    def __init__(
        self,
        jobs: Sequence[ElasticJob],
        table: RowTable,
        higher_is_better: bool | None = None,
        measured: tuple[int, int] | None = None,
    ) -> None:
        self._jobs = jobs
        self._measured = None if measured is None else range(*measured)
        self.n_measured_left = 0 if measured is None else len(range(*measured))  # of no meaning where all are
        self._table = table
        self._better = max if higher_is_better else min
        self._rows: dict[int, tuple[Any, ...]] = {}
        self._scores: dict[int, tuple[int, float | None, float | None]] = {}  # reports, last and best score
        self._has_scores = higher_is_better is not None
        self._best: tuple[float, int, int] | None = None  # score, job, time
        self._best_finished: tuple[float, int] | None = None  # last score, job
        self.totals = dict.fromkeys(HELD, 0)
        self.samples = 0.0
        self.rescale_samples = 0.0
        self.preemption_samples = 0.0
        self.by_status = dict.fromkeys(STATUSES, 0)
        self._last_end_us: int | None = None
        self.deadlines = dict.fromkeys(("met", "missed", "declined", "open", "void"), 0)
        self.declined: dict[str, str] = {}  # why the policy did not take a job, by its name
        self.is_over = True  # no job is to come
        self._to_start_s: list[float] = []
        self.jct_s: dict[int, float] = {}  # submit to finish of the jobs that finished, by number

    @property
    def measured(self) -> Iterator[tuple[int, ElasticJob]]:
        """Numbers of the jobs that the run is about, and the jobs."""
        for job_index, job in enumerate(self._jobs):
            if self._measured is None or job_index in self._measured:
                yield job_index, job

    @property
    def last_finish_us(self) -> int | None:
        """Time at which the last job left, finished or ended by its source.

        ``None`` while one is there or to come, and where one was declined: its work was not done.
        """
        all_left = sum(self.by_status[status] for status in ENDED if status != Ending.DECLINED) == len(self._jobs)
        return self._last_end_us if all_left and self.is_over else None

    def note_report(self, job_index: int, score: float | None, now_us: int) -> None:
        """Note the report of a job, with the score that its source gave it, if any."""
        number, last_score, best_score = self._scores.get(job_index, (0, None, None))
        if score is not None:
            last_score = float(score)
            best_score = last_score if best_score is None else self._better(best_score, last_score)
            if self._best is None or self._is_better(last_score, self._best[0]):
                self._best = (last_score, job_index, now_us)
        self._scores[job_index] = (number + 1, last_score, best_score)

    def _is_better(self, score: float, other_score: float) -> bool:
        return score != other_score and self._better(score, other_score) == score

    def leave(self, record: np.void, status: str, now_us: int) -> None:
        """Note that a job has done its work (``"finished"``), or that its source has ended it (an ``Ending``)."""
        job_index = int(record["job"])
        self._enter(job_index, str(status), now_us, record)
        last_score = self._scores.get(job_index, (0, None, None))[1]
        if status == "finished" and last_score is not None:
            before = self._best_finished
            if before is None or self._is_better(last_score, before[0]):
                self._best_finished = (last_score, job_index)

    def interrupt(self, record: np.void, end_us: int, *, is_paused: bool = False) -> None:
        """Note that the window ends while a job is active, or paused."""
        status = "paused" if is_paused else "running" if record["rate"] > 0 else "waiting"
        self._enter(int(record["job"]), status, end_us, record)

    def note_not_admitted(self, job_index: int, now_us: int, ending: str | None = None) -> None:
        """Note that the window ends, or the source withdraws the job, before it was admitted."""
        waiting = "queued" if self._jobs[job_index].submit_us <= now_us else "not_submitted"
        self._enter(job_index, waiting if ending is None else str(ending), now_us, _NEVER_ADMITTED)

    def _enter(self, job_index: int, status: str, now_us: int, record: np.void) -> None:
        job = self._jobs[job_index]
        is_measured = self._measured is None or job_index in self._measured
        has_left = status in ENDED
        if has_left:
            self._last_end_us = now_us
            self.n_measured_left -= is_measured
        start_us = _time(record["first_start_us"])
        finish_us = now_us if status == "finished" else None
        if start_us is not None:
            self._to_start_s.append((start_us - job.submit_us) / 1e6)
        if finish_us is not None:
            self.jct_s[job_index] = (finish_us - job.submit_us) / 1e6
        is_met = _meets_deadline(job, finish_us, now_us)
        if job.deadline_us is not None and is_measured:
            open_key = "void" if has_left else "open"
            outcome = open_key if is_met is None else "met" if is_met else "missed"
            self.deadlines["declined" if status == Ending.DECLINED else outcome] += 1
        self.by_status[status] += 1
        node_us = {label: int(record[label]) for label in self.totals}
        for label in self.totals:
            self.totals[label] += node_us[label]
        progress, rescale_cost, preemption_cost = (
            float(record[field_name]) for field_name in ("progress", "rescale_paid", "preempt_paid")
        )
        self.samples += progress
        self.rescale_samples += rescale_cost
        self.preemption_samples += preemption_cost
        n_reports, last_score, best_score = (
            self._scores.get(job_index, (0, None, None)) if self._has_scores else (None, None, None)
        )
        self._rows[job_index] = _in_order(
            {
                "job": job.name,
                "model": job.model,
                "status": status,
                "submitted": job.submit_us,
                "admitted": _time(record["admitted_us"]),
                "first_start": start_us,
                "finished": finish_us,
                "ended": now_us if has_left else None,
                "deadline": job.deadline_us,
                "deadline_met": is_met,
                "weight": job.weight,
                "work_samples": job.work_samples,
                "done_samples": progress,
                **{f"{label}_node_us": time_us for label, time_us in node_us.items()},
                "rescale_cost_samples": rescale_cost,
                "preemption_cost_samples": preemption_cost,
                "repeated_samples": float(record["repeated_samples"]),
                **{field_name: int(record[field_name]) for field_name in _COUNTS},
                "n_reports": n_reports,
                "last_score": last_score,
                "best_score": best_score,
                "params": json.dumps(dict(job.params), sort_keys=True, allow_nan=False) if job.params else None,
            }
        )

    def times(self) -> JobTimes:
        """Return the times from submission to first start and to finish, of the jobs that got there."""
        return JobTimes(
            submit_to_start=Times.of(self._to_start_s), submit_to_finish=Times.of(list(self.jct_s.values()))
        )

    @property
    def scores(self) -> Scores | None:
        """Reports and best scores; ``None`` without a source."""
        if not self._has_scores:
            return None
        score, job_index, time_us = self._best or (None, None, None)
        job = None if job_index is None else self._jobs[job_index]
        last_score, best_finisher = self._best_finished or (None, None)
        return Scores(
            n_reports=sum(number for number, _, _ in self._scores.values()),
            best_score=score,
            best_job=None if job is None else job.name,
            best_params=None if job is None else dict(job.params),
            best_time_us=time_us,
            best_finished_score=last_score,
            best_finished_job=None if best_finisher is None else self._jobs[best_finisher].name,
        )

    def write(self, isolated_jct_s: Mapping[int, float] | None = None) -> None:
        """Write all rows to the table, with the completion time of each job under the isolated policy, if known."""
        isolated_jct_s = isolated_jct_s or {}
        for job_index in range(len(self._jobs)):
            row = self._rows[job_index]  # every job has left, is interrupted, or was never admitted
            self._table.append((*row, isolated_jct_s.get(job_index)))


def _time(time_us: int) -> int | None:
    return None if time_us == NEVER_US else int(time_us)


def _meets_deadline(job: ElasticJob, finished_us: int | None, now_us: int) -> bool | None:
    if job.deadline_us is None:
        return None
    if finished_us is None:
        return False if now_us >= job.deadline_us else None  # what is done by now has left
    return finished_us <= job.deadline_us
