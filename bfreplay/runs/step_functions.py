"""Step functions of time, such as the number of nodes of a job: exact, or reduced to columns of a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.idleness.pool import StepColumns

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Number = TypeVar("Number", np.int64, np.float64)

FINEST = 100_000
"""Most steps that a page holds of one series."""


@dataclass(frozen=True, slots=True, eq=False)
class StepSeries:
    """A step function over a window, reduced if it has too many steps.

    Parameters
    ----------
    edge_us : (T + 1,) int64
        Microseconds since the epoch, strictly increasing; the first and last are the window's.
    least, mean, most : (T,) float64
        Values between two edges; all three are equal without merged steps.
    of_whole
        True if the merged steps had whole numbers as heights: then so are integrals, which means have to the rounding.
    """

    edge_us: Ints
    least: Floats
    mean: Floats
    most: Floats
    of_whole: bool = False

    @classmethod
    def exact(cls, edge_us: Ints, height: Ints | Floats) -> StepSeries:
        """The function that is ``height (T,)`` between the edges."""
        values = np.asarray(height, dtype=np.float64)
        return cls(np.asarray(edge_us, dtype=np.int64), values, values, values)

    @property
    def counts(self) -> Ints:
        """(T,) heights of an exact function of whole numbers."""
        return self.mean.astype(np.int64)

    @property
    def is_exact(self) -> bool:
        """True if every step of the function is kept."""
        return self.least is self.most

    @property
    def area_us(self) -> float:
        """Its integral over the window, in microseconds times the unit of its heights."""
        return float(np.sum(self.mean * np.diff(self.edge_us)))

    @property
    def mean_height(self) -> float:
        """Its mean over the window."""
        return self.area_us / float(self.edge_us[-1] - self.edge_us[0])

    def in_columns(self, edge_us: Ints) -> StepSeries:
        """Least, mean and most in each of C columns, strictly increasing ``edge_us (C + 1,)`` inside the window.

        Nothing is sampled: a step of any length shows in ``least`` and ``most`` of every column that it lasts in, and
        counts in ``mean`` by the time that it lasts.
        """
        first = np.searchsorted(self.edge_us, edge_us[:-1], side="right") - 1
        last = np.searchsorted(self.edge_us, edge_us[1:], side="left")  # exclusive
        # whole steps, less what of the outer two lies outside: no column carries the rounding errors of others
        areas = self.mean * np.diff(self.edge_us)
        area = _over(np.add, np.rint(areas) if self.of_whole else areas, first, last)
        area -= self.mean[first] * (edge_us[:-1] - self.edge_us[first])
        area -= self.mean[last - 1] * (self.edge_us[last] - edge_us[1:])
        least, most = _over(np.minimum, self.least, first, last), _over(np.maximum, self.most, first, last)
        return StepSeries(
            np.asarray(edge_us, dtype=np.int64), least, np.clip(area / np.diff(edge_us), least, most), most
        )

    def between(self, start_us: int, end_us: int) -> StepSeries:
        """The part between two times inside the window; steps at its ends are cut there."""
        first = int(np.searchsorted(self.edge_us, start_us, side="right")) - 1
        last = int(np.searchsorted(self.edge_us, end_us, side="left"))
        edges = np.concatenate([[start_us], self.edge_us[first + 1 : last], [end_us]]).astype(np.int64)
        if self.is_exact:
            return StepSeries.exact(edges, self.mean[first:last])
        return StepSeries(edges, self.least[first:last], self.mean[first:last], self.most[first:last])

    def coarse(self, finest: int = FINEST) -> StepSeries:
        """Itself if it has at most ``finest`` steps; else as many columns of equal width, to the microsecond."""
        if len(self.mean) <= finest:
            return self
        return self.in_columns(even_columns(int(self.edge_us[0]), int(self.edge_us[-1]), finest))


def even_columns(start_us: int, end_us: int, columns: int) -> Ints:
    """Edges (C + 1,) of at most ``columns`` columns of equal width, to the microsecond."""
    return _distinct(np.linspace(start_us, end_us, columns + 1).round().astype(np.int64))


def _distinct(edge_us: Ints) -> Ints:
    """Edges in order, each once; ``np.unique`` hashes whole numbers, which takes ten times as long for many."""
    is_first = np.append(True, np.diff(edge_us) > 0)
    distinct: Ints = edge_us[is_first]
    return distinct


def _over(ufunc: np.ufunc, values: Floats, first: Ints, last: Ints) -> Floats:
    """Reduce ``values[first[c]:last[c]]`` of each column; neighbours may share a step."""
    pairs = np.column_stack([first, last]).ravel()
    values_and_end = np.append(values, values[-1])  # reduceat takes no index past the end
    return ufunc.reduceat(values_and_end, pairs)[::2]


def lasting_steps(edge_us: Ints, height: NDArray[Number]) -> tuple[Ints, NDArray[Number]]:
    """Return edges and heights without steps of no length."""
    lasts = np.diff(edge_us) > 0
    return np.append(edge_us[:-1][lasts], edge_us[-1]), height[lasts]


def join_equal_steps(edge_us: Ints, height: Ints) -> tuple[Ints, Ints]:
    """Return edges and heights with neighbours of equal height as one step."""
    is_new = np.append(True, height[1:] != height[:-1])
    return np.append(edge_us[:-1][is_new], edge_us[-1]), height[is_new]


def sum_intervals(count: Ints, since_us: Ints, until_us: Ints, start_us: int, end_us: int) -> tuple[Ints, Ints]:
    """Return the edges and heights of the sum of A intervals over a window; neighbours differ.

    Parameters
    ----------
    count, since_us, until_us : (A,) int64
        Height, start and end of each interval, in microseconds since the epoch, inside the window.
    start_us, end_us
        The window.
    """
    times = np.concatenate([[start_us, end_us], since_us, until_us])
    change = np.concatenate([[0, 0], count, -count])
    edge_us, place = np.unique(times, return_inverse=True)
    at_edge = np.zeros(edge_us.size, dtype=np.int64)
    np.add.at(at_edge, place, change)
    return join_equal_steps(edge_us, np.cumsum(at_edge)[:-1])


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
        self._parts: list[tuple[Ints, Ints]] = []  # where steps begin, and their heights
        self._start_us, self._end_us = start_us, end_us
        self._numbers_of_columns = columns
        self._columns: StepColumns | None = None
        self._time_at_us = np.zeros(1, np.int64)

    def add(self, edge_us: Ints, height: Ints) -> None:
        """Add the part that ends where the last one begins: ``height (T,)`` between ``edge_us (T + 1,)``."""
        missing = int(height.max()) + 1 - self._time_at_us.size
        self._time_at_us = np.pad(self._time_at_us, (0, max(0, missing)))
        np.add.at(self._time_at_us, height, np.diff(edge_us))
        if self._columns is not None:
            self._columns.add(edge_us, height)
            return
        edge_us, height = join_equal_steps(edge_us, height)
        part = edge_us[:-1], height
        if self._parts and self._parts[-1][1][0] == part[1][-1]:  # one step, over the end of the part
            since_us, heights = self._parts.pop()
            part = np.append(part[0], since_us[1:]), np.append(part[1], heights[1:])
            self.n_steps -= len(heights)
        self._parts.append(part)
        self.n_steps += len(part[1])

    def shrink(self) -> None:
        """Forget single steps if there are more than columns."""
        if self._columns is not None or self.n_steps <= max(self._numbers_of_columns):
            return
        edges = [even_columns(self._start_us, self._end_us, number) for number in self._numbers_of_columns]
        self._columns = StepColumns(_distinct(np.sort(np.concatenate(edges))))
        self._columns.add(*self._steps())
        self._parts = []

    def series(self) -> StepSeries:
        """Return the function: exact if it was not shrunk."""
        if self._columns is None:
            return StepSeries.exact(*self._steps())
        edge_us = self._columns.edge_us
        least, most = (numbers.astype(np.float64) for numbers in (self._columns.least, self._columns.most))
        mean = np.clip(self._columns.area_us / np.diff(edge_us), least, most)
        return StepSeries(edge_us, least, mean, most, of_whole=True)

    def time_at(self) -> tuple[Ints, Ints]:
        """Return the heights that occur, ascending, and the microseconds of each."""
        heights = np.flatnonzero(self._time_at_us)
        return heights, self._time_at_us[heights]

    def _steps(self) -> tuple[Ints, Ints]:
        since_us, height = (np.concatenate(arrays[::-1]) for arrays in zip(*self._parts, strict=True))
        return np.append(since_us, self._end_us), height
