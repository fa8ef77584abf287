"""Units of numbers in tables, as ``--map ROLE=COLUMN:UNIT`` gives them and as names of columns hint at them."""

from __future__ import annotations

import re
from collections.abc import Mapping

UNIT_NS: Mapping[str, int] = {
    "ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "min": 60_000_000_000, "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
}  # fmt: skip
"""Unit -> nanoseconds in it."""

TIME_UNITS = ("s", "ms", "us", "ns")
SPAN_UNITS = ("s", "ms", "us", "ns", "min", "h", "d")
UNITS_OF: Mapping[str, tuple[str, ...]] = {
    "start": TIME_UNITS, "end": TIME_UNITS, "elapsed": SPAN_UNITS, "limit": SPAN_UNITS,
}  # fmt: skip
"""Role -> units that its numbers can have."""

_WORDS: Mapping[str, tuple[str, ...]] = {
    "ns": ("ns", "nsec", "nsecs", "nanos", "nanosecond", "nanoseconds"),
    "us": ("us", "usec", "usecs", "micros", "microsecond", "microseconds"),
    "ms": ("ms", "msec", "msecs", "millis", "millisecond", "milliseconds"),
    "s": ("s", "sec", "secs", "second", "seconds"),
    "min": ("min", "mins", "minute", "minutes"),
    "h": ("h", "hr", "hrs", "hour", "hours"),
    "d": ("d", "day", "days"),
}
_UNIT_OF_WORD = {word: unit for unit, words in _WORDS.items() for word in words}
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def unit_in_name(name: str) -> str | None:
    """Unit that a column's name says (``dur_min``, ``runtimeHours``, ``Elapsed [ms]``), ``None`` if it says none."""
    found = [_UNIT_OF_WORD[part.lower()] for part in _PARTS.findall(name) if part.lower() in _UNIT_OF_WORD]
    return found[-1] if found else None
