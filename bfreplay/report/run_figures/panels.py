"""Names of Plotly's axes in figures of several panels."""

from __future__ import annotations


def axis(k: int, letter: str = "y") -> str:
    """What a trace calls the ``k``-th axis, from 0 on: ``y``, ``y2``, ``y3``."""
    return letter if k == 0 else f"{letter}{k + 1}"


def layout_axis(k: int, letter: str = "y") -> str:
    """What the layout calls it: ``yaxis``, ``yaxis2``, ``yaxis3``."""
    return axis(k, f"{letter}axis")
