"""Local times of a log to UTC: a wall clock shows some times twice, and some never."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from bfreplay.datasets.times import DAY_US, EPOCH, FIRST_TIME_US, HOUR_US, LAST_TIME_US, MICROSECOND, US
from bfreplay.errors import InputError

_CHANGES = (0, 0)
"""Marks an hour in which the offset changes."""

_STAMP = re.compile(r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,6})\d*)?", re.ASCII)


def named_zone(name: str) -> ZoneInfo:
    """Return the zone of an IANA name.

    Raises
    ------
    InputError
        There is no such zone.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InputError(
            "there is no such time zone",
            column="--tz",
            value=name,
            expected="an IANA name such as UTC, Europe/Paris or America/Chicago",
            fix="the cluster's zone is what `timedatectl` shows there; a fixed offset is Etc/GMT-1 for UTC+1 (sic)",
        ) from None


def no_timezone(file: str, export: str) -> InputError:
    """Return the error for a log in local times of which nobody said the zone."""
    return InputError(
        "the times in this log have no zone, so nobody can tell when they were",
        file=file,
        expected="the zone of the machine where the log was written",
        fix=f"give it: --tz Europe/Paris (or --tz UTC); better, export in UTC: {export}",
    )


def wall_clock_us(text: str) -> int | None:
    """Microseconds since 1970-01-01 00:00 on the same clock of ``YYYY-MM-DD[T ]HH:MM:SS[.ffffff]``; else ``None``."""
    match = _STAMP.fullmatch(text)
    if match is None:
        return None
    day = _day_us(text[:10])
    hour, minute, second = int(match[4]), int(match[5]), int(match[6])
    if day is None or hour > 23 or minute > 59 or second > 60:
        return None
    fraction = int(match[7].ljust(6, "0")) if match[7] else 0
    return day + (hour * 3600 + minute * 60 + second) * US + fraction


@lru_cache(maxsize=4_096)
def _day_us(text: str) -> int | None:
    try:
        moment = datetime(int(text[:4]), int(text[5:7]), int(text[8:10]), tzinfo=EPOCH.tzinfo)
    except ValueError:
        return None
    return (moment - EPOCH) // MICROSECOND


class LocalClock:
    """A wall clock of a zone, asked what UTC was."""

    def __init__(self, zone: ZoneInfo) -> None:
        self.zone = zone
        self._of_hour: dict[int, tuple[int, ...]] = {}

    def utc_us(self, wall_us: int) -> tuple[int, ...]:
        """UTC microseconds at which the clock shows ``wall_us`` (see ``wall_clock_us``).

        One time; two, the earlier first, in the hour that is repeated when summer time ends; none in the hour that is
        skipped when it begins.
        """
        hour = wall_us // HOUR_US
        offsets = self._of_hour.get(hour)
        if offsets is None:
            first, last = (self._offsets_at(time_us) for time_us in (hour * HOUR_US, (hour + 1) * HOUR_US - 1))
            # an hour in which the clock is not changed has one offset at both of its ends
            offsets = self._of_hour[hour] = first if first == last and len(first) == 1 else _CHANGES
        if offsets is _CHANGES:
            offsets = self._offsets_at(wall_us)
        return tuple(wall_us - offset for offset in offsets)

    def _offsets_at(self, wall_us: int) -> tuple[int, ...]:
        if not FIRST_TIME_US + DAY_US < wall_us < LAST_TIME_US - DAY_US:
            return (0,)  # the edge of the calendar, where no log is
        naive = (EPOCH + timedelta(microseconds=wall_us)).replace(tzinfo=None)
        found = []
        for fold in (0, 1):
            moment = naive.replace(tzinfo=self.zone, fold=fold)
            offset = moment.utcoffset() or timedelta()
            back = (moment.astimezone(EPOCH.tzinfo)).astimezone(self.zone)
            if back.replace(tzinfo=None, fold=0) == naive:
                found.append(offset // MICROSECOND)
        return tuple(dict.fromkeys(sorted(found, reverse=True)))


def settled(
    start: tuple[int, ...], end: tuple[int, ...], elapsed_us: int | None, slack_us: int = US
) -> list[tuple[int, int]]:
    """Possible pairs of a start and an end: the end is not before the start, and they lie ``elapsed_us`` apart.

    Parameters
    ----------
    start, end
        Candidates from ``LocalClock.utc_us``.
    elapsed_us
        Running time as the log gives it; ``None`` where it does not.
    slack_us
        By how much clocks that count whole seconds may differ.
    """
    pairs = [(s, e) for s in start for e in end if e >= s]
    if elapsed_us is not None:
        pairs = [(s, e) for s, e in pairs if abs(e - s - elapsed_us) <= slack_us]
    return pairs
