"""Times in the cells of tables: texts with and without a zone, numbers, Parquet timestamps."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from bfreplay.datasets.ingest.delimited import Place
from bfreplay.datasets.ingest.local_times import Candidates, IntervalClock, RowPlace, offset_us, wall_clock_us
from bfreplay.datasets.ingest.occupancy.import_report import ImportReport
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.datasets.ingest.table.table_cells import is_missing
from bfreplay.datasets.times import EPOCH, FIRST_TIME_US, LAST_TIME_US, MICROSECOND, US
from bfreplay.errors import InputError

UNIT_DIGITS = {"s": 6, "ms": 3, "us": 0, "ns": -3}
"""Decimal places from each time unit to microseconds."""

ZONE_WRONG = "some times do not exist in the given zone: skipped at the start of summer time, the zone may be wrong"
SKIPPED = "a time that the clock skips"
AMBIGUOUS_CHOSEN = "times in the hour that occurs twice were resolved by --dst-fold"

_TEXT = re.compile(
    r"(\d{4}[-/]\d\d[-/]\d\d)[T ](\d\d:\d\d)(:\d\d(?:[.,]\d+)?)? ?(Z|z|UTC|[+-]\d\d(?::?\d\d)?)?", re.ASCII
)
_NUMBER = re.compile(r"(\d{1,19})(?:\.(\d{1,12}))?", re.ASCII)
_PLAIN_STAMP = len("2021-03-01T00:00:00")
_YEAR_2200_US = 7_258_118_400_000_000
_MOST_UNREAD = 200
_DIGITS_OF_A_DATE = re.compile(r"(?:19|20)\d{12}", re.ASCII)

READABLE_TIMES = (
    "2024-10-01T01:32:06Z, 2024-10-01 01:32:06+02:00, 2024-10-01 01:32:06 (with --tz), numbers (epoch seconds, or with "
    '--time-unit), or in --time-format ("%d.%m.%Y %H:%M:%S")'
)
"""Readable times, for messages."""

_PROBE = datetime(2013, 11, 24, 17, 38, 49, tzinfo=UTC)
_USUAL = (
    *("%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%m/%d/%Y %I:%M:%S %p", "%d/%m/%Y %I:%M:%S %p", "%m/%d/%Y %H:%M:%S"),
    *("%d/%m/%Y %H:%M:%S", "%m/%d/%Y %I:%M %p", "%m/%d/%Y %H:%M", "%d/%m/%Y %H:%M", "%d-%m-%Y %H:%M:%S"),
    *("%d-%b-%Y %H:%M:%S", "%d %b %Y %H:%M:%S", "%b %d %Y %H:%M:%S", "%a %b %d %H:%M:%S %Y", "%Y.%m.%d %H:%M:%S"),
    *("%Y%m%d%H%M%S", "%Y%m%d %H%M%S", "%Y%m%dT%H%M%S"),
)


@dataclass(frozen=True, slots=True)
class Wall:
    """Time on a clock of unknown zone."""

    us: int


@dataclass(frozen=True, slots=True)
class Instant:
    """Time in UTC, for cells that are not text."""

    us: int


class TableClock(IntervalClock):
    """Clock for the times of a table, with a report on how they were read.

    Parameters
    ----------
    options
        ``timezone``, ``dst_fold``, ``time_unit`` and ``time_format`` are used. With a format nothing else is read, not
        even numbers.
    export
        Command for an export in UTC, for messages.

    Raises
    ------
    InputError
        Unknown zone or format.

    Attributes
    ----------
    unread
        The first unreadable texts, for messages.
    """

    skipped_warning, folded_warning = ZONE_WRONG, AMBIGUOUS_CHOSEN

    def __init__(self, options: ReadOptions, report: ImportReport, export: str) -> None:
        if options.time_format is not None:
            check_time_format(options.time_format)
        self._options = options
        self._format = options.time_format
        super().__init__(options, report, export, options.timezone)
        self.likely_unit: str | None = None
        self.unread: list[str] = []
        self._units: dict[str, None] = {}

    def read(self, cell_value: Any, time_unit: str | None = None) -> int | Wall | None:
        """Return UTC microseconds, or a time on a clock of unknown zone; ``None`` for a missing value.

        Parquet timestamps come as ``Instant`` or ``Wall``. Numbers are in ``time_unit``, else in that of the options.

        Raises
        ------
        ValueError
            Not a time.
        """
        if self._format is None and isinstance(cell_value, str) and len(cell_value) == _PLAIN_STAMP:
            wall_us = wall_clock_us(cell_value)
            if wall_us is not None:
                return Wall(wall_us)  # the most frequent form
        if isinstance(cell_value, Wall | Instant):
            return cell_value if isinstance(cell_value, Wall) else cell_value.us
        if is_missing(cell_value):
            return None
        if isinstance(cell_value, bool):
            raise ValueError("a truth value is not a time")
        if isinstance(cell_value, int | float):
            cell_value = _plain(cell_value)
        if not isinstance(cell_value, str):
            raise ValueError("no time")
        if self._format is not None:
            wall_time = time_by_format(cell_value, self._format)
            self.counts["formatted"] += 1
            if wall_time is None:
                self._note_unread(cell_value)
                raise ValueError("no time in the format given")
            return wall_time[0] if wall_time[1] else Wall(wall_time[0])
        match = _NUMBER.fullmatch(cell_value)
        if match is not None:
            return self._of_number(match[1], match[2] or "", time_unit or self._options.time_unit)
        match = _TEXT.fullmatch(cell_value)
        if match is None:
            self._note_unread(cell_value)
            raise ValueError("no time")
        wall_us = wall_clock_us(f"{match[1].replace('/', '-')}T{match[2]}{(match[3] or ':00').replace(',', '.')}")
        if wall_us is None:
            raise ValueError("outside the calendar")
        return Wall(wall_us) if match[4] is None else wall_us - offset_us(match[4])

    def use_format(self, values: Iterable[Any] | None = None) -> None:
        """Read in ``time_format`` from now on, if there is one; with ``values``, only if one of them has it."""
        form = self._options.time_format
        is_fit = values is None or (form and any(time_by_format(str(value), form) is not None for value in values))
        self._format = form if is_fit else None

    def how_to_read(self) -> str | None:
        """Return the options to read the unreadable times; ``None`` if unknown."""
        if self.likely_unit is not None:
            return f"the numbers look like times in {self.likely_unit}: --time-unit {self.likely_unit}"
        return how_to_read(self.unread) if self.unread else None

    def _of_number(self, whole_digits: str, fraction: str, unit: str) -> int:
        digits = UNIT_DIGITS[unit]
        self._units.setdefault(unit)
        in_us = whole_digits[:digits] if digits < 0 else whole_digits + fraction[:digits].ljust(digits, "0")
        time_us = int(in_us or 0)
        if time_us > _YEAR_2200_US and self.likely_unit is None:
            if _DIGITS_OF_A_DATE.fullmatch(whole_digits):
                self._note_unread(whole_digits)
                return time_us
            fitting = (unit for unit, places in UNIT_DIGITS.items() if int(whole_digits) * 10.0**places < _YEAR_2200_US)
            self.likely_unit = next(fitting, None)
        return time_us

    def _note_unread(self, cell_text: str) -> None:
        if len(self.unread) < _MOST_UNREAD:
            self.unread.append(cell_text)

    def interval(
        self,
        start_time: int | Wall,
        end_time: int | Wall | None,
        elapsed_us: int | None,
        row_place: Place,
        slack_us: int = US,
    ) -> tuple[int, int | None] | None:
        """Return start and end in UTC microseconds, ``None`` if the clock skips one; ``slack_us`` bounds time errors.

        Raises
        ------
        InputError
            Unknown zone, or an ambiguous time that neither the log nor ``--dst-fold`` resolves.
        """
        ends = None if end_time is None else self._candidates(end_time, row_place[0])
        return self.resolve(self._candidates(start_time, row_place[0]), ends, elapsed_us, (*row_place, ""), slack_us)

    def _candidates(self, time: int | Wall, file_name: str) -> Candidates:
        return self.utc_us(time.us, file_name) if isinstance(time, Wall) else (time,)

    def ambiguous(self, row_place: RowPlace) -> InputError:
        """Return the error for a time that occurs twice."""
        return InputError(
            "a time occurs twice in its zone, when summer time ends, and nothing settles which of the two is meant",
            file=row_place[0],
            row=f"line {row_place[1]}",
            expected="times in UTC, or rows with a running time that resolves it",
            fix=f"export in UTC ({self._export}), or choose: --dst-fold earlier, --dst-fold later",
        )

    def count(self, time: int | Wall, is_number: bool) -> None:
        """Count the kind of time of a kept row."""
        self.counts["local" if isinstance(time, Wall) else "numbers" if is_number else "zoned"] += 1

    def evidence(self) -> str:
        """Describe how the times were read."""
        texts = {
            "numbers": f"have numbers (in {', '.join(self._units)}): no zone needed",
            "zoned": "have a zone",
            "local": f"have local times, in {self.zone} as given",
            "settled": "at the end of summer time were resolved by order and running time",
        }
        parts = [f"{self.counts[kind]:,} rows {kind_text}" for kind, kind_text in texts.items() if self.counts[kind]]
        return "; ".join(parts) or "no row has a time"


def is_number(cell_value: Any) -> bool:
    """Return whether a time is a plain number, as text or as such."""
    if isinstance(cell_value, str):
        return _NUMBER.fullmatch(cell_value) is not None
    return isinstance(cell_value, int | float)


def is_interval(start_us: int, end_us: int | None) -> bool:
    """Return whether an interval is valid: within the calendar, and a known end comes after the start."""
    if not FIRST_TIME_US < start_us < LAST_TIME_US:
        return False
    return end_us is None or start_us < end_us < LAST_TIME_US


def _plain(cell_number: int | float) -> str:
    if isinstance(cell_number, int) or 1e15 <= cell_number < 1e19:
        return str(int(cell_number))
    return repr(cell_number) if cell_number < 1e15 else "infinite"


def check_time_format(form: str) -> None:
    """Raise ``InputError`` for a format without day and minute, or with the name of a zone (``%Z``)."""
    try:
        same_moment = None if "%Z" in form.replace("%%", "") else datetime.strptime(_PROBE.strftime(form), form)
    except ValueError:
        same_moment = None
    if same_moment is None or same_moment.replace(second=0, tzinfo=UTC) != _PROBE.replace(second=0):
        raise InputError(
            "times cannot be read in this format",
            column="--time-format",
            value=form,
            expected="the terms of Python's strptime, with year, month, day, hour and minute (%I only with %p); "
            "offsets by %z, no names of zones",
            fix='for 01.10.2024 13:32:06: --time-format "%d.%m.%Y %H:%M:%S"; '
            'for 10/01/2024 01:32:06 PM: --time-format "%m/%d/%Y %I:%M:%S %p"',
        )


def time_by_format(cell_text: str, form: str) -> tuple[int, bool] | None:
    """Return microseconds since 1970-01-01 00:00 of a time in ``form``, and whether UTC (``%z``) or of a wall clock.

    ``None`` if the text is not in that format.
    """
    if not cell_text.isascii():
        return None
    try:
        moment = datetime.strptime(cell_text, form)  # the offset, or --tz, gives the zone
    except (ValueError, OverflowError):
        return None
    is_utc = moment.tzinfo is not None
    return ((moment if is_utc else moment.replace(tzinfo=UTC)) - EPOCH) // MICROSECOND, is_utc


def how_to_read(time_texts: Sequence[str]) -> str:
    """Return the options to read ``time_texts`` as times, with the usual formats that all of them have."""
    forms = [form for form in _USUAL if all(time_by_format(text, form) is not None for text in time_texts)]
    if not forms:
        return 'give the format of the times, in the terms of strptime, e.g. --time-format "%d.%m.%Y %H:%M:%S"'
    return "give the format of the times: " + ", or ".join(f'--time-format "{form}"' for form in forms)
