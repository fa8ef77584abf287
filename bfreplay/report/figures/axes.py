"""Figures, axes and ticks of pictures, on paper and of axes of seconds on the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from math import log10
from typing import TYPE_CHECKING, Literal

from bfreplay.report.figures.marks import Trace, axis, in_lines, layout_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Ticks = Callable[[float, float], str] | str
"""How a number beside an axis is written."""
_LEGEND_COLUMNS, _LEGEND_ROW = 4, 0.3
"""At most so many columns, and inches of one row with what is around it."""


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches."""
    from matplotlib.figure import Figure  # a second to import, and an own figure leaves pyplot's state alone

    return Figure(figsize=(width, height), layout="constrained")


def panels_below(figure: Figure, heights: Sequence[float]) -> list[Axes]:
    """Panels one below the other that share their horizontal axis, of these relative heights."""
    grid = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights, squeeze=False)
    return list(grid[:, 0])


def fix_layout(figure: Figure) -> Figure:
    """Show all texts literally, and fix the layout.

    The solver of the layout places panels a rounding error apart from call to call, and files would differ.
    """
    from matplotlib.text import Text

    for text_artist in figure.findobj(Text):
        text_artist.set_parse_math(False)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        left_edge, bottom, width, height = (round(float(edge), 6) for edge in axes.get_position().bounds)
        axes.set_position((left_edge, bottom, width, height))
    return figure


def legend_below(figure: Figure) -> None:
    """One legend of all panels below them, in as many columns as fit; the figure grows by the rows beyond the first."""
    of_axes = [axes.get_legend_handles_labels() for axes in figure.axes]
    handles, labels = (list(chain.from_iterable(texts_of_panels)) for texts_of_panels in zip(*of_axes, strict=True))
    for columns in range(min(_LEGEND_COLUMNS, len(labels)), 0, -1):
        legend = figure.legend(handles, labels, loc="outside lower center", ncols=columns, fontsize=9, frameon=False)
        for legend_text in legend.get_texts():
            legend_text.set_parse_math(False)
        legend_box = legend.get_window_extent()
        if columns == 1 or legend_box.width <= 0.97 * figure.bbox.width:
            break
        legend.remove()
    figure.set_figheight(figure.get_figheight() + max(0.0, legend_box.height / figure.dpi - _LEGEND_ROW))


def style_axes(
    axes: Axes,
    x: str | None = None,
    y: str | None = None,
    *,
    title: str | None = None,
    y_ticks: Ticks | None = None,
    categories: Literal["x", "y"] | None = None,
) -> None:
    """Pale grid behind, no frame at top and right.

    Parameters
    ----------
    axes
        With its scales, which would undo the look of ticks.
    x, y
        Titles of the axes.
    title
        Title of the panel, shown literally: no mathematics.
    y_ticks
        Formatter of the numbers of the vertical axis.
    categories
        Axis that names bars, without grid and tick marks.
    """
    if x is not None:
        axes.set_xlabel(x, fontsize=10)
    if y is not None:
        axes.set_ylabel(y, fontsize=10)
    if title is not None:
        axes.set_title(title, fontsize=11, loc="left", parse_math=False)
    if y_ticks is not None:
        axes.yaxis.set_major_formatter(y_ticks)
    axes.grid(visible=True, which="major", color="#E4E4E4", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    if categories is not None:
        axes.grid(visible=False, axis=categories)
        axes.tick_params(axis=categories, length=0)


def panel_title(axes: Axes, title: str) -> None:
    """Title of one of several panels, shown literally."""
    axes.set_title(title, fontsize=10.5, loc="left", parse_math=False)


def no_data(axes: Axes, words: str, fontsize: float = 10) -> None:
    """Words in the middle of a panel without data."""
    axes.text(0.5, 0.5, words, ha="center", va="center", fontsize=fontsize, transform=axes.transAxes)


def span_ticks(axes: Axes, which: str) -> None:
    """Ticks of a logarithmic axis of seconds at familiar lengths of time."""
    time_axis = axes.xaxis if which == "x" else axes.yaxis
    lowest, highest = axes.get_xlim() if which == "x" else axes.get_ylim()
    ticks = spans_between(lowest, highest, _OF_IDLENESS, _MORE_OF_IDLENESS)
    time_axis.set_ticks([seconds for _, seconds in ticks], labels=[tick_label for tick_label, _ in ticks])
    time_axis.set_ticks([], minor=True)


def powers_up_to(largest: int, room_for: int) -> list[int]:
    """Powers of two up to ``largest``, evenly many left out so that at most ``room_for`` remain."""
    levels = largest.bit_length()
    return [1 << exponent for exponent in range(0, levels, -(-levels // room_for))]


def powers_of_two(axes: Axes, largest: int, room_for: int) -> None:
    """Ticks of a logarithmic horizontal axis at powers of two up to ``largest``, at most ``room_for`` of them."""
    axes.set_xscale("log", base=2)
    powers = powers_up_to(largest, room_for)
    axes.set_xticks(powers, labels=[f"{power:,}" for power in powers])
    axes.set_xticks([], minor=True)
    axes.set_xlim(0.85, max(2, largest) * 1.18)


def page_powers(largest: int, room_for: int) -> Trace:
    """The same axis for Plotly."""
    powers = powers_up_to(largest, room_for)
    axis_range = [log10(0.85), log10(max(2, largest) * 1.18)]
    return {"type": "log", "range": axis_range, "tickvals": powers, "ticktext": [f"{power:,}" for power in powers]}


def page_title(text: str) -> Trace:
    """Plotly's axis with this title, in lines that a narrow screen has room for."""
    return {"title": {"text": in_lines(text, 30), "standoff": 4, "font": {"size": 12}}}


def page_panels(axes: Sequence[tuple[Trace, Trace]], panel_px: int, gap_px: int = 62) -> tuple[Trace, int]:
    """Layout and height of panels one below the other for Plotly, from the horizontal and vertical axis of each."""
    step_px, layout = panel_px + gap_px, {}
    inner_px = len(axes) * step_px - gap_px
    for index, (x, y) in enumerate(axes):
        ends = [1 - (index * step_px + panel_px) / inner_px, 1 - index * step_px / inner_px]
        layout[layout_axis(index, "x")] = {**x, "anchor": axis(index)}
        layout[layout_axis(index)] = {**y, "anchor": axis(index, "x"), "domain": [max(0.0, ends[0]), ends[1]]}
    return layout, inner_px + 146


def plain_tick(value: float, _position: float) -> str:
    """``0.5``, ``2,000``: numbers on a linear axis."""
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:g}"


def log_tick(value: float, _position: float) -> str:
    """``0.05``, ``1``, ``2,000``: numbers on a logarithmic axis."""
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


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
_OF_IDLENESS = [*(span for span in SPANS if span[1] >= 1), ("5 min", 300.0)]
_MORE_OF_IDLENESS = [*(span for span in (*SPANS[:-1], *_MORE) if span[1] >= 1), ("10 min", 600.0)]
"""Of the lengths of idle intervals of a log."""


def spans_between(
    low_s: float,
    high_s: float,
    common_spans: Sequence[tuple[str, float]] = SPANS,
    closer_spans: Sequence[tuple[str, float]] = (*SPANS, *_MORE),
) -> list[tuple[str, float]]:
    """Labels and seconds of ticks from ``low_s`` to ``high_s``: closer ones where there would be fewer than four."""
    for spans in (common_spans, closer_spans):
        ticks = sorted((tick for tick in spans if low_s <= tick[1] <= high_s), key=lambda span: span[1])
        if len(ticks) >= _FEW:
            break
    return ticks


def page_axis(low_s: float, high_s: float) -> Trace:
    """Type, range and ticks of a logarithmic axis of seconds for Plotly, ``0 < low_s < high_s``."""
    ticks = spans_between(low_s, high_s)
    return {
        "type": "log",
        "range": [log10(low_s), log10(high_s)],
        "tickvals": [seconds for _, seconds in ticks],
        "ticktext": [label for label, _ in ticks],
    }


def paper_axis(axes: Axes, low_s: float, high_s: float) -> None:
    """The same for the horizontal axis of matplotlib."""
    axes.set_xscale("log")
    axes.set_xlim(low_s, high_s)
    ticks = spans_between(low_s, high_s)
    axes.set_xticks([seconds for _, seconds in ticks], labels=[label for label, _ in ticks])
    axes.set_xticks([], minor=True)
