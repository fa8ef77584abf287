"""Lengths of time that people know, for ticks of logarithmic axes of seconds."""

from __future__ import annotations

from math import log10
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SPANS = (
    ("1 µs", 1e-6), ("10 µs", 1e-5), ("100 µs", 1e-4), ("1 ms", 1e-3), ("10 ms", 1e-2), ("100 ms", 0.1), ("1 s", 1.0),
    ("10 s", 10.0), ("1 min", 60.0), ("15 min", 900.0), ("1 h", 3_600.0), ("4 h", 14_400.0), ("1 day", 86_400.0),
    ("1 week", 604_800.0), ("4 weeks", 2_419_200.0), ("1 year", 31_536_000.0),
)  # fmt: skip
_MORE = (
    ("2 µs", 2e-6), ("5 µs", 5e-6), ("20 µs", 2e-5), ("50 µs", 5e-5), ("200 µs", 2e-4), ("500 µs", 5e-4),
    ("2 ms", 2e-3), ("5 ms", 5e-3), ("20 ms", 2e-2), ("50 ms", 5e-2), ("200 ms", 0.2), ("500 ms", 0.5), ("2 s", 2.0),
    ("5 s", 5.0), ("20 s", 20.0), ("30 s", 30.0), ("2 min", 120.0), ("5 min", 300.0), ("30 min", 1_800.0),
    ("2 h", 7_200.0), ("8 h", 28_800.0), ("12 h", 43_200.0), ("2 days", 172_800.0), ("4 days", 345_600.0),
    ("2 weeks", 1_209_600.0), ("8 weeks", 4_838_400.0),
)  # fmt: skip
_FEW = 4


def spans_between(low_s: float, high_s: float) -> list[tuple[str, float]]:
    """Labels and seconds of ticks from ``low_s`` to ``high_s``: closer ones where there would be fewer than four."""
    shown = [each for each in SPANS if low_s <= each[1] <= high_s]
    if len(shown) < _FEW:
        shown = sorted((each for each in (*SPANS, *_MORE) if low_s <= each[1] <= high_s), key=lambda each: each[1])
    return shown


def page_axis(low_s: float, high_s: float) -> dict[str, Any]:
    """Type, range and ticks of a logarithmic axis of seconds for Plotly, ``0 < low_s < high_s``."""
    shown = spans_between(low_s, high_s)
    return {
        "type": "log",
        "range": [log10(low_s), log10(high_s)],
        "tickvals": [seconds for _, seconds in shown],
        "ticktext": [label for label, _ in shown],
    }


def paper_axis(axes: Axes, low_s: float, high_s: float) -> None:
    """The same for the horizontal axis of matplotlib."""
    axes.set_xscale("log")
    axes.set_xlim(low_s, high_s)
    shown = spans_between(low_s, high_s)
    axes.set_xticks([seconds for _, seconds in shown], labels=[label for label, _ in shown])
    axes.set_xticks([], minor=True)
