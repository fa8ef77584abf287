"""Numbers in the text of a page: each says which one it is, and exactly what it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bfreplay.report.tables import Kind, written

if TYPE_CHECKING:
    from markupsafe import Markup

    from bfreplay.report.page.facts import Fact


def shown(fact: Fact, run: str = "") -> Markup:
    """A fact in a sentence; ``run`` is the run's label on a page about several."""
    return number(f"{run}:{fact.key}" if run else fact.key, fact.value, fact.kind)


def number(key: str, value: Any, kind: Kind) -> Markup:
    """``<data>`` with the value as it is, and a text for people."""
    from markupsafe import Markup

    exact = "" if value is None else repr(value) if isinstance(value, float) else str(value)
    return Markup('<data value="{exact}" data-key="{key}">{text}</data>').format(
        exact=exact, key=key, text=written(value, kind)
    )
