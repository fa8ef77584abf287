"""Delays of batch jobs that a run caused: of their record's nodes, propagated through the recorded schedule."""

from __future__ import annotations

from dataclasses import dataclass
from operator import mul
from os import PathLike
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.datasets import NodeEvents
from bfreplay.datasets.arrow_columns import as_arrow
from bfreplay.datasets.batch_jobs import BatchJobs, load_batch_jobs
from bfreplay.datasets.log.metadata import SourceFile
from bfreplay.errors import InputError, printable
from bfreplay.replay.tables import TIME, Column, schema_from
from bfreplay.runs.run_record import BatchDelayCounts

PERCENTS = (50, 90, 99)
_NEVER_US = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True)
class BatchDelays:
    """Delay of each batch job, and figures of all.

    ``direct`` figures are the cost of clearing alone: ``clear_us`` for each job that met a held node. The others
    include waiting for earlier jobs that ended late. A job is a row of ``jobs``.

    Parameters
    ----------
    jobs
        The batch jobs (J).
    clear_us
        Time that it takes to clear the nodes of a job.
    n_held
        Nodes that a training held at the recorded start of each job, ``(J,) int64``.
    delay_us
        Time from the recorded start of each job to the delayed one, ``(J,) int64``.
    n_unmatched
        Nodes taken from a training at a time at which no job started on them.
    """

    jobs: BatchJobs
    clear_us: int
    n_held: NDArray[np.int64]
    delay_us: NDArray[np.int64]
    n_unmatched: int

    @property
    def n_jobs_held(self) -> int:
        """Jobs that met a held node."""
        return int(np.count_nonzero(self.n_held))

    @property
    def n_jobs_delayed(self) -> int:
        """Jobs that started late."""
        return int(np.count_nonzero(self.delay_us))

    @property
    def total_us(self) -> int:
        """Sum of all delays."""
        return sum(self.delay_us.tolist())

    @property
    def node_us(self) -> int:
        """Sum of delay times nodes."""
        late = np.flatnonzero(self.delay_us)  # whole numbers of Python do not overflow
        return sum(map(mul, self.delay_us[late].tolist(), self.jobs.n_nodes[late].tolist()))

    @property
    def direct_us(self) -> int:
        """Sum of all delays by clearing alone."""
        return self.n_jobs_held * self.clear_us

    @property
    def direct_node_us(self) -> int:
        """Sum of delay by clearing alone times nodes."""
        return self.clear_us * int(self.jobs.n_nodes[self.n_held > 0].sum())

    @property
    def quantiles_us(self) -> dict[int, int]:
        """Delay that 50, 90 and 99 % of the delayed jobs do not exceed, by percentage; empty without one."""
        late = np.sort(self.delay_us[self.delay_us > 0])
        return {percent: int(late[-(-percent * len(late) // 100) - 1]) for percent in PERCENTS if len(late)}

    @property
    def worst(self) -> tuple[str, int] | None:
        """Name and delay of the job that is delayed most, the first one of equal ones; ``None`` without one."""
        if not self.n_jobs_delayed:
            return None
        job_index = int(self.delay_us.argmax())
        return str(self.jobs.job[job_index]), int(self.delay_us[job_index])


def propagated_delays(
    jobs: BatchJobs, held_time_us: NDArray[np.int64], held_node: NDArray[np.int32], clear_us: int
) -> BatchDelays:
    """Return the delays of batch jobs that find a training on their nodes, under a scheduler that cannot rearrange.

    A job starts at its recorded start, or later when its nodes are clear, on the same nodes and in the same order:
    ``clear_us`` after its recorded start if a training held any of them then, and not before the delayed end of an
    earlier job that had ended on one of them by then according to the record. It runs as long as recorded. Jobs that
    share a node and overlap in the record do not wait for each other. At one time, jobs that began earlier end first;
    then jobs start in the order of their rows, and one of no length ends at once.
    So delays spread to other jobs and do not add up: none exceeds ``clear_us``.

    Parameters
    ----------
    jobs
        The jobs.
    held_time_us, held_node
        Times at which a node was taken from a training because it became busy, and the nodes, ``(H,)`` each, sorted
        by time, each node once at a time.
    clear_us
        Time that it takes to clear the nodes of a job, 0 or more.

    Raises
    ------
    InputError
        A negative ``clear_us``.
    """
    if clear_us < 0:
        raise InputError("the time to clear nodes is negative", column="clear_us", value=clear_us, expected="0 or more")
    holds_us, hold_nodes = np.asarray(held_time_us, np.int64), np.asarray(held_node, np.int32)
    n_nodes = 1 + max(int(jobs.node.max(initial=-1)), int(hold_nodes.max(initial=-1)))
    by_end = np.argsort(jobs.end_us, kind="stable")
    n_holds, delay_us = np.zeros(len(jobs), np.int64), np.zeros(len(jobs), np.int64)
    intervals = jobs.start_us, jobs.end_us, jobs.first, jobs.node
    n_matches = _propagate(*intervals, by_end, holds_us, hold_nodes, int(clear_us), n_nodes, n_holds, delay_us)
    return BatchDelays(jobs, int(clear_us), n_holds, delay_us, len(holds_us) - int(n_matches))


@compiled
def _propagate(
    start_us: NDArray[np.int64],
    end_us: NDArray[np.int64],
    first: NDArray[np.int64],
    node: NDArray[np.int32],
    by_end: NDArray[np.int64],
    hold_us: NDArray[np.int64],
    hold_node: NDArray[np.int32],
    clear_us: int,
    n_nodes: int,
    n_holds: NDArray[np.int64],
    delay_us: NDArray[np.int64],
) -> int:
    """Fill ``n_holds (J,)`` and ``delay_us (J,)``; return the number of held nodes that met a job.

    ``by_end (J,)`` are the jobs in order of their recorded ends.
    """
    clear_from_us = np.full(n_nodes, _NEVER_US)  # delayed end of the jobs that have ended on each node
    last_hold_us = np.full(n_nodes, _NEVER_US)  # last time at which a training lost it
    last_start_us = np.full(n_nodes, _NEVER_US)  # last such time at which a job started on it
    n_matches, n_ends, n_losses = 0, 0, 0
    for j in range(len(start_us)):
        instant_us = start_us[j]
        while n_ends < len(by_end) and end_us[by_end[n_ends]] <= instant_us:
            p = by_end[n_ends]
            n_ends += 1
            for n in node[first[p] : first[p + 1]]:  # one of no length that is still to come has no delay yet
                clear_from_us[n] = max(clear_from_us[n], end_us[p] + delay_us[p])
        while n_losses < len(hold_us) and hold_us[n_losses] <= instant_us:
            last_hold_us[hold_node[n_losses]] = hold_us[n_losses]
            n_losses += 1
        late_us = instant_us
        for n in node[first[j] : first[j + 1]]:
            late_us = max(late_us, clear_from_us[n])
            if last_hold_us[n] == instant_us:
                n_holds[j] += 1
                if last_start_us[n] != instant_us:
                    last_start_us[n] = instant_us
                    n_matches += 1
        if n_holds[j] > 0:
            late_us = max(late_us, instant_us + clear_us)
        delay_us[j] = late_us - instant_us
        if end_us[j] == instant_us:
            for n in node[first[j] : first[j + 1]]:
                clear_from_us[n] = late_us
    return n_matches


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
