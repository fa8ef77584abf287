"""How much an answer depends on the rule that assigned nodes: the same log under every rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bfreplay.datasets.occupancy.build import BuiltLog

_QUANTILES = ("p25", "p50", "p75", "p95")


@dataclass(frozen=True, slots=True)
class Spread:
    """Figures of a log under one rule: mean idle nodes and transitions are the same under every rule, holes are not.

    ``hole_length_s`` has the quantiles of ``_QUANTILES`` by name, ``None`` where there is no hole.
    """

    assignment: str | None
    mean_idle_nodes: float
    transitions: int
    holes: int
    hole_length_s: Mapping[str, float | None]


def measured(built: BuiltLog) -> Spread:
    """Figures of the log that a rule made."""
    from bfreplay.datasets.idleness import characterise
    from bfreplay.datasets.idleness.quantiles import named

    figures = characterise(built.events)
    length_s = named(figures.hole_length_s)
    return Spread(
        built.events.metadata.assignment,
        figures.mean_idle_nodes,
        figures.transitions,
        figures.holes,
        {name: length_s.get(name) for name in _QUANTILES},
    )


def spread_text(rows: Sequence[Spread]) -> str:
    """Lay out the figures under each rule as a table."""
    head = ("assignment", "mean idle", "holes", *(f"{name[1:]} % s" for name in _QUANTILES))
    cells = [head]
    for row in rows:
        lengths = ("-" if length is None else f"{length:,.0f}" for length in row.hole_length_s.values())
        cells.append((str(row.assignment), f"{row.mean_idle_nodes:,.2f}", f"{row.holes:,}", *lengths))
    widths = [max(len(line[i]) for line in cells) for i in range(len(head))]
    lines = [
        line[0].ljust(widths[0])
        + "".join(f"  {cell:>{width}}" for cell, width in zip(line[1:], widths[1:], strict=True))
        for line in cells
    ]
    title = "the same log under each rule: how much is idle is the same, how long holes are is not"
    return "\n".join([title, *lines]) + "\n"
