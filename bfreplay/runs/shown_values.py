"""Formats of values as text, and the numbers of a page in tables and sentences: exact value and text."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import ROUND_FLOOR, Context
from typing import Any, Literal

from markupsafe import Markup

from bfreplay.datasets.times import EPOCH
from bfreplay.wording import amount, count, duration, percent, signed_amount

Kind = Literal[
    "text", "count", "amount", "percent", "at-least", "ratio", "seconds", "ms", "samples", "signed", "number", "time"
]
"""Format of a value, with three significant digits by default: ``count`` 1,234 in full; ``amount`` 1,660 (node-hours,
nodes); ``percent`` of a share, 12.3 %; ``at-least`` the same, rounded down; ``ratio`` 0.498; ``seconds`` as a duration,
3.40 h; ``ms`` of seconds, 0.356 ms; ``samples`` 8.11e+11; ``signed`` +12.3, of a difference; ``number`` six digits, of
scores; ``time`` of microseconds since the epoch, in UTC."""


MISSING = "–"
_DOWN = Context(prec=3, rounding=ROUND_FLOOR)


def value_text(value: Any, kind: Kind) -> str:
    """Text of a value; a dash for ``None`` and nan."""
    return MISSING if value is None or (isinstance(value, float) and math.isnan(value)) else _WRITERS[kind](value)


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
    "time": lambda time_us: f"{EPOCH + timedelta(microseconds=time_us):%Y-%m-%d %H:%M:%S}",
}


@dataclass(frozen=True, slots=True)
class KeyFigure:
    """A metric of one run: name, description, value (``None`` for none) and format."""

    key: str
    words: str
    value: Any
    kind: Kind


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


def exact(value: Any) -> str:
    """Return the value to the last digit; empty for ``None`` and nan."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return repr(float(value)) if isinstance(value, float) else str(value)


def show(fact: KeyFigure) -> Markup:
    """Return a key figure for a sentence."""
    return number(fact.key, fact.value, fact.kind)


def show_count(fact: KeyFigure, word: str) -> Markup:
    """Return a key figure with its noun: ``1 node``, ``392.1 nodes``."""
    return number_of(fact.key, fact.value, fact.kind, word)


def number(key: str, value: Any, kind: Kind) -> Markup:
    """Return ``<data>`` with the exact value, and its text."""
    return Markup('<data value="{exact}" data-key="{key}">{text}</data>').format(
        exact=exact(value), key=key, text=value_text(value, kind)
    )


def number_of(key: str, value: Any, kind: Kind, word: str) -> Markup:
    """Return ``number`` with its noun, in the plural unless the text is 1."""
    noun = count(1 if is_one(value, kind) else 2, word).partition(" ")[2]
    return Markup("{} {}").format(number(key, value, kind), noun)


def is_one(value: Any, kind: Kind) -> bool:
    """Return whether the text is 1, so that the verb is in the singular."""
    return value_text(value, kind) == "1"
