"""What became of every job of the set, whether it ran or not."""

from __future__ import annotations

from typing import Any

import numpy as np

from bfreplay.replay.active import NEVER_US
from bfreplay.replay.tables import RowTable
from bfreplay.workload import ElasticJob, JobSet

_NODE_TIME = ("useful", "rescaling", "preempted", "stalled")


class JobOutcomes:
    """One row a job, in the order of the job set; written at the end."""

    def __init__(self, jobs: JobSet, table: RowTable) -> None:
        self._jobs = jobs
        self._table = table
        self._rows: list[tuple[Any, ...] | None] = [None] * len(jobs)
        self.totals = dict.fromkeys(_NODE_TIME, 0)
        self.samples = 0.0
        self.rescale_samples = 0.0
        self.preempt_samples = 0.0
        self.by_status = dict.fromkeys(("finished", "running", "waiting", "queued", "not_submitted"), 0)
        self.last_finish_us: int | None = None
        self.deadlines = dict.fromkeys(("met", "missed", "open"), 0)
        self._to_start_s: list[float] = []
        self._to_finish_s: list[float] = []

    @property
    def all_finished_us(self) -> int | None:
        """When the last job finished; ``None`` while not all have."""
        return self.last_finish_us if self.by_status["finished"] == len(self._jobs) else None

    def finish(self, record: np.void, now_us: int) -> None:
        """A job has done its work."""
        self.last_finish_us = now_us
        self._enter(record, "finished", now_us, now_us)

    def interrupt(self, record: np.void, end_us: int) -> None:
        """The window ends while a job is active."""
        self._enter(record, "running" if record["rate"] > 0 else "waiting", None, end_us)

    def never_admitted(self, index: int, end_us: int) -> None:
        """The window ends before a job was admitted."""
        job = self._jobs[index]
        status = "queued" if job.submit_us <= end_us else "not_submitted"
        self.by_status[status] += 1
        self._count_deadline(job, None, end_us)
        nothing = (0.0, *([0] * len(_NODE_TIME)), 0.0, 0.0, 0, 0, 0, 0)
        self._rows[index] = (
            job.name, job.model, status, job.submit_us, None, None, None, job.deadline_us,
            _deadline_met(job, None, end_us), job.work_samples, *nothing,
        )  # fmt: skip

    def _enter(self, record: np.void, status: str, finished_us: int | None, now_us: int) -> None:
        index = int(record["job"])
        job = self._jobs[index]
        started = int(record["first_start_us"])
        node_time = [int(record[name]) for name in _NODE_TIME]
        for name, node_us in zip(_NODE_TIME, node_time, strict=True):
            self.totals[name] += node_us
        self.samples += float(record["progress"])
        self.rescale_samples += float(record["rescale_paid"])
        self.preempt_samples += float(record["preempt_paid"])
        self.by_status[status] += 1
        self._count_deadline(job, finished_us, now_us)
        if started != NEVER_US:
            self._to_start_s.append((started - job.submit_us) / 1e6)
        if finished_us is not None:
            self._to_finish_s.append((finished_us - job.submit_us) / 1e6)
        self._rows[index] = (
            job.name, job.model, status, job.submit_us, int(record["admitted_us"]),
            None if started == NEVER_US else started, finished_us, job.deadline_us,
            _deadline_met(job, finished_us, now_us), job.work_samples, float(record["progress"]),
            *node_time, float(record["rescale_paid"]), float(record["preempt_paid"]),
            *(int(record[name]) for name in ("n_starts", "n_grown", "n_shrunk", "n_preempted")),
        )  # fmt: skip

    def _count_deadline(self, job: ElasticJob, finished_us: int | None, now_us: int) -> None:
        if job.deadline_us is not None:
            met = _deadline_met(job, finished_us, now_us)
            self.deadlines["open" if met is None else "met" if met else "missed"] += 1

    def times(self) -> dict[str, Any]:
        """Seconds from submit to first start and to finish, of the jobs that got there: count, median, 95 %."""
        return {
            name: {
                "n_jobs": len(values),
                "median_s": float(np.percentile(values, 50)) if values else None,
                "p95_s": float(np.percentile(values, 95)) if values else None,
            }
            for name, values in (("submit_to_start", self._to_start_s), ("submit_to_finish", self._to_finish_s))
        }

    def write(self) -> None:
        """Hand all rows to the table."""
        for row in self._rows:
            if row is None:
                raise AssertionError("a job has no row: every job is finished, interrupted or never admitted")
            self._table.append(row)


def _deadline_met(job: ElasticJob, finished_us: int | None, now_us: int) -> bool | None:
    if job.deadline_us is None:
        return None
    if finished_us is None:
        return False if now_us > job.deadline_us else None
    return finished_us <= job.deadline_us
