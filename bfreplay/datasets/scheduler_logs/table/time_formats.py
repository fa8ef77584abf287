"""Times written otherwise than in ISO-8601: ``--time-format``, in the terms of ``datetime.strptime``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from bfreplay.datasets.times import EPOCH, MICROSECOND
from bfreplay.errors import InputError

READABLE_TIMES = (
    "2024-10-01T01:32:06Z, 2024-10-01 01:32:06+02:00, 2024-10-01 01:32:06 (with --tz), numbers (epoch seconds, or with "
    '--time-unit), or as --time-format says ("%d.%m.%Y %H:%M:%S")'
)
"""The times that are read, for messages."""

_PROBE = datetime(2013, 11, 24, 17, 38, 49, tzinfo=UTC)
_USUAL = (
    "%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%m/%d/%Y %I:%M:%S %p", "%d/%m/%Y %I:%M:%S %p", "%m/%d/%Y %H:%M:%S",
    "%d/%m/%Y %H:%M:%S", "%m/%d/%Y %I:%M %p", "%m/%d/%Y %H:%M", "%d/%m/%Y %H:%M", "%d-%m-%Y %H:%M:%S",
    "%d-%b-%Y %H:%M:%S", "%d %b %Y %H:%M:%S", "%b %d %Y %H:%M:%S", "%a %b %d %H:%M:%S %Y", "%Y.%m.%d %H:%M:%S",
    "%Y%m%d%H%M%S", "%Y%m%d %H%M%S", "%Y%m%dT%H%M%S",
)  # fmt: skip


def check_time_format(form: str) -> None:
    """Raise ``InputError`` for a format that does not settle day and minute, or that names a zone (``%Z``)."""
    try:
        again = None if "%Z" in form.replace("%%", "") else datetime.strptime(_PROBE.strftime(form), form)
    except ValueError:
        again = None
    if again is None or again.replace(second=0, tzinfo=UTC) != _PROBE.replace(second=0):
        raise InputError(
            "times cannot be read in this format",
            column="--time-format",
            value=form,
            expected="the terms of Python's strptime, with year, month, day, hour and minute (%I only with %p); "
            "offsets by %z, no names of zones",
            fix='for 01.10.2024 13:32:06: --time-format "%d.%m.%Y %H:%M:%S"; '
            'for 10/01/2024 01:32:06 PM: --time-format "%m/%d/%Y %I:%M:%S %p"',
        )


def formatted_us(text: str, form: str) -> tuple[int, bool] | None:
    """Microseconds since 1970-01-01 00:00 of a time in ``form``, and whether they are UTC (``%z``) or of a wall clock.

    ``None`` if the text is not in that format.
    """
    if not text.isascii():
        return None
    try:
        moment = datetime.strptime(text, form)  # whose zone is told by the offset, or by --tz
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        return (moment.replace(tzinfo=UTC) - EPOCH) // MICROSECOND, False
    return (moment - EPOCH) // MICROSECOND, True


def fitting_formats(texts: Sequence[str]) -> list[str]:
    """Usual formats in which all of ``texts`` can be read."""
    return [form for form in _USUAL if texts and all(formatted_us(text, form) is not None for text in texts)]


def how_to_read(texts: Sequence[str]) -> str:
    """What to type so that ``texts`` are read as times."""
    forms = fitting_formats(texts)
    if not forms:
        return 'say how the times are written, in the terms of strptime, e.g. --time-format "%d.%m.%Y %H:%M:%S"'
    return "say how the times are written: " + ", or ".join(f'--time-format "{form}"' for form in forms)
