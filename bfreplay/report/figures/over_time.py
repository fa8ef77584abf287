"""Figures over time: step functions, the part of the window that is shown, and their axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.times import iso_utc
from bfreplay.errors import InputError
from bfreplay.report.figures.axes import DAY_US, calendar_axis, elapsed_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bfreplay.runs.run_record import RunRecord

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

    edge_us: NDArray[np.int64]
    least: NDArray[np.float64]
    mean: NDArray[np.float64]
    most: NDArray[np.float64]
    of_whole: bool = False

    @classmethod
    def exact(cls, edge_us: NDArray[np.int64], height: NDArray[np.int64] | NDArray[np.float64]) -> StepSeries:
        """The function that is ``height (T,)`` between the edges."""
        values = np.asarray(height, dtype=np.float64)
        return cls(np.asarray(edge_us, dtype=np.int64), values, values, values)

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

    def in_columns(self, edge_us: NDArray[np.int64]) -> StepSeries:
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


def columns_of(series: StepSeries, start_us: int, end_us: int, columns: int) -> StepSeries:
    """Return a part of the window, as fine as the columns of a picture allow.

    Parameters
    ----------
    series
        The step function.
    start_us, end_us
        Part of the window of ``series``.
    columns
        Most columns: a part with no more steps is returned step by step, cut at its ends; else in ``even_columns``.
    """
    part = series.between(start_us, end_us)
    return part if len(part.mean) <= columns else series.in_columns(even_columns(start_us, end_us, columns))


def even_columns(start_us: int, end_us: int, columns: int) -> NDArray[np.int64]:
    """Edges (C + 1,) of at most ``columns`` columns of equal width, to the microsecond."""
    return np.unique(np.linspace(start_us, end_us, columns + 1).round().astype(np.int64))


def _over(
    ufunc: np.ufunc, values: NDArray[np.float64], first: NDArray[np.int64], last: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Reduce ``values[first[c]:last[c]]`` of each column; neighbours may share a step."""
    pairs = np.column_stack([first, last]).ravel()
    padded = np.append(values, values[-1])  # reduceat takes no index past the end
    reduced: NDArray[np.float64] = ufunc.reduceat(padded, pairs)[::2]
    return reduced


@dataclass(frozen=True, slots=True)
class Part:
    """A window of a run, or a part of it that begins ``after_us`` microseconds after its start.

    ``is_relative``: times without a calendar.
    """

    start_us: int
    end_us: int
    is_relative: bool = False
    after_us: int = 0

    @classmethod
    def of_record(cls, record: RunRecord) -> Part:
        """The window of the run with this ``run.json``."""
        return cls(record.config.window_start_us, record.config.window_end_us, record.inputs.is_relative)

    def days(self, time_us: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.float64]:
        """Days since 1970-01-01 UTC, or since the start of the window where times are relative."""
        return np.asarray(time_us - (self.start_us if self.is_relative else 0), dtype=np.float64) / DAY_US

    def columns(self, most: int) -> NDArray[np.int64]:
        """Edges of its ``even_columns``."""
        return even_columns(self.start_us, self.end_us, most)

    def inside(self, start_us: int, end_us: int) -> Part:
        """The part between two times.

        Raises
        ------
        InputError
            It is empty, or reaches outside this one.
        """
        if not self.start_us <= start_us < end_us <= self.end_us:
            raise InputError(
                "this part of the window is empty, or reaches outside it",
                value=f"{iso_utc(start_us)} to {iso_utc(end_us)}",
                expected=f"start before end, within {iso_utc(self.start_us)} to {iso_utc(self.end_us)}",
            )
        after_us = self.after_us + start_us - self.start_us
        return replace(self, start_us=start_us, end_us=end_us, after_us=after_us)


@runtime_checkable
class OverTime(Protocol):
    """Data of a figure that can be cut to a part of the window."""

    def between(self, start_us: int, end_us: int) -> OverTime:
        """The same for the part between two times in microseconds since the epoch.

        Raises
        ------
        InputError
            The part is empty, or reaches outside the window.
        NothingToShowError
            There is nothing in it.
        """
        ...


def outer_part(parts: Sequence[Part]) -> Part:
    """From the first start to the last end."""
    first = min(parts, key=lambda part: part.start_us)
    return replace(first, end_us=max(part.end_us for part in parts))


def draw_time_axis(axes: Axes, part: Part, time_zone: str = "UTC") -> None:
    """Limits, ticks and title of the horizontal axis, in the days of ``part``."""
    start, end = (float(day) for day in part.days(np.array([part.start_us, part.end_us])))
    axes.set_xlim(start, end)
    if not part.is_relative:
        calendar_axis(axes, part.start_us, part.end_us, time_zone)
        return
    elapsed_axis(axes, end)
    if part.after_us:
        later = f"{part.after_us / 1e6:,.6g} s after the start"
        axes.set_xlabel(axes.get_xlabel().replace("the start", later))
