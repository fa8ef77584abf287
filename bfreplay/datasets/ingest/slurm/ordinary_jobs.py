"""Jobs of many rows at once, with nothing to report about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.ingest.occupancy.spool import JobIntervals


@dataclass(frozen=True, slots=True)
class OrdinaryJobs:
    """Jobs (J) that ended, on known nodes, in the order of their rows, with nothing to report about them.

    Attributes
    ----------
    row
        Row of each job, ``(J,)``.
    intervals
        When it ran, and where; all nodes are listed.
    is_completed
        Whether its state is COMPLETED, ``(J,)``.
    submitted
        Returns when a row was submitted, as in the log.
    has_restarts
        True if the log says that none was restarted.
    """

    row: NDArray[np.int64]
    intervals: JobIntervals
    is_completed: NDArray[np.bool_]
    submitted: Callable[[int], object]
    has_restarts: bool

    def part(self, begin: int, end: int) -> OrdinaryJobs:
        """Return the jobs from position ``begin`` up to ``end``."""
        intervals, is_completed = self.intervals.part(begin, end), self.is_completed[begin:end]
        return replace(self, row=self.row[begin:end], intervals=intervals, is_completed=is_completed)
