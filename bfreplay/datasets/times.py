"""Times at the border: text and numbers in, integer microseconds since the epoch (UTC) inside."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from bfreplay.errors import InputError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
US = 1_000_000
"""Microseconds in a second."""
HOUR_US = 3_600 * US
NOT_KNOWN_US = -1
"""Time that a log does not have."""

DAY_US = 24 * HOUR_US
FIRST_TIME_US = (datetime(1, 1, 1, tzinfo=UTC) - EPOCH) // MICROSECOND
LAST_TIME_US = (datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC) - EPOCH) // MICROSECOND
EXPECTED_TIME = "ISO-8601 such as 2021-02-10T00:48:48Z (UTC where no zone is given), or seconds since 1970-01-01 UTC"
ISO_FIX = "write year, month and day in this order, such as 2024-07-01 or 2024-07-01T08:00"

_ISO = re.compile(
    r"(?P<whole>\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?)(?P<fraction>[.,]\d+)?"
    r"\s*(?P<zone>Z|z|[+-]\d\d(?::?\d\d)?)?"
)
OUTSIDE_CALENDAR = "outside the years 1 to 9999"
_NOT_A_NUMBER = "not a number"
_FINER_UNITS = {"milliseconds": 3, "microseconds": 6, "nanoseconds": 9}
_YEAR_2200_S = (datetime(2200, 1, 1, tzinfo=UTC) - EPOCH) // timedelta(seconds=1)
_LENGTH_TO_SECONDS = len("2021-02-10T00:48:48")


def in_calendar(time_us: int) -> bool:
    """Return whether a time lies in the years 1 to 9999."""
    return FIRST_TIME_US <= time_us <= LAST_TIME_US


def iso_utc(time_us: int) -> str:
    """Write a time as ISO-8601 UTC, with six decimals only where it is not a whole second.

    Years outside 1..9999 cannot be written that way and come out as ``<n> us after 1970-01-01Z``.
    """
    try:
        moment = EPOCH + timedelta(microseconds=int(time_us))
    except OverflowError:
        return f"{time_us} us after 1970-01-01Z"
    return moment.replace(tzinfo=None).isoformat() + "Z"


def iso_span(start_us: int, end_us: int) -> str:
    """Write two times as ``"2024-07-01T00:00:00Z to 2024-07-05T00:00:00Z"``."""
    return f"{iso_utc(start_us)} to {iso_utc(end_us)}"


def microseconds_of(moment: datetime) -> int:
    """Return microseconds since the epoch; a time without a zone is UTC."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - EPOCH) // MICROSECOND


def parse_time_us(time_value: Any) -> int:
    """Return the exact microseconds since the epoch of a text, number or ``datetime``.

    Raises
    ------
    ValueError
        Not a time, or not a whole number of microseconds; the text says which.
    """
    if isinstance(time_value, datetime):
        if time_value != time_value:  # pandas.NaT, which is a datetime
            raise ValueError("a missing time (NaT)")
        if getattr(time_value, "nanosecond", 0):
            raise ValueError("finer than a microsecond")
        return int(microseconds_of(time_value))
    if isinstance(time_value, bool):
        raise ValueError("a truth value is not a time")
    text = str(time_value).strip()
    match = _ISO.fullmatch(text)
    if match is None:
        return seconds_to_us(text)
    if match["fraction"] and len(match["whole"]) < _LENGTH_TO_SECONDS:
        raise ValueError("a fraction without seconds")
    whole_text = match["whole"]
    if len(whole_text) == 10:
        whole_text += "T00:00"
    seconds = microseconds_of(datetime.fromisoformat(whole_text + (match["zone"] or "Z").upper()))
    return seconds + seconds_to_us("0." + (match["fraction"] or ".0")[1:])


def seconds_to_us(seconds: Any, *, exact: bool = True) -> int:
    """Convert a decimal number of seconds to microseconds.

    Parameters
    ----------
    seconds
        A number or its text; floats count as the shortest decimal that means them.
    exact
        Refuse parts of a microsecond; otherwise round half to even.

    Raises
    ------
    ValueError
        No finite number, too large for 64 bits, or (``exact``) not a whole number of microseconds.
    """
    if isinstance(seconds, bool):
        raise ValueError("a truth value is not a number of seconds")
    text = str(seconds).strip()
    try:
        microseconds = Decimal(text if text.isascii() and "_" not in text else "").scaleb(6)
    except InvalidOperation:
        raise ValueError("not a time") from None
    if microseconds.is_nan():
        raise ValueError(_NOT_A_NUMBER)
    if not microseconds.is_finite() or microseconds.adjusted() > 18:
        raise ValueError("not a finite number of seconds within 292,000 years of 1970")
    whole_us = int(microseconds.to_integral_value())
    if exact and whole_us != microseconds:
        raise ValueError("finer than a microsecond")
    if abs(whole_us) >= 2**63:
        raise ValueError("not a finite number of seconds within 292,000 years of 1970")
    return whole_us


def time_error(value: Any, reason: str, *, file: Any = None, row: int | str | None = None, column: str) -> InputError:
    """Return the error for a time that cannot be read."""
    expected = EXPECTED_TIME
    if "finer" in reason:
        problem = "a time is finer than a microsecond"
        expected, fix = "times that are whole microseconds", "round the times to microseconds"
    elif reason == _NOT_A_NUMBER:
        problem = "a time is nan, which is not a number: it is missing or could not be computed"
        fix = "fill in the time, or drop the row"
    else:
        problem = f"a time is {reason}" if reason == OUTSIDE_CALENDAR else f"a time cannot be read: {reason}"
        fix = _unit_hint(value) or "correct the value, or convert the column to UTC times"
    return InputError(problem, file=file, row=row, column=column, value=value, expected=expected, fix=fix)


def unknown_zone(zone_name: str) -> InputError:
    """Return the error for a name that is not a time zone here."""
    return InputError(
        "unknown time zone",
        column="--tz",
        value=zone_name,
        expected="an IANA name such as UTC, Europe/Paris or America/Chicago",
        fix="`timedatectl` shows a machine's zone; UTC+1 as a fixed offset is Etc/GMT-1: the sign is reversed; if the "
        "name is right, this machine lacks time zone data: pip install tzdata",
    )


def _unit_hint(time_value: Any) -> str | None:
    """Name the unit of a number that is too large for seconds of our time, and how to make seconds of it."""
    try:
        amount = abs(Decimal(str(time_value).strip()))
    except InvalidOperation:
        return None
    if not LAST_TIME_US < amount.scaleb(6) < Decimal("Infinity"):
        return None
    for unit, places in _FINER_UNITS.items():
        if amount.scaleb(-places) < _YEAR_2200_S:
            return f"looks like {unit}: divide by {10**places}"
    return None
