"""The picture of ``bfreplay finish``: data functions, and what draws them on paper and on the page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.idleness.week import WEEKDAYS
from bfreplay.datasets.times import EPOCH
from bfreplay.report.figures.axes import fix_layout, new_figure, page_title, style_axes
from bfreplay.report.figures.figure import Figure, PageFigure, as_they_are
from bfreplay.report.figures.marks import BLUE, FAINT_BLUE, RED, Mark, Trace, point_look
from bfreplay.result_folders.finish import AT_MOST, MORE, FinishRecord
from bfreplay.runs.censored_times import censored_quantiles, done_by
from bfreplay.wording import count, duration, time_unit

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
    unit_name, unit_s = time_unit(record.quantiles.median_or_bound_s)
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
        _draw_starts(by_day, times, times.weekday, 1.0)
        by_day.set_xticks(np.arange(7) + 0.5, labels=[weekday[:3] for weekday in WEEKDAYS])
        by_day.set_xlim(0, 7)
        _draw_starts(by_hour, times, times.hour, float(_BIN_HOURS))
        by_hour.set_xticks(range(0, 25, _BIN_HOURS))
        by_hour.set_xlim(0, 24)
        for axes, words in ((by_day, "weekday"), (by_hour, "hour")):
            style_axes(axes, f"{words} of the start ({record.config.time_zone})", f"time, {times.unit}")
        by_day.legend(fontsize=8, frameon=False, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3)
    return fix_layout(figure)


def _draw_shares(axes: Axes, record: FinishRecord, times: FinishTimes) -> None:
    median_s, middle_half = record.quantiles.median_s, _middle_half(record, times)
    if middle_half is not None:
        axes.axvspan(*middle_half, color=FAINT_BLUE, linewidth=0, label="middle half of the starts")
    _, open_points = _shares(times)
    last_time = float(times.time.max())
    for words, steps, mark in _share_lines(record, times):
        axes.step(*steps, where="post", label=words, zorder=4, **mark.paper_line)
        last_time = max(last_time, steps[0][-1])
    if n_open := open_points[0].size:
        axes.plot(*open_points, label=f"{_OPEN} ({n_open})", zorder=5, **point_look(RED, "|", 9))
    if median_s is not None:
        words = f"median: {times.text(median_s)}"
        axes.plot([median_s / times.unit_s], [50], label=words, zorder=6, **point_look(BLUE, size=7))
    for words, time, mark in _dedicated_lines(record, times):
        axes.axvline(time, label=words, zorder=3, **mark.paper_line)
        last_time = max(last_time, time)
    axes.set_ylim(0, 102)
    axes.set_xlim(0, 1.03 * last_time)
    style_axes(axes, *_axis_titles(record, times))
    axes.legend(fontsize=8.5, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)


_OPEN = "unfinished when the log ends"
_Points = tuple[NDArray[np.float64], NDArray[np.float64]]


def _share_lines(record: FinishRecord, times: FinishTimes) -> Iterator[tuple[str, _Points, Mark]]:
    """Yield words, steps and look of the shares of the jobs, and of the other ones that they are compared with."""
    other, (first_name, other_name) = record.against, record.names
    yield f"{'idle nodes' if other is None else first_name}: starts done", _shares(times)[0], Mark("useful")
    if other is not None:
        other_times = np.array([start.duration_s for start in other.starts]) / times.unit_s
        is_done = np.array([start.is_done for start in other.starts])
        other_steps, _ = _shares(replace(times, time=other_times, is_done=is_done))
        yield f"{other_name}: starts done", other_steps, Mark("rescaling", 1)


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


def _axis_titles(record: FinishRecord, times: FinishTimes) -> tuple[str, str]:
    outcome_words = "search over" if record.inputs.is_search else "all jobs done"
    return f"time since the start, {times.unit}", f"{outcome_words}, % of the starts"


def _draw_starts(axes: Axes, times: FinishTimes, start_place: NDArray[np.float64], bin_width: float) -> None:
    done_look: Trace = {"alpha": 0.75, "markeredgewidth": 0, "label": "a start"} | point_look(BLUE, "o", 4.5)
    open_look: Trace = {"markerfacecolor": "white", "label": "unfinished after"} | point_look(RED, "^", 5.5)
    for is_of_kind, point_style in ((times.is_done, done_look), (~times.is_done, open_look)):
        if is_of_kind.any():
            axes.plot(start_place[is_of_kind], times.time[is_of_kind], clip_on=False, **point_style)
    median_of_group = medians(times, np.floor(start_place / bin_width).astype(np.int64))
    for position, (group_number, median) in enumerate(median_of_group.items()):
        point_style = {"color": "black", "linewidth": 1.8, "zorder": 4, "label": "_" if position else "median"}
        axes.hlines(median, group_number * bin_width, (group_number + 1) * bin_width, **point_style)
    axes.set_ylim(bottom=0)
    for bin_edge in np.arange(bin_width, float(np.ceil(start_place.max() / bin_width)) * bin_width, bin_width):
        axes.axvline(bin_edge, color="#E4E4E4", linewidth=0.6, zorder=0)


def page(record: FinishRecord) -> PageFigure:
    """The shares for the page."""
    times, median_s = finish_times(record), record.quantiles.median_s
    (_, open_points), middle_half = _shares(times), _middle_half(record, times)
    hover = f"%{{x:.3~r}} {times.unit}"
    lines = _dedicated_lines(record, times)
    traces = [mark.curve(words, words, x=[time, time], y=[0, 102]) for words, time, mark in lines]
    for words, steps, mark in _share_lines(record, times):
        points = {"x": steps[0].tolist(), "y": steps[1].tolist()}
        traces.append(mark.curve(words, f"%{{y:.3~r}} % within {hover}", {"shape": "hv"}, **points))
    if open_points[0].size:
        words, look = f"{_OPEN} ({open_points[0].size})", _page_points("lost", "line-ns-open")
        points = {"x": open_points[0].tolist(), "y": open_points[1].tolist()}
        traces.append(Mark("lost").curve(words, f"after {hover}", **points, **look))
    if median_s is not None:
        words, look = f"median: {times.text(median_s)}", _page_points("useful", "circle")
        traces.append(Mark("useful").curve(words, words, x=[median_s / times.unit_s], y=[50], **look))
    x, y = map(page_title, _axis_titles(record, times))
    layout: Trace = {"xaxis": {**x, "rangemode": "tozero"}, "yaxis": {**y, "range": [0, 102]}}
    if middle_half is not None:
        edges = {"x0": middle_half[0], "x1": middle_half[1], "y0": 0, "y1": 102}
        layout["shapes"] = [{**edges, "fillcolor": "@heat-1", "line": {"width": 0}, "layer": "below"}]
    return PageFigure(traces, layout, height=520)


def _page_points(role: str, symbol: str) -> Trace:
    look = {"color": f"@{role}", "symbol": symbol, "size": 9, "line": {"color": f"@{role}", "width": 2}}
    return {"mode": "markers", "marker": look}


def words(record: FinishRecord) -> str:
    """Number of starts that are done, and how to read the picture."""
    starts = f"{record.n_done:,} of {count(len(record.starts), 'start')} are done before the log ends"
    shaded = "" if record.quantiles.quarter_s is None else "shaded is the middle half; "
    return f"{starts}; {shaded}ticks on the line are unfinished starts, at the time that they had."


FINISH = Figure("finish", "Time until all is done, by start", as_they_are, finish_figure, page, words)
