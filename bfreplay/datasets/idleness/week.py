"""Idle nodes by hour of the day and by weekday, in a time zone."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.idleness.pool import PoolSeries
from bfreplay.datasets.log.metadata import EventsMetadata
from bfreplay.datasets.times import DAY_US, EPOCH, HOUR_US, MICROSECOND, unknown_zone
from bfreplay.documents import Json
from bfreplay.errors import InputError

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")

_THURSDAY = 3  # 1970-01-01


@dataclass(frozen=True, slots=True)
class Week:
    """Idle nodes in each hour of each weekday.

    Parameters
    ----------
    time_zone
        IANA name of the zone of the hours.
    unknown_zone
        Zone of the log's source if it is not a known name, so that UTC was used.
    covered_us, node_us
        7 weekdays (Monday first) of 24 hours: time of the window in each, and the integral of idle nodes
        over it. A cell weighs as much as the window covers of it. The hour that is skipped when clocks go forward is
        short, the one that is repeated when they go back is long.
    """

    time_zone: str
    unknown_zone: str | None
    covered_us: tuple[tuple[int, ...], ...]
    node_us: tuple[tuple[int, ...], ...]

    @property
    def mean(self) -> tuple[tuple[float | None, ...], ...]:
        """Mean idle nodes of each cell, 7 x 24; ``None`` if the window covers nothing of it."""
        return tuple(_means(*rows) for rows in zip(self.node_us, self.covered_us, strict=True))

    @property
    def by_hour(self) -> tuple[float | None, ...]:
        """Mean idle nodes of each of the 24 hours, all weekdays together."""
        return _means(
            *([sum(hours) for hours in zip(*cells, strict=True)] for cells in (self.node_us, self.covered_us))
        )

    @property
    def by_weekday(self) -> tuple[float | None, ...]:
        """Mean idle nodes of each of the 7 weekdays, all hours together."""
        return _means([sum(weekday) for weekday in self.node_us], [sum(weekday) for weekday in self.covered_us])

    def to_dict(self) -> dict[str, Json]:
        """Return JSON-ready values; ``null`` for the mean of cells that are not covered."""
        return {
            "time_zone": self.time_zone,
            "unknown_time_zone": self.unknown_zone,
            "weekdays": list(WEEKDAYS),
            "mean_idle_nodes": [list(weekday) for weekday in self.mean],
            "covered_h": [[time_us / HOUR_US for time_us in weekday] for weekday in self.covered_us],
            "by_hour": list(self.by_hour),
            "by_weekday": list(self.by_weekday),
        }


def choose_zone(time_zone: str | None, metadata: EventsMetadata) -> tuple[str, tzinfo, str | None] | None:
    """Return name and clock of the zone to describe a log in, and a name in its metadata that is not a zone.

    ``time_zone`` if given, else the zone of the log's source if it is an IANA name, else UTC. ``None`` for a log with
    relative times: it has no hour of the day.

    Raises
    ------
    InputError
        ``time_zone`` is unknown, or given for a log with relative times.
    """
    if metadata.time_origin == "relative":
        if time_zone is None:
            return None
        raise InputError(
            "a time zone is given, but the times of the log are relative: it has no hour of the day",
            value=time_zone,
            fix="omit the time zone",
        )
    name = metadata.source_timezone if time_zone is None else time_zone
    try:
        return name, UTC if name == "UTC" else ZoneInfo(name), None  # UTC is known without any time zone data
    except (KeyError, ValueError, OSError):  # no such name; not the shape of a name; a folder of names
        if time_zone is not None:
            raise unknown_zone(time_zone) from None
        return "UTC", UTC, name


def week_cells(pool_series: PoolSeries, zone: tzinfo) -> NDArray[np.int64]:
    """Return time covered and integral of idle nodes by hour of the week of ``zone``, ``(2, 7 * 24)``: parts add up."""
    time_us, node_us = cells = np.zeros((2, 7 * 24), np.int64)
    for start, end, offset in equal_offsets(pool_series.start_us, pool_series.end_us, zone):
        first, last = (start + offset) // HOUR_US, (end + offset - 1) // HOUR_US
        hour: NDArray[np.int64] = np.arange(first, last + 1)
        edges = np.clip(np.append(hour, last + 1) * HOUR_US - offset, start, end)
        cell = (hour // 24 + _THURSDAY) % 7 * 24 + hour % 24
        np.add.at(time_us, cell, np.diff(edges))
        np.add.at(node_us, cell, np.diff(pool_series.node_us_to(edges)))
    return cells


def week_of(cells: NDArray[np.int64], zone_name: str, unknown_zone: str | None = None) -> Week:
    """Return the idle nodes by hour and weekday of the zone called ``zone_name``, from its ``week_cells``."""
    return Week(zone_name, unknown_zone, *(tuple(map(tuple, part.reshape(7, 24).tolist())) for part in cells))


def equal_offsets(start_us: int, end_us: int, zone: tzinfo) -> Iterator[tuple[int, int, int]]:
    """Split a window where the clocks of ``zone`` change: start, end, offset from UTC in microseconds.

    A change that is undone within a day would be missed; no zone has one.
    """
    begin = position_us = start_us
    offset = _offset_us(position_us, zone)
    while position_us < end_us:
        ahead = min(position_us + DAY_US, end_us)
        if _offset_us(ahead, zone) != offset:
            ahead = position_us + bisect(
                range(position_us, ahead), False, key=lambda time_us: _offset_us(time_us, zone) != offset
            )
            yield begin, ahead, offset
            begin, offset = ahead, _offset_us(ahead, zone)
        position_us = ahead
    if begin < end_us:
        yield begin, end_us, offset


def _offset_us(time_us: int, zone: tzinfo) -> int:
    moment: datetime = EPOCH + timedelta(microseconds=time_us)
    offset = moment.astimezone(zone).utcoffset()
    if offset is None:
        raise TypeError(f"{zone!r} has no offset from UTC")
    return offset // MICROSECOND


def _means(node_us: Sequence[int], covered_us: Sequence[int]) -> tuple[float | None, ...]:
    return tuple(part_us / time_us if time_us else None for part_us, time_us in zip(node_us, covered_us, strict=True))
