"""Times of ``bfreplay finish``: data functions, and what draws them on paper and on the page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.idleness.week import WEEKDAYS
from bfreplay.datasets.times import EPOCH
from bfreplay.report.figures.axes import fix_layout, new_figure, page_panels, style_axes
from bfreplay.report.figures.figure import Figure, PageFigure, as_they_are
from bfreplay.report.figures.marks import BLUE, FAINT_BLUE, RED, Mark, Trace, axis, layout_axis, point_look
from bfreplay.result_folders.finish import AT_MOST, MORE, FinishRecord
from bfreplay.runs.censored_times import censored_quantiles, common_unit, done_by
from bfreplay.wording import amount, count, duration

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing


_BIN_HOURS = 4
_FEW = 3
"""Least number of starts with a median of their own."""


@dataclass(frozen=True, slots=True, eq=False)
class FinishTimes:
    """Times until all is done, in ``unit``.

    Parameters
    ----------
    unit, unit_s
        Unit of the answer's times, such as ``"h"``, and its seconds.
    time, is_done : (N,)
        Of each start, in order: time, and false where the log ended before.
    weekday, hour : (N,) float64
        Start: days since Monday 0:00, and hour of the day; empty for a log without a calendar.
    """

    unit: str
    unit_s: float
    time: NDArray[np.float64]
    is_done: NDArray[np.bool_]
    weekday: NDArray[np.float64]
    hour: NDArray[np.float64]

    def text(self, seconds: float) -> str:
        """Text of a time in the common unit."""
        return duration(seconds, (self.unit, self.unit_s))


def finish_times(record: FinishRecord) -> FinishTimes:
    """Return the times of a record, with the clock of its time zone."""
    seconds = np.array([start.duration_s for start in record.starts])
    unit_name, unit_s = common_unit(record.quantiles.median_s, record.quantiles.observed_s)
    weekdays: list[float] = []
    if record.config.time_zone is not None:
        time_zone = UTC if record.config.time_zone == "UTC" else ZoneInfo(record.config.time_zone)
        local = [(EPOCH + timedelta(microseconds=start.time_us)).astimezone(time_zone) for start in record.starts]
        weekdays = [start_time.weekday() + (start_time.hour + start_time.minute / 60) / 24 for start_time in local]
    weekday = np.array(weekdays)
    is_done = np.array([start.is_done for start in record.starts])
    return FinishTimes(unit_name, unit_s, seconds / unit_s, is_done, weekday, weekday % 1 * 24)


def medians(times: FinishTimes, group_of_start: NDArray[np.int64]) -> dict[int, float]:
    """Return the median of each group of starts, numbered ``(N,)``, that has several and a known median."""
    medians_of_groups = {}
    for group_number in np.unique(group_of_start).tolist():
        of_group = group_of_start == group_number
        (median,) = censored_quantiles(times.time[of_group], times.is_done[of_group], (0.5,))
        if median is not None and of_group.sum() >= _FEW:
            medians_of_groups[group_number] = median
    return medians_of_groups


def finish_figure(record: FinishRecord) -> Drawing:
    """Draw the record of a finish.

    At left the share of the starts that are done against time, with the quartiles and dedicated nodes; at right each
    start by weekday and by hour of the day, with medians. A log without a calendar has the left panel only.
    """
    times = finish_times(record)
    if not times.weekday.size:
        figure = new_figure(7.0, 4.8)
        _draw_shares(figure.subplots(), record, times)
    else:
        figure = new_figure(11.5, 5.2)
        panel_grid = figure.add_gridspec(2, 2, width_ratios=[1.2, 1.0])
        _draw_shares(figure.add_subplot(panel_grid[:, 0]), record, times)
        by_day, by_hour = figure.add_subplot(panel_grid[0, 1]), figure.add_subplot(panel_grid[1, 1])
        for axes, panel in zip((by_day, by_hour), _start_panels(times), strict=True):
            _draw_starts(axes, times, panel)
            style_axes(axes, f"{panel.words} of the start ({record.config.time_zone})", f"time, {times.unit}")
        by_day.set_xticks(np.arange(7) + 0.5, labels=[weekday[:3] for weekday in WEEKDAYS])
        by_day.set_xlim(0, 7)
        by_hour.set_xticks(range(0, 25, _BIN_HOURS))
        by_hour.set_xlim(0, 24)
        by_day.legend(fontsize=8, frameon=False, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3)
    return fix_layout(figure)


def _draw_shares(axes: Axes, record: FinishRecord, times: FinishTimes) -> None:
    median_s, middle_half = record.quantiles.median_s, _middle_half(record, times)
    if middle_half is not None:
        axes.axvspan(*middle_half, color=FAINT_BLUE, linewidth=0, label=_MIDDLE_HALF)
    steps, open_points = _shares(times)
    axes.step(*steps, where="post", color=BLUE, linewidth=2.0, label=_STARTS_DONE, zorder=4)
    if open_points[0].size:
        axes.plot(*open_points, label=_open_words(times), zorder=5, **point_look(RED, "|", 9))
    if median_s is not None:
        words = f"median: {times.text(median_s)}"
        axes.plot([median_s / times.unit_s], [50], label=words, zorder=6, **point_look(BLUE, size=7))
    lines = list(_dedicated_lines(record, times))
    for words, time, mark in lines:
        axes.axvline(time, label=words, zorder=3, **mark.paper_line)
    axes.set_ylim(0, 102)
    axes.set_xlim(0, _last_time(times, lines))
    style_axes(axes, *_axis_words(record, times))
    axes.legend(fontsize=8.5, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)


_STARTS_DONE, _MIDDLE_HALF = "idle nodes: starts done", "middle half of the starts"
_Points = tuple[NDArray[np.float64], NDArray[np.float64]]
_Lines = list[tuple[str, float, Mark]]


def _shares(times: FinishTimes) -> tuple[_Points, _Points]:
    """Return the steps of the share of starts that are done, in percent, and the points of unfinished ones on it."""
    done_at, done_shares = done_by(times.time, times.is_done)
    shares, open_at = 100 * np.append(0.0, done_shares), times.time[~times.is_done]
    steps = np.concatenate([[0.0], done_at, [times.time.max()]]), np.append(shares, shares[-1])
    return steps, (open_at, shares[np.searchsorted(done_at, open_at, side="right")])


def _middle_half(record: FinishRecord, times: FinishTimes) -> tuple[float, float] | None:
    lower_s, upper_s = record.quantiles.quarter_s, record.quantiles.three_quarters_s
    if lower_s is None:
        return None
    return lower_s / times.unit_s, float(times.time.max()) if upper_s is None else upper_s / times.unit_s


def _open_words(times: FinishTimes) -> str:
    return f"unfinished when the log ends ({int((~times.is_done).sum())})"


def _last_time(times: FinishTimes, lines: _Lines) -> float:
    return 1.03 * max([float(times.time.max()), *(time for _, time, _ in lines)])


def _dedicated_lines(record: FinishRecord, times: FinishTimes) -> Iterator[tuple[str, float, Mark]]:
    """Yield words, time and look of the dedicated nodes that were asked for, and of those that the idle ones are worth.

    Without a line of its own for the largest number tried, where they are worth more.
    """
    n_asked, worth = record.config.dedicated, record.worth
    about = {AT_MOST: "worth at most ", MORE: ""}.get(worth.meaning, "worth ")
    for nodes, prefix, mark in ((n_asked, "", Mark("bound", 1)), (worth.nodes, about, Mark("idle", 2))):
        seconds = record.dedicated_s(nodes)
        is_limit = nodes == worth.nodes and worth.meaning == MORE and nodes != n_asked
        if nodes is not None and seconds is not None and not is_limit:
            words = f"{prefix}{count(nodes, 'dedicated node')}: {times.text(seconds)}"
            yield words, seconds / times.unit_s, mark


def _axis_words(record: FinishRecord, times: FinishTimes) -> tuple[str, str]:
    outcome_words = "search over" if record.inputs.is_search else "all jobs done"
    return f"time since the start, {times.unit}", f"{outcome_words}, % of the starts"


class _StartPanel(NamedTuple):
    """Words, place of each start, width of the bins, and the median of each bin by its number."""

    words: str
    places: NDArray[np.float64]
    width: float
    medians: dict[int, float]


def _start_panels(times: FinishTimes) -> list[_StartPanel]:
    kinds = (("weekday", times.weekday, 1.0), ("hour", times.hour, float(_BIN_HOURS)))
    return [_StartPanel(*kind, medians(times, np.floor(kind[1] / kind[2]).astype(np.int64))) for kind in kinds]


def _draw_starts(axes: Axes, times: FinishTimes, panel: _StartPanel) -> None:
    start_place, bin_width = panel.places, panel.width
    done_look: Trace = {"alpha": 0.75, "markeredgewidth": 0, "label": "a start"} | point_look(BLUE, "o", 4.5)
    open_look: Trace = {"markerfacecolor": "white", "label": "unfinished after"} | point_look(RED, "^", 5.5)
    for is_of_kind, point_style in ((times.is_done, done_look), (~times.is_done, open_look)):
        if is_of_kind.any():
            axes.plot(start_place[is_of_kind], times.time[is_of_kind], clip_on=False, **point_style)
    for position, (group_number, median) in enumerate(panel.medians.items()):
        point_style = {"color": "black", "linewidth": 1.8, "zorder": 4, "label": "_" if position else "median"}
        axes.hlines(median, group_number * bin_width, (group_number + 1) * bin_width, **point_style)
    axes.set_ylim(bottom=0)
    for bin_edge in np.arange(bin_width, float(np.ceil(start_place.max() / bin_width)) * bin_width, bin_width):
        axes.axvline(bin_edge, color="#E4E4E4", linewidth=0.6, zorder=0)


def shares_page(record: FinishRecord) -> PageFigure:
    """The left panel for the page."""
    times, median_s = finish_times(record), record.quantiles.median_s
    lines, (steps, open_points), half = [*_dedicated_lines(record, times)], _shares(times), _middle_half(record, times)
    x_title, y_title = _axis_words(record, times)
    hover = f"%{{x:.3~r}} {times.unit}"
    traces: list[Trace] = []
    if half is not None:
        band: Trace = {"x": [*half, *half[::-1]], "y": [0, 0, 102, 102], "fill": "toself", "fillcolor": "@heat-1"}
        traces.append({**band, "type": "scatter", "mode": "none", "name": _MIDDLE_HALF, "hoverinfo": "skip"})
    traces += [mark.curve(words, words, x=[time, time], y=[0, 102]) for words, time, mark in lines]
    points = {"x": steps[0].tolist(), "y": steps[1].tolist()}
    traces.append(Mark("useful").curve(_STARTS_DONE, f"%{{y:.3~r}} % within {hover}", {"shape": "hv"}, **points))
    if open_points[0].size:
        traces.append(_points(_open_words(times), *open_points, "lost", "line-ns-open", f"after {hover}"))
    if median_s is not None:
        words, point = f"median: {times.text(median_s)}", (np.array([median_s / times.unit_s]), np.array([50.0]))
        traces.append(_points(words, *point, "useful", "circle", words))
    x_axis = {"title": {"text": x_title}, "range": [0, _last_time(times, lines)]}
    return PageFigure(traces, {"xaxis": x_axis, "yaxis": {"title": {"text": y_title}, "range": [0, 102]}}, height=520)


def starts_page(record: FinishRecord) -> PageFigure:
    """The right panels for the page, one below the other."""
    times, (domains, height) = finish_times(record), page_panels(2, 200)
    ticks = (
        {"tickvals": [day + 0.5 for day in range(7)], "ticktext": [*WEEKDAYS], "range": [0, 7]},
        {"tickvals": [*range(0, 25, _BIN_HOURS)], "range": [0, 24]},
    )
    kinds = (
        (times.is_done, "a start", "useful", "circle"),
        (~times.is_done, "unfinished after", "lost", "triangle-up-open"),
    )
    traces: list[Trace] = []
    layout: Trace = {}
    for index, panel in enumerate(_start_panels(times)):
        of_panel: Trace = {"xaxis": axis(index, "x"), "yaxis": axis(index), "showlegend": index == 0}
        for kind, name, role, symbol in kinds:
            hover = f"{name}: %{{y:.3~r}} {times.unit}"
            traces += [_points(name, panel.places[kind], times.time[kind], role, symbol, hover) | of_panel] * bool(
                kind.any()
            )
        bins = panel.medians.items()
        x = [place for group, _ in bins for place in (group * panel.width, (group + 1) * panel.width, None)]
        y = [place for _, median in bins for place in (median, median, None)]
        traces.append(Mark("ink").curve("median", f"median: %{{y:.3~r}} {times.unit}", x=x, y=y, **of_panel))
        title = {"text": f"{panel.words} of the start ({record.config.time_zone})", "standoff": 4}
        layout[layout_axis(index, "x")] = {**ticks[index], "title": title, "anchor": axis(index), "tickangle": 0}
        up = {"title": {"text": f"time, {times.unit}"}, "rangemode": "tozero", "domain": domains[index]}
        layout[layout_axis(index)] = {**up, "anchor": axis(index, "x")}
    return PageFigure(traces, layout, height=height)


def _points(name: str, x: NDArray[np.float64], y: NDArray[np.float64], role: str, symbol: str, hover: str) -> Trace:
    marker = {"color": f"@{role}", "symbol": symbol, "size": 9, "line": {"color": f"@{role}", "width": 2}}
    points = {"type": "scatter", "mode": "markers", "name": name, "x": x.tolist(), "y": y.tolist(), "marker": marker}
    return {**points, "hovertemplate": f"{hover}<extra></extra>"}


def share_words(record: FinishRecord) -> str:
    """Number of starts that are done, and how to read the picture."""
    starts = f"{record.n_done:,} of {count(len(record.starts), 'start')} are done before the log ends"
    return f"{starts}. Shaded is the middle half; ticks on the line are unfinished starts, at the time that they had."


def start_words(times: FinishTimes) -> str:
    """Medians by weekday and by hour of the start."""
    names = (WEEKDAYS, [f"{hour:02}-{hour + _BIN_HOURS:02}" for hour in range(0, 24, _BIN_HOURS)])
    sentences = [f"Lines are medians of at least {_FEW} starts; triangles are starts unfinished when the log ends."]
    for panel, group_names in zip(_start_panels(times), names, strict=True):
        parts = [f"{group_names[group]} {amount(median)}" for group, median in panel.medians.items()]
        sentences += [f"Median by {panel.words} of the start, in {times.unit}: {', '.join(parts)}."] if parts else []
    return " ".join(sentences)


FINISH = Figure("finish", "Time until all is done, by start", as_they_are, finish_figure, shares_page, share_words)
