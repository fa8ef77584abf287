"""The picture of a sweep: lines over a number, or bars by category, with the spread over seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bfreplay.report.figures.axes import fix_layout, legend_below, log_tick, new_figure, plain_tick, style_axes
from bfreplay.report.figures.figure import Figure
from bfreplay.report.figures.marks import GREY, LINES, MARKERS, OKABE_ITO, Trace, fill_look, in_lines
from bfreplay.report.figures.sweep_lines import SweptLines, SweptPanel, swept_lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing


_MOST_COLUMNS = 3
_FAR_APART = 20.0
"""A vertical axis is logarithmic where the largest mean is so many times the least."""
_EVEN = 0.15
"""A horizontal axis is logarithmic where its values grow by a factor that is common within this."""


def draw_sweep_lines(lines: SweptLines, *, log_x: bool | None = None, log_y: bool | None = None) -> Drawing:
    """Draw a panel for each metric.

    Numbers: a line through the means, markers, and a band from the least to the largest value where several runs share
    a point; points of saturated runs are hollow. Categories: a bar for each, as long as the mean, with a whisker from
    the least to the largest value, and hatched where saturated.

    Parameters
    ----------
    lines
        Data of the picture.
    log_x, log_y
        True for a logarithmic axis of the numbers in ``x``, and of the metrics; ``None``: if it helps.
    """
    n_panels = len(lines.panels)
    n_columns = min(n_panels, _MOST_COLUMNS)
    n_rows = -(-n_panels // n_columns)
    looks = _looks(lines)
    n_bars = sum(len(swept_line.x) for swept_line in lines.panels[0].lines)
    width, height = (9.0, 4.8) if n_panels == 1 else (1.0 + 4.0 * n_columns, 3.9)
    figure = new_figure(width, n_rows * (height if lines.is_number else 1.4 + 0.28 * n_bars))
    panels = figure.subplots(n_rows, n_columns, squeeze=False, sharey=not lines.is_number).ravel().tolist()
    for axes, panel in zip(panels, lines.panels, strict=False):
        if lines.is_number:
            _draw_lines(axes, lines, panel, looks, log_x, log_y)
        else:
            _draw_bars(axes, panel, looks, log_y)
    for axes in panels[n_panels:]:
        axes.set_axis_off()
    _legend(figure, lines, looks)
    return fix_layout(figure)


def _looks(lines: SweptLines) -> dict[str, int]:
    """Number of the look of each label: the same in all panels."""
    labels = dict.fromkeys(swept_line.label for panel in lines.panels for swept_line in panel.lines)
    return {line_label: look_index for look_index, line_label in enumerate(labels)}


def _draw_lines(
    axes: Axes, lines: SweptLines, panel: SweptPanel, looks: dict[str, int], log_x: bool | None, log_y: bool | None
) -> None:
    for swept_line in panel.lines:
        index = looks[swept_line.label]
        line_colour = OKABE_ITO[index % len(OKABE_ITO)]
        spots, mean = np.array(swept_line.x, dtype=np.float64), swept_line.mean
        lower, upper = swept_line.span
        if (upper > lower).any():
            axes.fill_between(spots, lower, upper, color=line_colour, alpha=0.15, linewidth=0.0, zorder=1)
        axes.plot(spots, mean, color=line_colour, linestyle=LINES[index % len(LINES)], linewidth=1.8, zorder=2)
        for hollow in (False, True):
            is_marked = swept_line.is_saturated == hollow
            axes.plot(spots[is_marked], mean[is_marked], linestyle="none", zorder=3, **_marker(index, is_hollow=hollow))
    places = np.unique(np.concatenate([np.array(swept_line.x, dtype=np.float64) for swept_line in panel.lines]))
    if _grows_by_a_factor(places) if log_x is None else log_x:
        axes.set_xscale("log")
        axes.set_xticks(places.tolist(), labels=[f"{place:g}" for place in places.tolist()])
        axes.set_xticks([], minor=True)
    is_log = _is_far_apart(panel) if log_y is None else log_y
    if is_log:
        axes.set_yscale("log")
    elif min(float(swept_line.span[0].min()) for swept_line in panel.lines) >= 0:
        axes.set_ylim(bottom=0.0)
    width = 48 if len(lines.panels) == 1 else 32
    style_axes(axes, lines.x, in_lines(panel.words, width, "\n"), y_ticks=log_tick if is_log else plain_tick)


def _marker(index: int, *, is_hollow: bool = False) -> Trace:
    marker_colour = OKABE_ITO[index % len(OKABE_ITO)]
    fill = "white" if is_hollow else marker_colour
    return {"marker": MARKERS[index % len(MARKERS)], "markersize": 6, "color": marker_colour, "markerfacecolor": fill}


def _draw_bars(axes: Axes, panel: SweptPanel, looks: dict[str, int], log_scale: bool | None) -> None:
    categories = list(dict.fromkeys(place for swept_line in panel.lines for place in swept_line.x))
    bar_height = 0.8 / len(looks)
    for swept_line in panel.lines:
        look_index = looks[swept_line.label]
        places = np.array([categories.index(place) for place in swept_line.x]) + (look_index + 0.5) * bar_height - 0.4
        lower, upper = swept_line.span
        for place, mean_value, is_saturated in zip(places, swept_line.mean, swept_line.is_saturated, strict=True):
            bar_look = fill_look(OKABE_ITO[look_index % len(OKABE_ITO)], "///" if is_saturated else "")
            axes.barh(place, mean_value, height=0.9 * bar_height, **bar_look)
        if (upper > lower).any():
            axes.hlines(places, lower, upper, color=GREY, linewidth=1.4)
    axes.set_yticks(range(len(categories)), labels=[str(category) for category in categories])
    axes.set_ylim(len(categories) - 0.5, -0.5)
    if log_scale:
        axes.set_xscale("log")
    style_axes(axes, in_lines(panel.words, 40, "\n"), categories="y")
    axes.xaxis.set_major_formatter(log_tick if log_scale else plain_tick)


def _legend(figure: Drawing, lines: SweptLines, looks: dict[str, int]) -> None:
    axes = figure.axes[0]
    all_lines = [swept_line for panel in lines.panels for swept_line in panel.lines]
    for line_label, look_index in looks.items():
        line_look: Trace = {"linestyle": LINES[look_index % len(LINES)], **_marker(look_index)}
        bar_look: Trace = {"color": OKABE_ITO[look_index % len(OKABE_ITO)], "linewidth": 8}
        if line_label:
            axes.plot([], [], label=line_label, **(line_look if lines.is_number else bar_look))
    if any(bool((swept_line.span[1] > swept_line.span[0]).any()) for swept_line in all_lines):
        span_look: Trace = {"color": GREY, "linewidth": 8 if lines.is_number else 1.4}
        legend_words = "least to largest of the runs at a point"
        axes.plot([], [], alpha=0.15 if lines.is_number else 1.0, label=legend_words, **span_look)
    if any(bool(swept_line.is_saturated.any()) for swept_line in all_lines):
        legend_words = "saturated: nodes used all the time, or jobs not completed"
        if lines.is_number:
            axes.plot([], [], linestyle="none", label=legend_words, marker="o", color=GREY, markerfacecolor="white")
        else:
            axes.barh([0], [0], label=legend_words, **fill_look(GREY, "///"))
    if axes.get_legend_handles_labels()[1]:
        legend_below(figure)


def _grows_by_a_factor(places: NDArray[np.float64]) -> bool:
    if places.size < 3 or places[0] <= 0:
        return False
    factor = places[1:] / places[:-1]
    return bool(factor.max() <= (1 + _EVEN) * factor.min() and factor.min() >= 1.5)


def _is_far_apart(panel: SweptPanel) -> bool:
    means = np.concatenate([swept_line.mean for swept_line in panel.lines])
    return bool(means.min() > 0 and means.max() > _FAR_APART * means.min())


SWEEP = Figure("sweep", "Metrics of a sweep against an option", swept_lines, draw_sweep_lines)
