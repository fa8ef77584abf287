"""Figures over time: their axis, and the part of the window that they show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, Self, runtime_checkable

import numpy as np

from bfreplay.datasets.times import iso_utc
from bfreplay.errors import InputError
from bfreplay.report.figures_campaign import Span
from bfreplay.report.idleness_axes import calendar_axis, elapsed_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bfreplay.replay.result import RunResult


@dataclass(frozen=True, slots=True)
class Part(Span):
    """A window of a run, or a part of it that begins ``after_us`` microseconds after its start."""

    after_us: int = 0

    @classmethod
    def whole(cls, run: RunResult) -> Self:
        """The window of ``run``."""
        span = Span.of_record(run.record)
        return cls(span.start_us, span.end_us, span.is_relative)

    def inside(self, start_us: int, end_us: int) -> Self:
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


def draw_time_axis(axes: Axes, part: Part) -> None:
    """Limits, ticks and title of the horizontal axis, in the days of ``part``."""
    start, end = (float(day) for day in part.days(np.array([part.start_us, part.end_us])))
    axes.set_xlim(start, end)
    if not part.is_relative:
        calendar_axis(axes, part.start_us, part.end_us, "UTC")
        return
    elapsed_axis(axes, end)
    if part.after_us:
        later = f"{part.after_us / 1e6:,.6g} s after the start"
        axes.set_xlabel(axes.get_xlabel().replace("the start", later))
