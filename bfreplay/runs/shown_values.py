"""The numbers of a page in sentences: exact value and text."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from bfreplay.wording import Kind, count, value_text


@dataclass(frozen=True, slots=True)
class KeyFigure:
    """A metric of one run: name, description, value (``None`` for none) and format."""

    key: str
    words: str
    value: Any
    kind: Kind


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
