"""Numbers of a page, in tables and in sentences: exact value and text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from bfreplay.runs.metrics import Kind, value_text
from bfreplay.wording import count

if TYPE_CHECKING:
    from bfreplay.runs.metrics import KeyFigure


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
