"""Pictures over time: the span of the window that is shown, and its axis with the ticks of a calendar."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import TYPE_CHECKING, Protocol, runtime_checkable
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.idleness.week import equal_offsets
from bfreplay.datasets.times import DAY_US, EPOCH, MICROSECOND, iso_utc
from bfreplay.errors import InputError
from bfreplay.runs.step_functions import even_columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bfreplay.runs.run_record import RunRecord


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """A window of a run, or a part of it that begins ``after_us`` microseconds after its start.

    ``is_relative``: times without a calendar.
    """

    start_us: int
    end_us: int
    is_relative: bool = False
    after_us: int = 0

    @classmethod
    def of_record(cls, record: RunRecord) -> TimeSpan:
        """The window of the run with this ``run.json``."""
        return cls(record.config.window_start_us, record.config.window_end_us, record.inputs.is_relative)

    def days(self, time_us: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.float64]:
        """Days since 1970-01-01 UTC, or since the start of the window where times are relative."""
        return np.asarray(time_us - (self.start_us if self.is_relative else 0), dtype=np.float64) / DAY_US

    def columns(self, most_columns: int) -> NDArray[np.int64]:
        """Edges of its ``even_columns``."""
        return even_columns(self.start_us, self.end_us, most_columns)

    def inside(self, start_us: int, end_us: int) -> TimeSpan:
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


def outer_part(spans: Sequence[TimeSpan]) -> TimeSpan:
    """From the first start to the last end."""
    first = min(spans, key=lambda span: span.start_us)
    return replace(first, end_us=max(span.end_us for span in spans))


def draw_time_axis(axes: Axes, span: TimeSpan, time_zone: str = "UTC") -> None:
    """Limits, ticks and title of the horizontal axis, in the days of ``span``."""
    start_day, end_day = (float(edge_day) for edge_day in span.days(np.array([span.start_us, span.end_us])))
    axes.set_xlim(start_day, end_day)
    if not span.is_relative:
        calendar_axis(axes, span.start_us, span.end_us, time_zone)
        return
    relative_axis(axes, end_day)
    if span.after_us:
        start_words = f"{span.after_us / 1e6:,.6g} s after the start"
        axes.set_xlabel(axes.get_xlabel().replace("the start", start_words))


def calendar_axis(axes: Axes, start_us: int, end_us: int, zone_name: str) -> None:
    """Ticks of the horizontal axis, days since 1970-01-01 UTC, at even steps of the clocks of the zone of that name."""
    ticks = calendar_ticks(start_us, end_us, UTC if zone_name == "UTC" else ZoneInfo(zone_name))
    axes.set_xticks([time_us / DAY_US for time_us in ticks.time_us], labels=ticks.labels)
    axes.set_xlabel(f"time ({zone_name}){'; ticks on Mondays' if ticks.mondays else ''}", fontsize=10)


def relative_axis(axes: Axes, days: float) -> None:
    """Ticks of the horizontal axis, days since the start of the window, in a unit that suits its length."""
    from matplotlib.ticker import MaxNLocator

    units: tuple[tuple[str, float, list[float]], ...] = (
        ("days", 1, [1, 2, 5, 10]),
        ("hours", 24, [1, 2, 3, 6, 10]),
        ("minutes", 1_440, [1, 2, 3, 6, 10]),
    )
    smallest_unit: tuple[str, float, list[float]] = ("seconds", 86_400, [1, 2, 3, 6, 10])
    unit_name, per_day, tick_steps = next((unit for unit in units if days * unit[1] >= 2), smallest_unit)
    tick_places = MaxNLocator(nbins=9, steps=tick_steps).tick_values(0.0, days * per_day)
    shown_places = [float(place) for place in tick_places if 0 <= place <= days * per_day * (1 + 1e-9)]
    axes.set_xticks([place / per_day for place in shown_places], labels=[f"{place:,.6g}" for place in shown_places])
    axes.set_xlabel(f"{unit_name} since the start of the window", fontsize=10)


_S = 1_000_000
_CLOCK_STEPS_US = (
    *(digit * 10**power for power in range(6) for digit in (1, 2, 5)),
    *(n * _S for n in (1, 2, 5, 10, 15, 30)),
    *(n * 60 * _S for n in (1, 2, 5, 10, 15, 30)),
    *(n * 3_600 * _S for n in (1, 2, 3, 6, 12)),
)
_DAY_STEPS = (1, 2, 7, 14)
_MONTH_STEPS = (1, 2, 3, 6, *(12 * digit * 10**power for power in range(4) for digit in (1, 2, 5)))
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_ROOM, _ROOM_FOR_LONG = 10, 6


@dataclass(frozen=True, slots=True)
class CalendarTicks:
    """T ticks: ``time_us`` since the epoch, ``labels``, and whether they are at the starts of weeks, ``mondays``."""

    time_us: tuple[int, ...]
    labels: tuple[str, ...]
    mondays: bool = False


def calendar_ticks(start_us: int, end_us: int, zone: tzinfo) -> CalendarTicks:
    """At most ten ticks from ``start_us`` to ``end_us``, at the finest even step of the clocks of ``zone`` that allows.

    Steps are parts of a day from its midnight; 1 or 2 days; 1 or 2 weeks from a Monday; months; years. The second line
    of a label says what the label before does not: the year, and the day where the first line is a time of day.
    """
    for step_us in _CLOCK_STEPS_US:
        most_ticks = _ROOM if step_us >= 60 * _S else _ROOM_FOR_LONG
        if end_us - start_us <= most_ticks * step_us:
            tick_times_us = _on_clocks(start_us, end_us, step_us, zone)
            if len(tick_times_us) <= most_ticks:
                return _labels(tick_times_us, zone, _clock(tick_times_us), _day_month)
    first_day, last_day = _local(start_us, zone).date(), _local(end_us, zone).date()
    for step_days in _DAY_STEPS:
        if (last_day - first_day).days <= _ROOM * step_days:
            tick_times_us = _midnights(_every_days(first_day, last_day, step_days), start_us, end_us, zone)
            if len(tick_times_us) <= _ROOM:
                return _labels(tick_times_us, zone, _day_month, mondays=step_days >= 7)
    for step_months in _MONTH_STEPS:
        if (last_day - first_day).days <= _ROOM * 31 * step_months:
            tick_times_us = _midnights(_every_months(first_day, last_day, step_months), start_us, end_us, zone)
            if len(tick_times_us) <= _ROOM:
                return _labels(tick_times_us, zone, _month if step_months < 12 else _only_year)
    raise AssertionError("a window of more years than a calendar has")


def _on_clocks(start_us: int, end_us: int, step_us: int, zone: tzinfo) -> list[int]:
    """Times at which clocks show whole steps, twice where they are put back."""
    tick_times_us: list[int] = []
    for since_us, end_of_offset, offset in equal_offsets(start_us, end_us, zone):
        first_us = -(-(since_us + offset) // step_us) * step_us - offset
        tick_times_us += range(first_us, end_of_offset, step_us)
    if (end_us + (_local(end_us, zone).utcoffset() or timedelta()) // MICROSECOND) % step_us == 0:
        tick_times_us.append(end_us)
    return tick_times_us


def _every_days(first: date, last: date, step: int) -> Iterator[date]:
    """Whole weeks start on Mondays."""
    first_day = -(-(first.toordinal() - 1) // step) * step + 1  # 0001-01-01, ordinal 1, is a Monday
    return (date.fromordinal(ordinal) for ordinal in range(first_day, last.toordinal() + 1, step))


def _every_months(first: date, last: date, step: int) -> Iterator[date]:
    first_month, last_month = (day.year * 12 + day.month - 1 for day in (first, last))
    months = range(-(-first_month // step) * step, last_month + 1, step)
    return (date(month // 12, month % 12 + 1, 1) for month in months)


def _midnights(days: Iterable[date], start_us: int, end_us: int, zone: tzinfo) -> list[int]:
    """Their first instants, those inside the window."""
    times_us = [(datetime.combine(midnight_day, time(), zone) - EPOCH) // MICROSECOND for midnight_day in days]
    return [time_us for time_us in times_us if start_us <= time_us <= end_us]


def _labels(
    times_us: list[int],
    zone: tzinfo,
    first_line: Callable[[datetime], str],
    second_line: Callable[[datetime], str] | None = None,
    *,
    mondays: bool = False,
) -> CalendarTicks:
    """Labels with ``second_line`` where it changes, and the year likewise."""
    labels, day_before, year_before = [], "", 0
    for time_us in times_us:
        local_time = _local(time_us, zone)
        day_words = "" if second_line is None else second_line(local_time)
        second_words = [day_words] if day_words != day_before else []
        if local_time.year != year_before:
            second_words.append(str(local_time.year))
        first_words = first_line(local_time)
        labels.append("\n".join(line for line in (first_words, " ".join(second_words)) if line))
        day_before, year_before = day_words, local_time.year
    return CalendarTicks(tuple(times_us), tuple(labels), mondays)


def _clock(times_us: list[int]) -> Callable[[datetime], str]:
    """Hours and minutes, and seconds and parts of them where one of the ticks has some."""
    if all(time_us % (60 * _S) == 0 for time_us in times_us):
        return lambda moment: f"{moment:%H:%M}"
    if all(time_us % _S == 0 for time_us in times_us):
        return lambda moment: f"{moment:%H:%M:%S}"
    return lambda moment: f"{moment:%H:%M:%S.%f}".rstrip("0").rstrip(".")


def _day_month(moment: datetime) -> str:
    return f"{moment.day} {_MONTHS[moment.month - 1]}"


def _month(moment: datetime) -> str:
    return _MONTHS[moment.month - 1]


def _only_year(_moment: datetime) -> str:
    return ""


def _local(time_us: int, zone: tzinfo) -> datetime:
    utc_time: datetime = EPOCH + timedelta(microseconds=time_us)
    return utc_time.astimezone(zone)
