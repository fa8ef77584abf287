"""The active jobs as one table of records: admitted, not finished, first come first served."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay.workload import JobSet

NEVER_US = np.iinfo(np.int64).max
"""Time of what never happens."""

ACTIVE_JOB = np.dtype(
    [
        ("job", np.int64),  # position in the job set
        ("count", np.int64),  # nodes held
        ("rate", np.float64),  # samples/s on them, 0 below min_nodes
        ("progress", np.float64),  # samples done
        ("work", np.float64),  # samples to do
        ("preempt_debt", np.float64),  # samples to make up for a preemption before progress goes on
        ("rescale_debt", np.float64),  # the same for a rescale
        ("rescale_cost", np.float64),  # published accounting: samples to subtract at the next event
        ("finish_us", np.int64),  # when the job completes if nothing changes
        ("min_nodes", np.int64),
        ("max_nodes", np.int64),
        ("scale_up_cost_s", np.float64),
        ("scale_down_cost_s", np.float64),
        ("lost", np.int64),  # nodes reclaimed at this instant
        ("span_count", np.int64),  # nodes held during the last interval
        ("span_rate", np.float64),  # its rate
        # what the books say of this job so far; node time in node-microseconds
        ("useful", np.int64),
        ("rescaling", np.int64),
        ("preempted", np.int64),
        ("stalled", np.int64),  # held, but too few to run, or finished unnoticed
        ("rescale_paid", np.float64),  # samples
        ("preempt_paid", np.float64),  # samples
        ("n_starts", np.int64),
        ("n_grown", np.int64),
        ("n_shrunk", np.int64),
        ("n_preempted", np.int64),
        ("admitted_us", np.int64),
        ("first_start_us", np.int64),  # NEVER_US until it runs
        # allocation interval that is open now
        ("open_count", np.int64),
        ("open_since_us", np.int64),
    ],
    align=True,
)


class ActiveJobs:
    """At most ``limit`` active jobs.

    ``records[:n]`` are the active jobs in order of admission; ``throughput`` and ``objective`` ``(limit, K + 1)``
    hold their curves at every count; ``held[j, :count]`` the nodes of job j, last gained last.
    """

    def __init__(self, jobs: JobSet, limit: int, n_nodes: int) -> None:
        self.jobs = jobs
        self.limit = limit
        self.n = 0
        # no job can use more nodes than there are; what lies above is neither stored nor searched
        self._max_nodes = [max(job.min_nodes, min(job.max_nodes, n_nodes)) for job in jobs]
        width = max(self._max_nodes) + 1
        self.records: NDArray[np.void] = np.zeros(limit, dtype=ACTIVE_JOB)
        self.throughput = np.zeros((limit, width))
        self.objective = np.zeros((limit, width))
        self.held = np.full((limit, width), -1, dtype=np.int32)
        self.row_of_job = np.full(len(jobs), -1, dtype=np.int32)

    @property
    def is_full(self) -> bool:
        """Whether no further job may be admitted."""
        return self.n >= self.limit

    def admit(self, index: int, now_us: int) -> None:
        """Add job ``index`` of the job set, without nodes."""
        job = self.jobs[index]
        row, max_nodes = self.n, self._max_nodes[index]
        record = np.zeros((), dtype=ACTIVE_JOB)
        record["job"] = index
        record["work"] = job.work_samples
        record["finish_us"] = NEVER_US
        record["min_nodes"] = job.min_nodes
        record["max_nodes"] = max_nodes
        record["scale_up_cost_s"] = job.scale_up_cost_s
        record["scale_down_cost_s"] = job.scale_down_cost_s
        record["admitted_us"] = now_us
        record["first_start_us"] = NEVER_US
        record["open_since_us"] = now_us
        self.records[row] = record
        for table, curve, weight in (
            (self.throughput, job.throughput, 1.0),
            (self.objective, job.objective_curve, job.weight),
        ):
            table[row] = 0.0
            table[row, : max_nodes + 1] = weight * curve.table(max_nodes)
        self.row_of_job[index] = row
        self.n += 1

    def remove(self, row: int) -> None:
        """Take out the job in ``row``; those after it move up. Its nodes must have been freed before."""
        self.row_of_job[self.records[row]["job"]] = -1
        for array in (self.records, self.throughput, self.objective, self.held):
            array[row : self.n - 1] = array[row + 1 : self.n]
        self.n -= 1
        self.row_of_job[self.records[row : self.n]["job"]] -= 1
