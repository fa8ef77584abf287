"""Numbers in the text of a page: each says which one it is, and exactly what it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from bfreplay.replay.metrics import Kind
from bfreplay.report.tables import exact, written
from bfreplay.wording import count

if TYPE_CHECKING:
    from bfreplay.replay.metrics import KeyFigure


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
