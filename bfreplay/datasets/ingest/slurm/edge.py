"""Counter of rows at the edge of a log, which tells a cut from a coincidence."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.times import iso_utc

LEAST_AT_EDGE = 10


class Edge:
    """Counter of the rows at the very first, or very last, time.

    Many rows there are a cut if they have nothing else in common: a job array starts at one time, but was submitted at
    one time too; jobs running at the opening of a window were submitted at many.

    Parameters
    ----------
    direction
        -1 for the first time, 1 for the last.
    """

    def __init__(self, direction: int) -> None:
        self._direction = direction
        self._time_us: int | None = None
        self._others: set[object] = set()
        self.count = 0

    def add(self, time_us: int, other: object) -> None:
        """Add a row's time, and a value that related rows would share (``None``: not known)."""
        if self._time_us is None or (time_us - self._time_us) * self._direction > 0:
            self._time_us, self.count, self._others = time_us, 0, set()
        if time_us == self._time_us:
            self.count += 1
            if len(self._others) < LEAST_AT_EDGE:
                self._others.add(object() if other is None else other)

    def add_all(self, times_us: NDArray[np.int64], other: Callable[[int], object]) -> None:
        """Add rows; ``other`` returns the value of the row at a position of ``times_us``."""
        edge_us = int(times_us.max() if self._direction > 0 else times_us.min())
        if self._time_us is None or (edge_us - self._time_us) * self._direction >= 0:
            for position in np.flatnonzero(times_us == edge_us).tolist():
                self.add(edge_us, other(position))

    @property
    def is_cut(self) -> bool:
        """True if at least ten rows, ten of them different, are at the edge."""
        return len(self._others) >= LEAST_AT_EDGE

    @property
    def time_text(self) -> str:
        """Time for the report."""
        return "" if self._time_us is None else iso_utc(self._time_us)
