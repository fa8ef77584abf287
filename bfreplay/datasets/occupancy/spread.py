"""How much an answer depends on the rule that assigned nodes: the same log under every rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bfreplay.datasets.occupancy.build import BuiltLog

_QUANTILES = ("p25", "p50", "p75", "p95")


def measured(built: BuiltLog) -> dict[str, Any]:
    """What the rules change and what they do not: mean idle nodes, holes, quantiles of their length in seconds."""
    from bfreplay.datasets.idleness import characterise

    figures = characterise(built.events).to_dict()
    return {
        "assignment": built.events.metadata.assignment,
        "mean_idle_nodes": figures["mean_idle_nodes"],
        "transitions": figures["transitions"],
        "holes": figures["holes"]["complete"],
        "hole_length_s": {name: figures["holes"]["length_s"].get(name) for name in _QUANTILES},
    }


def spread_text(rows: Sequence[dict[str, Any]]) -> str:
    """Lay out the rows of ``measured`` as a table."""
    head = ("assignment", "mean idle", "holes", *(f"{name[1:]} % s" for name in _QUANTILES))
    cells = [head]
    for row in rows:
        lengths = [row["hole_length_s"][name] for name in _QUANTILES]
        cells.append(
            (
                str(row["assignment"]),
                f"{row['mean_idle_nodes']:,.2f}",
                f"{row['holes']:,}",
                *("-" if length is None else f"{length:,.0f}" for length in lengths),
            )
        )
    widths = [max(len(line[i]) for line in cells) for i in range(len(head))]
    lines = [
        line[0].ljust(widths[0])
        + "".join(f"  {cell:>{width}}" for cell, width in zip(line[1:], widths[1:], strict=True))
        for line in cells
    ]
    title = "the same log under each rule: how much is idle is the same, how long holes are is not"
    return "\n".join([title, *lines]) + "\n"
