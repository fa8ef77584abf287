"""The window cut into cells of similar pool sizes, for prices that do not change from event to event."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay.bounds.horizon import Horizon
from bfreplay.bounds.job_classes import JobClass


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """C cells in B blocks of time.

    Parameters
    ----------
    cell : (I,) int64
        In which cell each interval of the horizon lies.
    block : (C,) int64
        Of which block each cell is.
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
        """B."""
        return int(self.block_end_us.size)

    @classmethod
    def of(cls, horizon: Horizon, n_blocks: int, n_sizes: int) -> Cells:
        """Blocks of equal length, each cut by the quantiles of the pool's size in it."""
        start = (horizon.start_us - horizon.start_us[0]) * 1e-6
        length = float(start[-1] + horizon.seconds[-1])
        block_of = np.minimum((start / length * n_blocks).astype(np.int64), n_blocks - 1)
        _, block_of = np.unique(block_of, return_inverse=True)  # a long interval may leave blocks without a start
        cell = np.zeros(horizon.n_intervals, np.int64)
        blocks: list[int] = []
        for block in range(int(block_of[-1]) + 1):
            inside = np.flatnonzero(block_of == block)
            edges = np.quantile(horizon.idle[inside], np.linspace(0, 1, n_sizes + 1)[1:-1])
            _, size = np.unique(np.searchsorted(edges, horizon.idle[inside], side="left"), return_inverse=True)
            cell[inside] = len(blocks) + size
            blocks += [block] * (int(size.max()) + 1)
        seconds: NDArray[np.float64] = np.bincount(cell, horizon.seconds).astype(np.float64)
        last = np.append(np.flatnonzero(np.diff(block_of)), horizon.n_intervals - 1)
        end_us = horizon.start_us[last] + np.round(horizon.seconds[last] * 1e6).astype(np.int64)
        idle: NDArray[np.float64] = np.bincount(cell, horizon.seconds * horizon.idle) / seconds
        return cls(cell, np.array(blocks, np.int64), seconds, idle, end_us)

    def arrivals(self, jobs: JobClass) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Jobs submitted, and work that has come with them, by the end of each block: ``(B,)`` each."""
        by = np.searchsorted(jobs.submit_us, self.block_end_us, side="left")
        work = np.concatenate([[0.0], np.cumsum(jobs.work_samples)])
        return by, work[by]

    def block_of_job(self, jobs: JobClass) -> NDArray[np.int64]:
        """In which block each job of the class that is submitted in time is first there."""
        n_there = int(self.arrivals(jobs)[0][-1])
        return np.searchsorted(self.block_end_us, jobs.submit_us[:n_there], side="right")
