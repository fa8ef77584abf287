"""Delays of batch jobs that a run caused: of their record's nodes, propagated through the recorded schedule."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bfreplay.datasets import NodeEvents
from bfreplay.datasets.arrow_columns import as_arrow
from bfreplay.datasets.batch_delays import BatchDelays, propagated_delays
from bfreplay.datasets.batch_jobs import BatchJobs, load_batch_jobs
from bfreplay.datasets.log.metadata import SourceFile
from bfreplay.errors import printable
from bfreplay.replay.tables import TIME, Column, schema_from
from bfreplay.runs.run_record import BatchDelayCounts

BATCH_DELAY_COLUMNS = (
    Column("job", pa.string(), "batch job, as the log names it"),
    Column("start", TIME, "its recorded start"),
    Column("n_nodes", pa.int32(), "its nodes"),
    Column("n_held", pa.int32(), "of them: a training job held the node at the recorded start"),
    Column("delay_s", pa.float64(), "seconds from the recorded start until all its nodes are clear"),
)  # fmt: skip
BATCH_DELAYS = schema_from(BATCH_DELAY_COLUMNS)


@dataclass(frozen=True, slots=True)
class BatchJobsOfRun:
    """The batch jobs of the log of a run, and the file that they are from."""

    jobs: BatchJobs
    window_start_us: int
    source: SourceFile

    @classmethod
    def load(cls, path: str | PathLike[str], log: NodeEvents) -> BatchJobsOfRun:
        """Read the file; errors as ``load_batch_jobs``."""
        return cls(load_batch_jobs(Path(path), log), log.window_start_us, SourceFile.of(Path(path)))

    def delays(self, meetings: NDArray[np.void], clear_us: int, end_us: int) -> tuple[BatchDelayCounts, pa.Table]:
        """Return the figures of all delays, and the table of the jobs that are late.

        Parameters
        ----------
        meetings
            ``(H,)`` of ``pool_tables.MET``.
        clear_us
            Time to clear the nodes of a job.
        end_us
            End of the run: batch jobs that start later do not count. Those that started before the window are not
            counted either; they only hold their nodes.
        """
        jobs = self.jobs.take(self.jobs.start_us <= end_us)
        delays = propagated_delays(jobs, meetings["time_us"], meetings["node"], clear_us)
        return _counts(delays, self.window_start_us), _table(delays)


def _counts(delays: BatchDelays, window_start_us: int) -> BatchDelayCounts:
    worst = delays.worst
    return BatchDelayCounts(
        n_jobs=int(np.count_nonzero(delays.jobs.start_us >= window_start_us)),
        n_jobs_met=delays.n_jobs_held,
        n_jobs_delayed=delays.n_jobs_delayed,
        total_us=delays.total_us,
        node_us=delays.node_us,
        direct_us=delays.direct_us,
        direct_node_us=delays.direct_node_us,
        quantiles_s={str(percent): delay_us / 1e6 for percent, delay_us in delays.quantiles_us.items()},
        worst_job=None if worst is None else printable(worst[0]).replace("\n", "\\n"),
        worst_us=0 if worst is None else worst[1],
        n_nodes_unmatched=delays.n_unmatched,
    )


def _table(delays: BatchDelays) -> pa.Table:
    late_jobs = np.flatnonzero(delays.delay_us)
    names = pa.array([str(delays.jobs.job[job_index]) for job_index in late_jobs.tolist()], pa.string())
    numbers = (counts[late_jobs].astype(np.int32) for counts in (delays.jobs.n_nodes, delays.n_held))
    columns = [
        names,
        as_arrow(delays.jobs.start_us[late_jobs], TIME),
        *(as_arrow(number, pa.int32()) for number in numbers),
        as_arrow(delays.delay_us[late_jobs] / 1e6, pa.float64()),
    ]
    return pa.Table.from_arrays(columns, schema=BATCH_DELAYS)
