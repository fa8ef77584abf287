"""Text forms of numbers and tables, the same everywhere."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import ROUND_FLOOR, Context
from typing import Any, Literal

WIDTH = 100
"""Columns of a terminal that text is laid out for."""
_HEADING_WIDTHS = (WIDTH, 24, 18, 14, 11, 8)
_LARGEST_WHOLE = 1e12


def count(n: int, word: str) -> str:
    """Return a number with its noun: ``1 node``, ``4,734 nodes``."""
    return f"{n:,} {word}{'' if n == 1 else 's'}"


def amount(value: float) -> str:
    """Three significant digits: ``1,660``, ``25.7``, ``3.40``, ``7.98e+09``; counts, and whole below 1,000, exactly."""
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value) or (abs(value) < 1_000 and math.isclose(value, round(value), rel_tol=1e-9)):
        return f"{value:.0f}"
    exponent = int(f"{value:.2e}".partition("e")[2])
    if not -4 <= exponent < 7:
        return f"{value:.2e}"
    return f"{round(value, 2 - exponent):,.{max(0, 2 - exponent)}f}"


def signed_amount(value: float) -> str:
    """Three significant digits with the sign: ``+12.3``, ``-0.05``, ``0``."""
    return f"{'+' if value > 0 else ''}{amount(value)}"


def percent(share: float) -> str:
    """Three significant digits, such as ``12.3 %``; ``99.9 %`` for what is less than all but would round to it."""
    return "99.9 %" if 0.9995 <= share < 1 else f"{amount(share * 100)} %"


def parts_of_whole(values: Sequence[float]) -> list[str]:
    """Return the parts of a whole, rounded so that their sum is the rounded whole.

    With one decimal, three for a whole below 10, none if all are whole numbers.

    The exception to the three digits of `amount`: a reader adds a ledger up. By largest remainders.
    """
    is_whole = all(math.isclose(value, round(value), abs_tol=1e-9) for value in values)
    decimals = 0 if is_whole else 1 if sum(values) >= 10 else 3
    scaled_values = [value * 10**decimals for value in values]
    units = [math.floor(scaled_value) for scaled_value in scaled_values]
    largest_remainders = sorted(range(len(values)), key=lambda position: units[position] - scaled_values[position])
    for position in largest_remainders[: round(sum(scaled_values)) - sum(units)]:
        units[position] += 1
    return [f"{unit / 10**decimals:,.{decimals}f}" for unit in units]


_TIME_UNITS = (("days", 86_400.0), ("h", 3_600.0), ("min", 60.0))


def time_unit(seconds: float) -> tuple[str, float]:
    """Return the unit that suits a length of time, and its seconds: ``("h", 3600.0)``."""
    return next((unit for unit in _TIME_UNITS if seconds >= 2 * unit[1]), ("s", 1.0))


def duration(seconds: float, unit: tuple[str, float] | None = None) -> str:
    """Return a length of time, in its own unit unless one is given: ``45 s``, ``7.9 min``, ``3.4 h``, ``14.9 days``."""
    unit_name, length_s = unit or time_unit(seconds)
    return f"{amount(seconds / length_s)} {unit_name}"


def maybe_duration(seconds: float) -> str:
    """Return a length of time, or a dash for nan."""
    return "-" if math.isnan(seconds) else duration(seconds)


def samples(value: float) -> str:
    """Return samples, or amounts of an objective, as text: ``0``, ``0.25``, ``1,234``, ``1.5e+15``."""
    if abs(value) >= _LARGEST_WHOLE:
        return f"{value:.4g}"
    if abs(value) >= 100 or value == round(value):
        return f"{value:,.0f}"
    return f"{'-' if value < 0 else ''}{amount(abs(value))}"


def digits(value: float) -> str:
    """Return four digits: ``2,815``, ``0.02015``, ``1.2e-05``; ``inf`` for infinity."""
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e6 else f"{value:.4g}"


LABEL_WIDTH = 12


def labelled_lines(lines: Iterable[tuple[str, str]], width: int = LABEL_WIDTH) -> list[str]:
    """Return lines such as ``Seconds     0.51``, from label and text."""
    return [f"{label:<{width}}{text}" for label, text in lines]


def aligned_lines(rows: Sequence[Sequence[str]], left: Collection[int] = (0,)) -> list[str]:
    """Return the lines of a table, the columns ``left`` aligned left, the others right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell_text.ljust(width) if number in left else cell_text.rjust(width)
            for number, (cell_text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


Kind = Literal[
    "text", "count", "amount", "percent", "at-least", "ratio", "seconds", "ms", "samples", "signed", "number", "time"
]
"""Format of a value, with three significant digits by default: ``count`` 1,234 in full; ``amount`` 1,660 (node-hours,
nodes); ``percent`` of a share, 12.3 %; ``at-least`` the same, rounded down; ``ratio`` 0.498; ``seconds`` as a duration,
3.40 h; ``ms`` of seconds, 0.356 ms; ``samples`` 8.11e+11; ``signed`` +12.3, of a difference; ``number`` six digits, of
scores; ``time`` of microseconds since the epoch, in UTC."""


MISSING = "–"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DOWN = Context(prec=3, rounding=ROUND_FLOOR)


def value_text(value: Any, kind: Kind, missing: str = MISSING) -> str:
    """Text of a value; ``missing`` for ``None`` and nan."""
    return missing if value is None or (isinstance(value, float) and math.isnan(value)) else _WRITERS[kind](value)


def share_at_least(share: float) -> str:
    """Percent, rounded down to three significant digits."""
    rounding_error = 1e-12  # a share of 1 may come out below 1
    return percent(float(_DOWN.create_decimal(share + rounding_error)) if share else 0.0)


_WRITERS: Mapping[Kind, Callable[[Any], str]] = {
    "text": str,
    "count": "{:,}".format,
    "amount": amount,
    "percent": percent,
    "at-least": share_at_least,
    "ratio": amount,
    "seconds": duration,
    "ms": lambda seconds: f"{amount(seconds * 1e3)} ms",
    "samples": amount,
    "signed": signed_amount,
    "number": "{:.6g}".format,
    "time": lambda time_us: f"{_EPOCH + timedelta(microseconds=time_us):%Y-%m-%d %H:%M:%S}",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column: name in the data, heading with the unit, format of the cells."""

    key: str
    words: str
    kind: Kind = "text"

    def of_run(self, label: str) -> Column:
        """Return the column for one of several runs."""
        return replace(self, key=f"{self.key}.{label}", words=f"{label}: {self.words}") if label else self

    @property
    def is_number(self) -> bool:
        """True if cells are right-aligned."""
        return self.kind != "text"


@dataclass(frozen=True, slots=True)
class ShownTable:
    """Rows of plain values, ``None`` for a missing one; the first cell is the heading of its row."""

    caption: str
    columns: tuple[Column, ...]
    rows: Sequence[Sequence[Any]]

    def without(self, *keys: str) -> ShownTable:
        """Return the table without the columns of these keys."""
        kept = [position for position, column in enumerate(self.columns) if column.key not in keys]
        return replace(
            self,
            columns=tuple(self.columns[position] for position in kept),
            rows=[[row[position] for position in kept] for row in self.rows],
        )

    def lines(self) -> list[str]:
        """Return the caption and the table for a terminal; headings take several lines where it would be too wide."""
        texts = [
            [value_text(value, column.kind, "-") for value, column in zip(row, self.columns, strict=True)]
            for row in self.rows
        ]
        left = [position for position, column in enumerate(self.columns) if not column.is_number]
        layouts = [
            aligned_lines([*_heading_rows(self.columns, texts, narrowest), *texts], left)
            for narrowest in _HEADING_WIDTHS
        ]
        fitting = (lines for lines in layouts if max(map(len, lines)) <= WIDTH)
        return [self.caption, *next(fitting, layouts[0])]


def _heading_rows(
    columns: Sequence[Column], texts: Sequence[Sequence[str]], narrowest: int
) -> Iterator[tuple[str, ...]]:
    """Return the headings in lines of words as wide as the cells, but at least ``narrowest``."""
    headings = []
    for column, *cells in zip(columns, *texts, strict=True):
        width = max(narrowest, *map(len, column.words.split()), *map(len, cells))
        headings.append(textwrap.wrap(column.words, width, break_on_hyphens=False) or [""])
    height = max(map(len, headings))
    return zip(*([*[""] * (height - len(lines)), *lines] for lines in headings), strict=True)


def table_of(caption: str, kinds: Mapping[str, Kind], rows: Sequence[Sequence[Any]]) -> ShownTable:
    """Return a table whose headings, with the formats of their columns, are its keys too."""
    return ShownTable(caption, tuple(Column(words, words, kind) for words, kind in kinds.items()), rows)


def paragraphs(blocks: Iterable[Sequence[str]]) -> str:
    """Join blocks of lines with empty lines between them, without empty blocks."""
    return "\n\n".join("\n".join(lines) for lines in blocks if lines)
