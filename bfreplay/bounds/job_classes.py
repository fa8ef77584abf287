"""Inputs of a bound: the pool over time, in intervals or in cells of similar size, and classes of equal jobs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets import NodeEvents
from bfreplay.datasets.idleness.observe import observe
from bfreplay.datasets.idleness.pool import PoolSeries
from bfreplay.workload import ElasticJob, Restart
from bfreplay.workload.change_costs import Cost, lowest


class Horizon(NamedTuple):
    """Window of a replay, cut into I intervals from one pool event to the next.

    Parameters
    ----------
    start_us : (I,) int64
        Start of each, microseconds since the epoch; ascending.
    seconds : (I,) float64
        Length of each, > 0.
    idle : (I,) int32
        Idle nodes during each.
    reclaimed : (I,) int32
        Nodes reclaimed when it begins.
    """

    start_us: NDArray[np.int64]
    seconds: NDArray[np.float64]
    idle: NDArray[np.int32]
    reclaimed: NDArray[np.int32]

    @classmethod
    def of(cls, events: NodeEvents) -> Horizon:
        """Read ``events`` once; memory grows with nodes and, by 24 bytes each, with pool events."""
        horizons: list[Horizon] = []
        cls.read(events, horizons.append)
        columns = [list(column) for column in zip(*horizons, strict=True)]
        horizons.clear()
        return cls(*map(_concatenate, columns))

    @classmethod
    def read(cls, events: NodeEvents, take_part: Callable[[Horizon], object]) -> None:
        """Read ``events`` once, and call ``take_part`` with one part of the window after the other.

        Memory grows with nodes, not with events.
        """
        reclaims = np.zeros(1, np.int64)

        def take(pool: PoolSeries) -> None:
            nonlocal reclaims
            durations_us = np.diff(pool.time_us, append=pool.end_us)
            is_lasting = durations_us > 0  # an event at the very end of the window, or of a part, begins nothing in it
            reclaims = np.append(reclaims[-1:], pool.reclaimed)
            take_part(
                cls(
                    pool.time_us[is_lasting],
                    durations_us[is_lasting] * 1e-6,
                    pool.idle[is_lasting].astype(np.int32),
                    reclaims[is_lasting].astype(np.int32),
                )
            )

        observe(events, take, counts_lengths=False)

    @property
    def n_intervals(self) -> int:
        """Number of intervals."""
        return int(self.start_us.size)

    @property
    def most_idle(self) -> int:
        """Most idle nodes of any interval."""
        return int(self.idle.max())

    @property
    def end_us(self) -> int:
        """End of the last interval."""
        return int(self.start_us[-1]) + round(float(self.seconds[-1]) * 1e6)

    def until(self, time_us: int) -> Horizon:
        """Return the part before ``time_us``, which must be after the start."""
        inside = self.start_us < time_us
        seconds = np.minimum(self.seconds[inside], (time_us - self.start_us[inside]) * 1e-6)
        return Horizon(self.start_us[inside], seconds, self.idle[inside], self.reclaimed[inside])


def _concatenate(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Return the parts as one array, and forget them: years of a large machine are long."""
    whole_array = np.concatenate(parts)
    parts.clear()
    return whole_array


class JobClass(NamedTuple):
    """Jobs with the same curve and bounds.

    Where their rescale costs differ, the least of them stands for all: a bound may be too high, never too low.

    Parameters
    ----------
    rate : (K + 1,) float64
        Samples/s at each count, 0 below ``min_nodes``; K is ``max_nodes``, or the size of the machine if less.
    min_nodes
        Fewest nodes to run on.
    scale_up_s, scale_down_s
        Least rescale costs of the jobs, seconds.
    submit_us, work_samples : (N,)
        Submit time of each, ascending, and its work; ``inf`` for endless work.
    """

    rate: NDArray[np.float64]
    min_nodes: int
    scale_up_s: float
    scale_down_s: float
    submit_us: NDArray[np.int64]
    work_samples: NDArray[np.float64]

    @property
    def n_jobs(self) -> int:
        """Number of jobs."""
        return int(self.submit_us.size)


def job_classes(jobs: Iterable[ElasticJob], most_nodes: int) -> tuple[JobClass, ...]:
    """Group ``jobs``, which are in order of submission; counts above ``most_nodes`` are skipped.

    Jobs that need more nodes, or make no progress on any count, are in no class.
    """
    groups: dict[tuple[int, bytes], list[ElasticJob]] = {}
    for job in jobs:
        if job.min_nodes > most_nodes:
            continue
        class_rate = job.fastest.table(min(job.max_nodes, most_nodes))
        if not class_rate[job.min_nodes :].any():
            continue
        groups.setdefault((job.min_nodes, class_rate.tobytes()), []).append(job)
    classes = []
    for (min_nodes, rate_bytes), members in groups.items():
        class_rate = np.frombuffer(rate_bytes, np.float64).copy()
        class_rate[:min_nodes] = 0.0
        classes.append(
            JobClass(
                rate=class_rate,
                min_nodes=min_nodes,
                # of one kind: loops compile once
                scale_up_s=min(_least_s(job, job.scale_up_cost_s) for job in members),
                scale_down_s=min(_least_s(job, job.scale_down_cost_s) for job in members),
                submit_us=np.array([job.submit_us for job in members], np.int64),
                work_samples=np.array([job.work_samples for job in members], np.float64),
            )
        )
    return tuple(classes)


def merge_classes(classes: tuple[JobClass, ...], at_most: int) -> tuple[JobClass, ...]:
    """Merge classes; each result is as good as the best of its parts at every count: bounds never fall."""
    if len(classes) <= at_most:
        return classes
    by_rate = sorted(classes, key=lambda job_class: float(job_class.rate.max()))
    cut_positions = [len(by_rate) * cut_number // at_most for cut_number in range(at_most + 1)]
    return tuple(_as_one(by_rate[low:high]) for low, high in itertools.pairwise(cut_positions))


def _as_one(classes: list[JobClass]) -> JobClass:
    class_rate = np.zeros(max(job_class.rate.size for job_class in classes))
    for job_class in classes:
        class_rate[: job_class.rate.size] = np.maximum(class_rate[: job_class.rate.size], job_class.rate)
    submit_us = np.concatenate([job_class.submit_us for job_class in classes])
    order = np.argsort(submit_us, kind="stable")
    return JobClass(
        rate=class_rate,
        min_nodes=min(job_class.min_nodes for job_class in classes),
        scale_up_s=min(job_class.scale_up_s for job_class in classes),
        scale_down_s=min(job_class.scale_down_s for job_class in classes),
        submit_us=submit_us[order],
        work_samples=np.concatenate([job_class.work_samples for job_class in classes])[order],
    )


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Partition of the intervals into C cells in B blocks of time.

    Parameters
    ----------
    cell : (I,) int64
        Cell of each interval of the horizon.
    block : (C,) int64
        Block of each cell.
    seconds, idle : (C,) float64
        Length of each cell, and its mean number of idle nodes.
    block_end_us : (B,) int64
        End of the last interval that begins in each block.
    """

    cell: NDArray[np.int64]
    block: NDArray[np.int64]
    seconds: NDArray[np.float64]
    idle: NDArray[np.float64]
    block_end_us: NDArray[np.int64]

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return int(self.block_end_us.size)

    @classmethod
    def of(cls, horizon: Horizon, n_blocks: int, n_sizes: int) -> Cells:
        """Return blocks of equal length, each cut by the quantiles of the pool's size in it."""
        start = (horizon.start_us - horizon.start_us[0]) * 1e-6
        length = float(start[-1] + horizon.seconds[-1])
        block_of = np.minimum((start / length * n_blocks).astype(np.int64), n_blocks - 1)
        # a long interval may leave blocks without a start
        block_of = np.cumsum(np.diff(block_of, prepend=block_of[0]) > 0)
        cell = np.zeros(horizon.n_intervals, np.int64)
        blocks: list[int] = []
        for block in range(int(block_of[-1]) + 1):
            inside = np.flatnonzero(block_of == block)
            size_limits = np.quantile(horizon.idle[inside], np.linspace(0, 1, n_sizes + 1)[1:-1])
            _, size_class = np.unique(
                np.searchsorted(size_limits, horizon.idle[inside], side="left"), return_inverse=True
            )
            cell[inside] = len(blocks) + size_class
            blocks += [block] * (int(size_class.max()) + 1)
        seconds: NDArray[np.float64] = np.bincount(cell, horizon.seconds).astype(np.float64)
        last_interval = np.append(np.flatnonzero(np.diff(block_of)), horizon.n_intervals - 1)
        end_us = horizon.start_us[last_interval] + np.round(horizon.seconds[last_interval] * 1e6).astype(np.int64)
        idle: NDArray[np.float64] = np.bincount(cell, horizon.seconds * horizon.idle) / seconds
        return cls(cell, np.array(blocks, np.int64), seconds, idle, end_us)

    def arrivals(self, jobs: JobClass) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the jobs, and their work, submitted by the end of each block: ``(B,)`` each."""
        n_arrivals = np.searchsorted(jobs.submit_us, self.block_end_us, side="left")
        cumulative_work = np.concatenate([[0.0], np.cumsum(jobs.work_samples)])
        return n_arrivals, cumulative_work[n_arrivals]

    def block_of_job(self, jobs: JobClass) -> NDArray[np.int64]:
        """Return the block of the submit time of each job of the class that is submitted in the window."""
        n_there = int(self.arrivals(jobs)[0][-1])
        return np.searchsorted(self.block_end_us, jobs.submit_us[:n_there], side="right")


def _least_s(job: ElasticJob, cost: Cost) -> float:
    """Return the seconds that every rescale costs at least: 0 for pauses, as one may end another."""
    return 0.0 if job.restart == Restart.PAUSE else lowest(cost)
