"""Batch jobs with the nodes by which node events were built, and the names of jobs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bfreplay.datasets.batch_jobs import BatchJobs
from bfreplay.datasets.ingest.occupancy.job_names import JobNames
from bfreplay.datasets.ingest.occupancy.machine import NEVER
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.occupancy.state_changes import Plan, Sweep


def batch_jobs(record: ScheduleRecord, plan: Plan, names: JobNames) -> Iterator[BatchJobs]:
    """Yield the jobs that overlap the window, piece by piece, sorted by start and job.

    They are whole, from the start to the time at which their nodes are free. A job that never ends has the end of the
    log. Nodes outside the inventory are left out. A job that gets missing nodes later has a further row for these.
    """
    begin_us, stop_us = plan.window_us
    for taken in Sweep(record, plan, is_noted=True).taken():
        if len(taken) and taken["start_us"][0] > stop_us:
            return
        is_kept = (taken["end_us"] > begin_us) & (taken["start_us"] <= stop_us) & (taken["node"] < plan.n_kept)
        taken = taken[is_kept]
        if not len(taken):
            continue
        taken = taken[np.lexsort((taken["node"], taken["slot"], taken["job_key"], taken["start_us"]))]
        is_first = np.ones(len(taken), np.bool_)
        is_first[1:] = (np.diff(taken["start_us"]) != 0) | (np.diff(taken["slot"]) != 0)
        first = np.flatnonzero(is_first)
        jobs = taken[first]
        end_us = np.where(jobs["end_us"] == NEVER, plan.log_end_us, jobs["end_us"])
        yield BatchJobs(
            names.of(jobs["job_key"]),
            np.ascontiguousarray(jobs["start_us"]),
            end_us,
            np.append(first, len(taken)),
            taken["node"].astype(np.int32),
        )
