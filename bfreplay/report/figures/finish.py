"""The picture of ``bfreplay finish``: data functions, and a drawing function."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.idleness.week import WEEKDAYS
from bfreplay.datasets.times import EPOCH
from bfreplay.report.figures.axes import fix_layout, new_figure, style_axes
from bfreplay.report.figures.figure import Figure, as_they_are
from bfreplay.report.figures.marks import BLUE, FAINT_BLUE, GREEN, GREY, RED, Trace, point_look
from bfreplay.result_folders.finish import AT_MOST, MORE, FinishRecord
from bfreplay.runs.censored_times import censored_quantiles, done_by
from bfreplay.wording import count, duration

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing


_UNITS = (("days", 86_400.0), ("h", 3_600.0), ("min", 60.0))
_BIN_HOURS = 4
_FEW = 3
"""Least number of starts with a median of their own."""


@dataclass(frozen=True, slots=True, eq=False)
class FinishTimes:
    """Times until all is done, in ``unit``.

    Parameters
    ----------
    unit, unit_s
        ``"h"``, or another unit that suits the times; and its seconds.
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


def finish_times(record: FinishRecord) -> FinishTimes:
    """Return the times of a record, with the clock of its time zone."""
    seconds = np.array([start.duration_s for start in record.starts])
    longest_s = float(seconds.max())
    unit_name, unit_s = next((unit for unit in _UNITS if longest_s >= 4 * unit[1]), ("s", 1.0))
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
    quantiles, unit_s = record.quantiles, times.unit_s
    last_time = float(times.time.max())
    times_x, done_shares = done_by(times.time, times.is_done)
    lower_s, upper_s = quantiles.quarter_s, quantiles.three_quarters_s
    if lower_s is not None:
        middle_half = lower_s / unit_s, last_time if upper_s is None else upper_s / unit_s
        axes.axvspan(*middle_half, color=FAINT_BLUE, linewidth=0, label="middle half of the starts")
    shares = 100 * np.append(0.0, done_shares)
    step_points = np.concatenate([[0.0], times_x, [last_time]]), np.append(shares, shares[-1])
    axes.step(*step_points, where="post", color=BLUE, linewidth=2.0, label="idle nodes: starts done", zorder=4)
    open_at = times.time[~times.is_done]
    if open_at.size:
        heights = shares[np.searchsorted(times_x, open_at, side="right")]
        words = f"unfinished when the log ends ({open_at.size})"
        axes.plot(open_at, heights, label=words, zorder=5, **point_look(RED, "|", 9))
    if quantiles.median_s is not None:
        words = f"median: {duration(quantiles.median_s)}"
        axes.plot([quantiles.median_s / unit_s], [50], label=words, zorder=6, **point_look(BLUE, size=7))
    n_asked, worth = record.config.dedicated, record.worth
    for nodes, color, dashes in ((n_asked, GREEN, "--"), (worth.nodes, GREY, ":")):
        seconds = record.dedicated_s(nodes)
        if nodes is None or seconds is None or (nodes == worth.nodes and worth.meaning == MORE and nodes != n_asked):
            continue
        words = f"{count(nodes, 'dedicated node')}: {duration(seconds)}"
        about = {AT_MOST: "worth at most ", MORE: ""}.get(worth.meaning, "worth ") if color == GREY else ""
        axes.axvline(seconds / unit_s, color=color, linestyle=dashes, linewidth=1.8, label=f"{about}{words}", zorder=3)
    axes.set_ylim(0, 102)
    shown_s = [entry.duration_s or 0 for entry in record.dedicated if entry.nodes in (n_asked, worth.nodes)]
    axes.set_xlim(0, 1.03 * max([last_time, *(seconds / unit_s for seconds in shown_s)]))
    outcome_words = "search over" if record.inputs.is_search else "all jobs done"
    style_axes(axes, f"time since the start, {times.unit}", f"{outcome_words}, % of the starts")
    axes.legend(fontsize=8.5, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)


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


FINISH = Figure("finish", "Time until all is done, by start", as_they_are, finish_figure)
