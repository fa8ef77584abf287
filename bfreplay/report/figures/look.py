"""How lines, bars and pages look: told apart without colour as well, in a light and a dark theme."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Trace = dict[str, Any]
"""A trace, an axis or a style, as Plotly and matplotlib take it."""

Dashes = str | tuple[int, tuple[int, ...]]

OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8A8A00", "#5B3FA0")
"""Colours that the colour-blind can tell apart (Okabe and Ito, 2008; yellow, unreadable as a line, is replaced)."""

LINES: tuple[Dashes, ...] = ("-", (0, (6, 2)), (0, (2, 1)), (0, (7, 2, 1, 2)), (0, (1, 1)), (0, (9, 2, 1, 2, 1, 2)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "p", "h")

_ON_DARK = ("#4FA8E8", "#FF8A47", "#2FC79A", "#E79AC6", "#F2B63C", "#9AD4F5", "#C9C94A", "#A48DE8")

LIGHT: Mapping[str, str] = {
    "paper": "#FFFFFF",
    "panel": "#F6F7F9",
    "ink": "#1C2126",
    "muted": "#56606B",
    "rule": "#D5DAE0",
    "grid": "#E4E7EB",
    "accent": "#005A9C",
    "warning": "#8A4B00",
    "warning-panel": "#FFF4E0",
    # where idle node-hours go
    "useful": "#0072B2",
    "rescaling": "#E69F00",
    "lost": "#D55E00",
    "unused": "#B9C0C8",
    # nodes over time
    "idle": "#6B7580",
    "idle-range": "#C9D0D7",
    # yardsticks
    "bound": "#009E73",
    "dedicated": "#CC79A7",
    # few to many, of a heat map
    **{f"heat-{k}": colour for k, colour in enumerate(("#F1F5F9", "#BBD9EE", "#72B2DD", "#2A7FBA", "#0B3F66"))},
    **{f"run-{k}": colour for k, colour in enumerate(OKABE_ITO)},
}
"""Colour by what it stands for, on a light ground and on paper."""

DARK: Mapping[str, str] = {
    "paper": "#14181D",
    "panel": "#1D232A",
    "ink": "#E8ECF0",
    "muted": "#A7B1BC",
    "rule": "#3A434D",
    "grid": "#2B323A",
    "accent": "#7CC0F5",
    "warning": "#FFC670",
    "warning-panel": "#3A2C12",
    "useful": "#4FA8E8",
    "rescaling": "#F2B63C",
    "lost": "#FF8A47",
    "unused": "#5B6672",
    "idle": "#A7B1BC",
    "idle-range": "#3F4954",
    "bound": "#2FC79A",
    "dedicated": "#E79AC6",
    **{f"heat-{k}": colour for k, colour in enumerate(("#1D232A", "#1F4A6B", "#2A7FBA", "#72B2DD", "#DCEFFB"))},
    **{f"run-{k}": colour for k, colour in enumerate(_ON_DARK)},
}
"""The same names on a dark ground."""


def looks(formulations: Sequence[str], backends: Sequence[str]) -> dict[tuple[str, str], Trace]:
    """Matplotlib's look of every (formulation, back end): the latter gives colour and dashes, the former the marker."""
    return {
        (formulation, backend): {
            "color": OKABE_ITO[b % len(OKABE_ITO)], "linestyle": LINES[b % len(LINES)], "linewidth": 1.6,
            "marker": MARKERS[f % len(MARKERS)], "markersize": 5, "zorder": 2,
        }
        for f, formulation in enumerate(formulations)
        for b, backend in enumerate(backends)
    }  # fmt: skip
