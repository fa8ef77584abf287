"""Numbers of a page, in tables and in sentences: each the value behind it, and its text."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import ROUND_FLOOR, Context
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from bfreplay.datasets.times import EPOCH
from bfreplay.runs.metrics import Kind
from bfreplay.wording import amount, count, duration, percent

if TYPE_CHECKING:
    from bfreplay.runs.metrics import KeyFigure

MISSING = "–"
_DOWN = Context(prec=3, rounding=ROUND_FLOOR)


@dataclass(frozen=True, slots=True)
class Column:
    """A column: ``key`` names it in tests and in data, ``words`` head it (with the unit), ``kind`` writes its cells."""

    key: str
    words: str
    kind: Kind = "text"

    def of_run(self, label: str) -> Column:
        """The same of one of several runs."""
        return replace(self, key=f"{self.key}.{label}", words=f"{label}: {self.words}") if label else self

    @property
    def is_number(self) -> bool:
        """Whether cells are set flush right."""
        return self.kind != "text"


@dataclass(frozen=True, slots=True)
class ShownTable:
    """Rows of plain values, ``None`` where there is none; ``caption`` says what the table is.

    The first column heads its row.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: Sequence[Sequence[Any]]


def written(value: Any, kind: Kind) -> str:
    """Text of a cell; a dash where there is nothing."""
    return MISSING if value is None or (isinstance(value, float) and math.isnan(value)) else _WRITERS[kind](value)


def exact(value: Any) -> str:
    """The value behind a text, to the last digit; empty where there is nothing."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return repr(float(value)) if isinstance(value, float) else str(value)


def _at_least(share: float) -> str:
    return percent(float(_DOWN.create_decimal(share + 1e-12)))  # a share of 1 may come out a rounding error below


def _signed(value: float) -> str:
    return f"{'+' if value > 0 else ''}{amount(value)}"


def _time(time_us: int) -> str:
    return f"{EPOCH + timedelta(microseconds=time_us):%Y-%m-%d %H:%M:%S}"


_WRITERS: Mapping[Kind, Callable[[Any], str]] = {
    "text": str,
    "count": "{:,}".format,
    "amount": amount,
    "percent": percent,
    "at-least": _at_least,
    "ratio": amount,
    "seconds": duration,
    "ms": lambda seconds: f"{amount(seconds * 1e3)} ms",
    "samples": amount,
    "signed": _signed,
    "number": "{:.6g}".format,
    "time": _time,
}


def shown(fact: KeyFigure) -> Markup:
    """A fact in a sentence."""
    return number(fact.key, fact.value, fact.kind)


def counted(fact: KeyFigure, word: str) -> Markup:
    """A fact and what it counts: ``1 node``, ``392.1 nodes``."""
    return number_of(fact.key, fact.value, fact.kind, word)


def number(key: str, value: Any, kind: Kind) -> Markup:
    """``<data>`` with the value as it is, and a text for people; ``key`` names it."""
    return Markup('<data value="{exact}" data-key="{key}">{text}</data>').format(
        exact=exact(value), key=key, text=written(value, kind)
    )


def number_of(key: str, value: Any, kind: Kind, word: str) -> Markup:
    """The same, and the word for what it counts, in the plural unless the text says 1."""
    noun = count(1 if is_one(value, kind) else 2, word).partition(" ")[2]
    return Markup("{} {}").format(number(key, value, kind), noun)


def is_one(value: Any, kind: Kind) -> bool:
    """Whether a person reads 1, so that the verb is in the singular."""
    return written(value, kind) == "1"
