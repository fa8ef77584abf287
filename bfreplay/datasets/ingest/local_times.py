"""Local times of a log to UTC, for all formats: a wall clock shows some times twice, and some never.

Each format has a ``Clock`` that reads its texts. This module converts them from a zone to UTC and resolves ambiguous
times.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta
from functools import lru_cache
from typing import ClassVar, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.ingest.occupancy.import_report import ImportReport
from bfreplay.datasets.ingest.reader import ReadOptions, or_none
from bfreplay.datasets.times import DAY_US, EPOCH, FIRST_TIME_US, HOUR_US, LAST_TIME_US, MICROSECOND, US, unknown_zone
from bfreplay.errors import InputError

Candidates = tuple[int, ...]
"""Possible UTC microseconds of a local time, ascending: one, two, or none (the zone skips it)."""

RowPlace = tuple[str, int | None, str]
"""Place of a time for the report: file, line, text."""

TIMES_MOVE = "by how much times are wrong is not known"
"""Reason that a wrong zone has no amount."""

_T = TypeVar("_T")
_CHANGES = (0, 0)
"""Marks an hour in which the offset changes."""

_STAMP = re.compile(r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,6})\d*)?", re.ASCII)


def zone_of_name(zone_name: str) -> ZoneInfo:
    """Return the zone of an IANA name.

    Raises
    ------
    InputError
        Unknown zone.
    """
    try:
        return ZoneInfo(zone_name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise unknown_zone(zone_name) from None


def wall_clock_us(cell_text: str) -> int | None:
    """Return microseconds since 1970-01-01 00:00 on the clock of ``YYYY-MM-DD[T ]HH:MM:SS[.ffffff]``; else ``None``."""
    stamp_match = _STAMP.fullmatch(cell_text)
    if stamp_match is None:
        return None
    day_start_us = _day_us(cell_text[:10])
    hour, minute, second = int(stamp_match[4]), int(stamp_match[5]), int(stamp_match[6])
    if day_start_us is None or hour > 23 or minute > 59 or second > 60:
        return None
    fraction = int(stamp_match[7].ljust(6, "0")) if stamp_match[7] else 0
    return day_start_us + (hour * 3600 + minute * 60 + second) * US + fraction


def offset_us(time_zone: str) -> int:
    """Return the microseconds that ``Z``, ``UTC``, ``+02``, ``+0200`` or ``+02:00`` is ahead of UTC.

    Raises
    ------
    ValueError
        The offset is too large for any clock.
    """
    if time_zone in ("Z", "z", "UTC"):
        return 0
    offset_hours, offset_minutes = int(time_zone[1:3]), int(time_zone[-2:]) if len(time_zone) > 3 else 0
    if offset_hours > 23 or offset_minutes > 59:
        raise ValueError("no offset from UTC")
    return (1 if time_zone[0] == "+" else -1) * (offset_hours * 60 + offset_minutes) * 60 * US


@lru_cache(maxsize=4_096)
def _day_us(cell_text: str) -> int | None:
    day = or_none(date.fromisoformat, cell_text)
    return None if day is None else (day - EPOCH.date()) // MICROSECOND


class LocalClock:
    """Wall clock of a zone, converted to UTC."""

    def __init__(self, time_zone: ZoneInfo) -> None:
        self.zone = time_zone
        self._of_hour: dict[int, tuple[int, ...]] = {}

    def utc_us(self, wall_us: int) -> Candidates:
        """Return the UTC microseconds at which the clock shows ``wall_us`` (see ``wall_clock_us``).

        One time; two, the earlier first, in the hour that is repeated when summer time ends; none in the hour that is
        skipped when it begins.
        """
        offsets_us = self._offsets_in(wall_us // HOUR_US)
        if offsets_us is _CHANGES:
            offsets_us = self._offsets_at(wall_us)
        return tuple(wall_us - offset_us for offset_us in offsets_us)

    def plain_utc_us(self, wall_us: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return UTC microseconds of times on the clock, ``(J,)``; right are those in hours without a change."""
        distinct_hours, hour_of = np.unique(wall_us // HOUR_US, return_inverse=True)
        offsets = [self._offsets_in(hour) for hour in distinct_hours.tolist()]
        is_plain = np.array([hour_offsets is not _CHANGES for hour_offsets in offsets], np.bool_)
        return wall_us - np.array([hour_offsets[0] for hour_offsets in offsets], np.int64)[hour_of], is_plain[hour_of]

    def _offsets_in(self, hour: int) -> tuple[int, ...]:
        """Return the offset in an hour since the epoch, or ``_CHANGES``."""
        offsets_us = self._of_hour.get(hour)
        if offsets_us is None:
            first, last_offsets = (self._offsets_at(time_us) for time_us in (hour * HOUR_US, (hour + 1) * HOUR_US - 1))
            # an hour without a clock change has one offset at both ends
            offsets_us = self._of_hour[hour] = first if first == last_offsets and len(first) == 1 else _CHANGES
        return offsets_us

    def _offsets_at(self, wall_us: int) -> tuple[int, ...]:
        if not FIRST_TIME_US + DAY_US < wall_us < LAST_TIME_US - DAY_US:
            return (0,)  # the edge of the calendar, without logs
        naive = (EPOCH + timedelta(microseconds=wall_us)).replace(tzinfo=None)
        offsets_us = []
        for fold in (0, 1):
            local_moment = naive.replace(tzinfo=self.zone, fold=fold)
            offset_from_utc = local_moment.utcoffset() or timedelta()
            moment_again = (local_moment.astimezone(EPOCH.tzinfo)).astimezone(self.zone)
            if moment_again.replace(tzinfo=None, fold=0) == naive:
                offsets_us.append(offset_from_utc // MICROSECOND)
        return tuple(dict.fromkeys(sorted(offsets_us, reverse=True)))


def possible_pairs(
    start_time: Candidates, end_time: Candidates, elapsed_us: int | None, slack_us: int = US
) -> list[tuple[int, int]]:
    """Return the possible pairs of start and end: the end not before the start, ``elapsed_us`` apart.

    Parameters
    ----------
    start_time, end_time
        Candidates from ``LocalClock.utc_us``.
    elapsed_us
        Running time in the log; ``None`` if it has none.
    slack_us
        Tolerance for clocks that count whole seconds.
    """
    pairs = [(start_us, end_us) for start_us in start_time for end_us in end_time if end_us >= start_us]
    if elapsed_us is not None:
        pairs = [(start_us, end_us) for start_us, end_us in pairs if abs(end_us - start_us - elapsed_us) <= slack_us]
    return pairs


class Clock:
    """Zone of local times, and the rule for ambiguous ones.

    Parameters
    ----------
    time_zone
        Name of the zone of times without one; ``None``: unknown.
    fold
        Rule for ambiguous times that nothing else resolves: ``"reject"``, ``"earlier"`` or ``"later"``.

    Raises
    ------
    InputError
        Unknown zone.

    Attributes
    ----------
    folded_warning
        Warning about times resolved by ``fold``.
    counts
        Number of times by how they were resolved: ``"settled"``, ``"folded"``, and kinds of the format.
    """

    folded_warning: ClassVar[str]

    def __init__(self, time_zone: str | None, fold: str, report: ImportReport) -> None:
        self.zone = time_zone
        self._local = None if time_zone is None else LocalClock(zone_of_name(time_zone))
        self._fold = fold
        self._report = report
        self.counts: Counter[str] = Counter()

    def by_fold(self, possible: Sequence[_T], row_place: RowPlace) -> _T:
        """Return the first or the last of several times in order, with a warning."""
        self.counts["folded"] += 1
        self._report.warn(self.folded_warning, *row_place)
        return possible[0] if self._fold == "earlier" else possible[-1]


class IntervalClock(Clock, ABC):
    """Clock for intervals with start, end and running time.

    Parameters
    ----------
    export
        Command for an export in UTC, for messages.

    Attributes
    ----------
    skipped_warning
        Warning about times that the zone skips.
    """

    skipped_warning: ClassVar[str]

    def __init__(self, options: ReadOptions, report: ImportReport, export: str, time_zone: str | None) -> None:
        super().__init__(time_zone, options.dst_fold, report)
        self._export = export

    def utc_us(self, wall_us: int, file_name: str) -> Candidates:
        """Return the possible UTC microseconds of a local time in a file; see ``LocalClock.utc_us``.

        Raises
        ------
        InputError
            The zone is unknown.
        """
        if self._local is None:
            raise InputError(
                "the times in this log have no zone",
                file=file_name,
                expected="the zone of the machine where the log was written",
                fix=f"give it: --tz Europe/Paris (or --tz UTC); better, export in UTC: {self._export}",
            )
        return self._local.utc_us(wall_us)

    @abstractmethod
    def ambiguous(self, row_place: RowPlace) -> InputError:
        """Return the error for ambiguous times, if ``fold`` is ``"reject"``."""

    def resolve(
        self,
        start_time: Candidates,
        end_time: Candidates | None,
        elapsed_us: int | None,
        row_place: RowPlace,
        slack_us: int = US,
    ) -> tuple[int, int | None] | None:
        """Resolve start and end; an end of ``None`` stays ``None``. Returns ``None`` if the zone skips one of them.

        Parameters
        ----------
        elapsed_us, slack_us
            See ``possible_pairs``.

        Raises
        ------
        InputError
            Several are possible, and ``fold`` is ``"reject"``.
        """
        if not start_time or (end_time is not None and not end_time):
            self._report.warn(self.skipped_warning, *row_place)
            return None
        if len(start_time) == 1 and (end_time is None or len(end_time) == 1):
            return start_time[0], None if end_time is None else end_time[0]
        time_pairs: Sequence[tuple[int, int | None]]
        if end_time is None:
            time_pairs = [(time_us, None) for time_us in start_time]
        else:
            time_pairs = possible_pairs(start_time, end_time, elapsed_us, slack_us)
            time_pairs = time_pairs or possible_pairs(start_time, end_time, None)
            if not time_pairs:  # it ends before it starts in any case: the record warns of it
                return start_time[0], end_time[-1]
        if len(time_pairs) == 1:
            self.counts["settled"] += 1
            return time_pairs[0]
        if self._fold == "reject":
            raise self.ambiguous(row_place)
        return self.by_fold(time_pairs, row_place)
