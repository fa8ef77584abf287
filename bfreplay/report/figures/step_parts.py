"""Step functions put together from parts of a window: memory does not grow with the log."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.idleness.pool import StepColumns
from bfreplay.report.figures.over_time import StepSeries, even_columns

_Ints = NDArray[np.int64]


class StepParts:
    """A step function of whole numbers >= 0, put together from parts of its window, the last part first.

    Parameters
    ----------
    start_us, end_us
        The window.
    columns
        Numbers of columns in which it is shown. `shrink` keeps least, mean and most between the edges of all of these.
    """

    def __init__(self, start_us: int, end_us: int, *columns: int) -> None:
        self.n_steps = 0
        self._most_steps = max(columns)
        self._parts: list[tuple[_Ints, _Ints]] = []  # where steps begin, and their heights
        self._end_us = end_us
        self._edge_us = np.unique(np.concatenate([even_columns(start_us, end_us, column) for column in columns]))
        self._columns: StepColumns | None = None
        self._time_at_us = np.zeros(1, np.int64)

    def add(self, edge_us: _Ints, height: _Ints) -> None:
        """Add the part that ends where the last one begins: ``height (T,)`` between ``edge_us (T + 1,)``."""
        missing = int(height.max()) + 1 - self._time_at_us.size
        self._time_at_us = np.pad(self._time_at_us, (0, max(0, missing)))
        np.add.at(self._time_at_us, height, np.diff(edge_us))
        if self._columns is not None:
            self._columns.add(edge_us, height)
            return
        is_new = np.append(True, height[1:] != height[:-1])
        part = edge_us[:-1][is_new], height[is_new]
        if self._parts and self._parts[-1][1][0] == part[1][-1]:  # one step, over the end of the part
            since_us, heights = self._parts.pop()
            part = np.append(part[0], since_us[1:]), np.append(part[1], heights[1:])
            self.n_steps -= len(heights)
        self._parts.append(part)
        self.n_steps += len(part[1])

    def shrink(self) -> None:
        """Forget single steps if there are more than columns."""
        if self._columns is not None or self.n_steps <= self._most_steps:
            return
        self._columns = StepColumns(self._edge_us)
        self._columns.add(*self._steps())
        self._parts = []

    def series(self) -> StepSeries:
        """Return the function: exact if it was not shrunk."""
        if self._columns is None:
            return StepSeries.exact(*self._steps())
        least, most = (each.astype(np.float64) for each in (self._columns.least, self._columns.most))
        mean = np.clip(self._columns.area_us / np.diff(self._edge_us), least, most)
        return StepSeries(self._edge_us, least, mean, most, of_whole=True)

    def time_at(self) -> tuple[_Ints, _Ints]:
        """Return the heights that occur, ascending, and the microseconds of each."""
        heights = np.flatnonzero(self._time_at_us)
        return heights, self._time_at_us[heights]

    def _steps(self) -> tuple[_Ints, _Ints]:
        since_us, height = (np.concatenate(each[::-1]) for each in zip(*self._parts, strict=True))
        return np.append(since_us, self._end_us), height
