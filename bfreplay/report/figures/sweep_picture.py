"""The picture of a sweep: lines over a number, or bars by category, with the spread over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.checks import nearest
from bfreplay.errors import InputError
from bfreplay.policies.spec import parse_one
from bfreplay.report.figures.axes import (
    fix_layout,
    legend_below,
    log_tick,
    new_figure,
    page_panels,
    page_title,
    plain_tick,
    style_axes,
)
from bfreplay.report.figures.figure import Figure, PageFigure
from bfreplay.report.figures.marks import GREY, LINES, MARKERS, OKABE_ITO, ROWS, Mark, Trace, axis, fill_look, in_lines
from bfreplay.runs.metrics import BY_COLUMN

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from bfreplay.experiments.sweep import SweepResult

SATURATED_ABOVE = 0.99
"""Utilisation of nodes above which a cluster cannot do more."""

_FIRST_RESULT = "id"
"""Columns before it are what varies."""

Place = float | str
"""Where a point stands: a number, or a category."""


@dataclass(frozen=True, slots=True, eq=False)
class SweptLine:
    """Values of a metric for one value of ``by``.

    Parameters
    ----------
    label
        That value as text; empty for a single line.
    x
        P places: numbers, ascending; or categories.
    values
        P arrays (S,): one value a row of the table at this place.
    is_saturated : (P,) bool
        One of these runs used more than ``SATURATED_ABOVE`` of the nodes, or did not complete its jobs.
    """

    label: str
    x: tuple[Place, ...]
    values: tuple[NDArray[np.float64], ...]
    is_saturated: NDArray[np.bool_]

    @property
    def mean(self) -> NDArray[np.float64]:
        """(P,)."""
        return np.array([value.mean() for value in self.values])

    @property
    def span(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(P,) least and (P,) largest value."""
        return np.array([column.min() for column in self.values]), np.array([value.max() for value in self.values])


@dataclass(frozen=True, slots=True, eq=False)
class SweptPanel:
    """One metric: its column, its words with the unit, and its lines; values are divided by ``scale``."""

    column: str
    words: str
    scale: float
    lines: tuple[SweptLine, ...]


@dataclass(frozen=True, slots=True, eq=False)
class SweptLines:
    """Data of the picture of a sweep.

    Parameters
    ----------
    x
        Column of the horizontal axis, or a parameter in the text of one.
    is_number
        True if its values are numbers; else categories.
    panels
        One a metric.
    averaged_over
        Other columns that vary between rows of one point, with the number of their values.
    n_skipped
        Rows without a value on the axis or of a metric, for example of failed runs.
    """

    x: str
    is_number: bool
    panels: tuple[SweptPanel, ...]
    averaged_over: dict[str, int]
    n_skipped: int


def swept_lines(
    table: pd.DataFrame,
    x: str,
    y: Sequence[str],
    by: Sequence[str] = (),
    *,
    saturated_above: float | None = SATURATED_ABOVE,
) -> SweptLines:
    """Collect the points of a picture.

    Parameters
    ----------
    table
        Results of a sweep: ``SweepResult.table``, or rows of it.
    x, by
        Columns of the axis and of the lines, or ``COLUMN.PARAMETER`` for a parameter in brackets in
        the text of one, such as ``jobs.jobs_per_hour`` of ``gavel(n=9, jobs_per_hour=2)``.
    y
        Columns of numbers: one panel each.
    saturated_above
        Utilisation above which a point counts as saturated; ``None``: none does.

    Raises
    ------
    InputError
        There is no such column or parameter, a metric is no number, or nothing is left to show.
    """
    if not y:
        raise InputError("the picture has no metric", column="y", expected="one column of the table at least")
    axis, group_values = _cells(table, x), [_cells(table, option) for option in by]
    line_rows = zip(*group_values, strict=True) if by else [()] * len(table)
    labels = [", ".join(map(_text, by, line_values)) for line_values in line_rows]
    is_number = all(isinstance(cell, int | float) for cell in axis if cell is not None)
    has_saturation = _is_saturated(table, saturated_above)
    has_place = np.array([cell is not None for cell in axis], np.bool_)
    has_line = np.zeros(len(table), np.bool_)
    panels = []
    for column in y:
        values = _numbers(table, column)
        is_shown = has_place & ~np.isnan(values)
        if not is_shown.any():
            raise InputError(
                f"no row of the sweep has a value of {column!r} to show",
                column=column,
                value=x,
                expected="runs that finished, and that have this metric",
                fix="choose another column; 'bfreplay sweep ... --json' prints them all",
            )
        has_line |= is_shown
        metric_words, scale = _words(column, float(values[is_shown].max()))
        lines = _lines(axis, labels, values / scale, has_saturation, np.flatnonzero(is_shown), is_number=is_number)
        panels.append(SweptPanel(column, metric_words, scale, tuple(lines)))
    hidden = {name: n for name, n in varied_options(table[has_line]).items() if name not in (x, *by)}
    return SweptLines(x, is_number, tuple(panels), hidden, int((~has_line).sum()))


def lines_of(sweep: SweepResult, x: str, y: Sequence[str], by: Sequence[str]) -> SweptLines:
    """Collect the points as ``swept_lines`` does; on a log, where a run may end before its jobs, none is saturated."""
    end_with_jobs = all(not {"cluster", "measure"}.isdisjoint(run.options) for run in sweep.record.runs.values())
    return swept_lines(sweep.table, x, y, by, saturated_above=SATURATED_ABOVE if end_with_jobs else None)


def _lines(
    axis: Sequence[Any],
    labels: Sequence[str],
    values: NDArray[np.float64],
    has_saturation: NDArray[np.bool_],
    rows: NDArray[np.int64],
    *,
    is_number: bool,
) -> list[SweptLine]:
    lines = []
    places = list(dict.fromkeys(axis[row] for row in rows))  # categories as they come in the table
    if is_number:
        places.sort()
    for label in dict.fromkeys(labels[row] for row in rows):
        members = {place: [row for row in rows if labels[row] == label and axis[row] == place] for place in places}
        members = {place: those for place, those in members.items() if those}
        is_saturated = np.array([bool(has_saturation[those].any()) for those in members.values()], np.bool_)
        lines.append(SweptLine(label, tuple(members), tuple(values[those] for those in members.values()), is_saturated))
    return lines


def _cells(table: pd.DataFrame, column_name: str) -> list[Any]:
    """Values of a column, or of a parameter in its texts; ``None`` where there is none."""
    if column_name in table:
        return list(table[column_name].astype(object).where(table[column_name].notna(), None))
    column, separator, parameter = column_name.partition(".")
    if not separator or column not in table:
        raise _no_column(table, column_name)
    parameters = [_parameter(cell, parameter) for cell in table[column].tolist()]
    if all(parameter_value is None for parameter_value in parameters):
        raise InputError(
            f"no text of {column!r} has the parameter {parameter!r}",
            column=column_name,
            value=next(iter(table[column]), None),
            expected="NAME(parameter=value, ...) in the texts of the column",
            fix="name a parameter that is in them, or the column",
        )
    return parameters


def _parameter(cell_text: object, name: str) -> Any:
    try:
        return dict(parse_one(str(cell_text), "value", "NAME(key=value)").parameters).get(name)
    except InputError:
        return None


def _numbers(table: pd.DataFrame, column: str) -> NDArray[np.float64]:
    if column not in table:
        raise _no_column(table, column)
    if table[column].dtype.kind not in "iufb" and not table[column].isna().all():
        raise InputError(
            f"the column {column!r} is no number",
            column=column,
            value=next(iter(table[column].dropna())),
            expected="a metric that is a number, such as average_jct_s",
            fix="choose another column",
        )
    return np.asarray(table[column].astype("float64"))


def _no_column(table: pd.DataFrame, column_name: str) -> InputError:
    columns = [str(column) for column in table.columns]
    return InputError(
        f"the sweep has no column {column_name!r}",
        column=column_name,
        value=column_name,
        expected=f"one of {', '.join(columns)}",
        fix=nearest(column_name, columns, "name a column, or COLUMN.PARAMETER"),
    )


def _is_saturated(table: pd.DataFrame, highest_utilisation: float | None) -> NDArray[np.bool_]:
    """(R,) bool: runs that could not keep up with their jobs."""
    is_over = np.zeros(len(table), np.bool_)
    if highest_utilisation is None:
        return is_over
    if "utilisation" in table:
        is_over |= np.asarray(table["utilisation"].astype("float64") > highest_utilisation)
    if {"n_measured_jobs", "n_measured_completed"} <= set(table):
        n_jobs, n_complete = (table[name].astype("float64") for name in ("n_measured_jobs", "n_measured_completed"))
        n_declines = table["jobs_declined"].astype("float64") if "jobs_declined" in table else 0.0
        is_over |= np.asarray(n_complete + n_declines < n_jobs)
    return is_over


def varied_options(table: pd.DataFrame) -> dict[str, int]:
    """Options that differ between the rows of a sweep, with their numbers of values."""
    columns = [str(column) for column in table.columns]
    option_columns = columns[: columns.index(_FIRST_RESULT)] if _FIRST_RESULT in columns else []
    number = {name: len(set(map(str, table[name]))) for name in option_columns}
    return {name: n_values for name, n_values in number.items() if n_values > 1}


def _words(column: str, largest: float) -> tuple[str, float]:
    """Words of a metric with its unit, and the divisor of its values."""
    metric = BY_COLUMN.get(column)
    if metric is None:
        return column, 1.0
    metric_words = metric.words_for()
    if metric.kind == "seconds":
        unit_name, unit_s = ("h", 3600.0) if largest >= 7200 else ("min", 60.0) if largest >= 120 else ("s", 1.0)
        return f"{metric_words}, {unit_name}", unit_s
    return (f"{metric_words}, %", 0.01) if metric.kind in ("percent", "at-least") else (metric_words, 1.0)


def _text(column_name: str, cell: object) -> str:
    """Text of a value of ``by``; a value that is not text follows its name."""
    if isinstance(cell, str):
        return cell
    cell_text = "-" if cell is None else str(cell).lower() if isinstance(cell, bool) else f"{cell:g}"
    return f"{column_name} {cell_text}"


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


_N_SYMBOLS, _HOLLOW = 8, 100
"""Symbols of Plotly in use, by number; the same ones hollow are so much higher."""


def page(lines: SweptLines) -> PageFigure:
    """The same for the page, panels one below the other; categories are rows of points."""
    is_number, looks = lines.is_number, _looks(lines)
    places = list(dict.fromkeys(place for panel in lines.panels for line in panel.lines for place in line.x))
    of_places = page_title(lines.x) if is_number else ROWS
    if is_number and _grows_by_a_factor(np.array(sorted(places), dtype=np.float64)):
        of_places = of_places | {"type": "log", "tickvals": places, "ticktext": [f"{place:g}" for place in places]}
    axes: list[tuple[Trace, Trace]] = []
    traces: list[Trace] = []
    for index, panel in enumerate(lines.panels):
        of_values = page_title(panel.words) | ({"type": "log"} if _is_far_apart(panel) else {"rangemode": "tozero"})
        axes.append((of_places, of_values) if is_number else (of_values, of_places))
        for line in panel.lines:
            of_panel = {"xaxis": axis(index, "x"), "yaxis": axis(index), "showlegend": index == 0 and bool(line.label)}
            name = escape(line.label, quote=False) or panel.words
            traces.append(_page_line(line, name, looks, is_number) | of_panel)
    layout, height = page_panels(axes, 250 if is_number else 32 * len(places) + 30)
    return PageFigure(traces, layout, height=height)


def _page_line(line: SweptLine, name: str, looks: Mapping[str, int], is_number: bool) -> Trace:
    look, mean, (lower, upper) = looks[line.label], line.mean, line.span
    spread = {"type": "data", "array": (upper - mean).tolist(), "arrayminus": (mean - lower).tolist()}
    spread["visible"] = bool((upper > lower).any())
    size = 8 + 4 * max(0, min(len(looks), 4) - 1 - look)  # points that coincide are all to be seen
    symbols, mark = look % _N_SYMBOLS + _HOLLOW * line.is_saturated, Mark.of_run(look)
    marker = {"symbol": symbols.tolist(), "size": size, "color": f"@{mark.role}"}
    places = [place if is_number else in_lines(escape(str(place), quote=False), 21) for place in line.x]
    x, y = ("x", "y") if is_number else ("y", "x")
    points = {x: places, y: mean.tolist(), f"error_{y}": spread, "marker": marker}
    points |= {"mode": "lines+markers" if is_number else "markers", "legendgroup": name}
    return mark.curve(name, f"{name}<br>%{{{x}}}: %{{{y}:.4~g}}", **points)


def words(lines: SweptLines) -> str:
    """Axes of the picture, and what a point stands for."""
    metrics = "; ".join(panel.words for panel in lines.panels)
    text = f"Against {lines.x}: {metrics}. The numbers are in the table of the runs."
    if lines.averaged_over:
        options = values_words(lines.averaged_over)
        text += f" Points are means, and whiskers the range, of runs that differ in {options}."
    if any(line.is_saturated.any() for panel in lines.panels for line in panel.lines):
        text += " Hollow points are saturated: nodes used all the time, or jobs not completed."
    return text


def values_words(n_values: Mapping[str, int]) -> str:
    """Options with their numbers of values: ``seed (3 values)``."""
    return ", ".join(f"{name} ({n:,} values)" for name, n in n_values.items())


SWEEP = Figure("sweep", "Metrics of a sweep against an option", swept_lines, draw_sweep_lines, page, words)
