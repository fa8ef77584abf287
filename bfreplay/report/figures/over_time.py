"""Figures over time: the part of the window that is shown, and their axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.times import iso_utc
from bfreplay.errors import InputError
from bfreplay.report.figures.axes import DAY_US, calendar_axis, elapsed_axis
from bfreplay.runs.step_functions import even_columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bfreplay.runs.run_record import RunRecord


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
