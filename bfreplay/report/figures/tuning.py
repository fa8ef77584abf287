"""The picture of a tuning: data functions, and a drawing function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bfreplay.report.figures.axes import new_figure, style_axes
from bfreplay.report.figures.figure import Figure, as_they_are
from bfreplay.report.figures.marks import FAINT_BLUE, GREY, MARKERS, OKABE_ITO, Trace, point_look
from bfreplay.result_folders.tuning import TradeOff, TradeOffPoint, TuningRecord
from bfreplay.wording import count, duration

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

_AUTO = "auto"
_TICKS = (100.0, 99.9, 99.5, 99.0, 98.0, 96.0, 94.0, 90.0, 85.0, 80.0, 70.0, 60.0, 50.0, 40.0, 20.0, 0.0)
_FAR = 2.0
"""``auto`` stands at the right of the longest fixed time, by this factor."""
_MEASURES = {"samples": "samples", "finish": "speed of doing all work"}
_PARTS = {"tuning": ("tuned on", "-"), "validation": ("validated on", (0, (4, 2)))}
_STAR = point_look("black", "*", 17) | {"markerfacecolor": "#FFD23F", "zorder": 2}


@dataclass(frozen=True, slots=True, eq=False)
class ForwardTimeLine:
    """Results against t_fwd, in one part of the log, with one max_parallel: percent of the best.

    Parameters
    ----------
    part
        ``"tuning"`` or ``"validation"``.
    max_parallel
        Jobs at once.
    t_fwd_s, share : (T,) float64
        Fixed values, ascending, and their results.
    auto
        Result of ``auto``; ``None`` if not tried.
    """

    part: str
    max_parallel: int
    t_fwd_s: NDArray[np.float64]
    share: NDArray[np.float64]
    auto: float | None

    @property
    def every(self) -> list[float]:
        """Shares, including ``auto``."""
        return [*self.share.tolist(), *([] if self.auto is None else [self.auto])]


@dataclass(frozen=True, slots=True, eq=False)
class NumberLine:
    """Results against max_parallel, at the recommended t_fwd, in one part of the log: percent of the best of the grid.

    ``max_parallel`` and ``share`` are (M,).
    """

    part: str
    max_parallel: NDArray[np.int64]
    share: NDArray[np.float64]


def forward_time_lines(record: TuningRecord) -> list[ForwardTimeLine]:
    """One entry a part and max_parallel."""
    grid = record.grid
    fixed_t_fwd_s = np.array([t_fwd for t_fwd in grid.t_fwd if t_fwd != _AUTO], dtype=np.float64)
    lines = []
    for part_name in _PARTS:
        share = 100 * relative_to_best(np.array(record.parts[part_name].share, dtype=np.float64))
        for column, number in enumerate(grid.max_parallel):
            auto = float(share[-1, column]) if _AUTO in grid.t_fwd else None
            lines.append(ForwardTimeLine(part_name, number, fixed_t_fwd_s, share[: fixed_t_fwd_s.size, column], auto))
    return lines


def relative_to_best(share: NDArray[np.float64]) -> NDArray[np.float64]:
    """``share`` (T, M) over the largest of its column, so that the level of a column does not hide its shape."""
    best = share.max(axis=0)
    relative_shares: NDArray[np.float64] = np.divide(share, best, out=np.zeros_like(share), where=best > 0)
    return relative_shares


def number_lines(record: TuningRecord) -> list[NumberLine]:
    """One entry a part."""
    grid = record.grid
    row_number = grid.t_fwd.index(record.recommended.t_fwd)
    numbers = np.array(grid.max_parallel, dtype=np.int64)
    return [NumberLine(part, numbers, 100 * np.array(record.parts[part].share[row_number])) for part in _PARTS]


def flat_range(record: TuningRecord) -> tuple[float, float] | None:
    """Fixed times that are nearly as good as the best one, for the recommended max_parallel."""
    column = next(column for column in record.columns if column.max_parallel == record.recommended.max_parallel)
    flat_bounds = column.flat[0]
    return None if flat_bounds is None else (float(flat_bounds[0]), float(flat_bounds[1]))


def tuning_figure(record: TuningRecord) -> Drawing:
    """Draw the record of a tuning.

    At left against t_fwd, a line for each max_parallel, as share of its best; solid where it was tuned and dashed where
    it was validated. Then against max_parallel, at the recommended t_fwd, as share of the best of all. At right, if it
    was weighed, training against delay to batch jobs, as shares of those with no idle node left alone.
    """
    trade_off = record.trade_off
    figure = new_figure(11.0 if trade_off is None else 15.5, 5.0)
    widths = [1.55, 1.0] if trade_off is None else [1.55, 1.0, 1.3]
    left_axes, right_axes, *other_axes = figure.subplots(1, len(widths), width_ratios=widths)
    if trade_off is not None:
        _draw_trade_off(other_axes[0], trade_off)
    _draw_forward_times(left_axes, record)
    _draw_numbers(right_axes, record)
    measures = {record.parts[part_name].measure for part_name in _PARTS}
    measure_words = " or ".join(_MEASURES[measure] for measure in sorted(measures, reverse=True))
    style_axes(left_axes, "T_fwd, s", f"{measure_words}, % of the best T_fwd for as many jobs")
    t_fwd = record.recommended.t_fwd
    parallel_title = f"most jobs at once, at T_fwd {t_fwd if t_fwd == _AUTO else f'{t_fwd:g} s'}"
    style_axes(right_axes, parallel_title, f"{measure_words}, % of the best of the grid")
    _stretch(left_axes, min(share for time_line in forward_time_lines(record) for share in time_line.every))
    handles, labels = left_axes.get_legend_handles_labels()
    figure.legend(handles, labels, fontsize=8.5, frameon=False, loc="outside lower center", ncols=5)
    return figure


def _draw_forward_times(axes: Axes, record: TuningRecord) -> None:
    recommendation = record.recommended
    lines = forward_time_lines(record)
    fixed_t_fwd_s = lines[0].t_fwd_s
    auto_at = _FAR * float(fixed_t_fwd_s[-1]) if fixed_t_fwd_s.size else 1.0
    flat_bounds = flat_range(record)
    if flat_bounds is not None:
        bottom, top = flat_bounds if flat_bounds[0] < flat_bounds[1] else (flat_bounds[0] / 1.08, flat_bounds[1] * 1.08)
        within = 100 * record.config.flat[0]
        axes.axvspan(
            bottom, top, color=FAINT_BLUE, linewidth=0.0, zorder=0, label=f"within {within:g} % of the best fixed"
        )
    numbers = record.grid.max_parallel
    for line in lines:
        index = numbers.index(line.max_parallel)
        fill = {} if line.part == "tuning" else {"markerfacecolor": "white"}
        line_look: Trace = {"color": OKABE_ITO[index % len(OKABE_ITO)], "marker": MARKERS[index % len(MARKERS)], **fill}
        line_look |= {"markersize": 4.5, "clip_on": False}
        is_best = line.max_parallel == recommendation.max_parallel
        label = f"{count(line.max_parallel, 'job')} at once" if line.part == "tuning" else None
        width, order = (2.0, 4) if is_best else (1.2, 3)
        dashes = _PARTS[line.part][1]
        axes.plot(line.t_fwd_s, line.share, linestyle=dashes, linewidth=width, label=label, zorder=order, **line_look)
        if line.auto is not None:
            label_of_auto = None if fixed_t_fwd_s.size else label
            axes.plot([auto_at], [line.auto], linestyle="none", zorder=3, label=label_of_auto, **line_look)
    column = numbers.index(recommendation.max_parallel)
    row_number = record.grid.t_fwd.index(recommendation.t_fwd)
    place_s = auto_at if isinstance(recommendation.t_fwd, str) else recommendation.t_fwd
    best_share = 100 * float(relative_to_best(np.array(record.parts["tuning"].share))[row_number, column])
    axes.plot([place_s], [best_share], label="recommended", **_STAR)
    for part_words, dashes in _PARTS.values():  # what solid and dashed mean, once for all colours
        axes.plot([], [], color=GREY, linestyle=dashes, linewidth=1.2, label=f"part {part_words}")
    axes.set_xscale("log")
    ticks = {float(t_fwd_s): f"{t_fwd_s:g}" for t_fwd_s in fixed_t_fwd_s}
    if lines[0].auto is not None:
        ticks[auto_at] = _AUTO
        if fixed_t_fwd_s.size:
            axes.axvline(auto_at / _FAR**0.5, color=GREY, linewidth=0.8, linestyle=":")
    axes.set_xticks(list(ticks), labels=list(ticks.values()))
    axes.minorticks_off()


def _draw_numbers(axes: Axes, record: TuningRecord) -> None:
    recommendation, lines = record.recommended, number_lines(record)
    for number_line in lines:
        line_look = point_look(GREY, size=4.5) | {"linestyle": _PARTS[number_line.part][1], "linewidth": 1.6}
        line_look["markerfacecolor"] = GREY if number_line.part == "tuning" else "white"
        axes.plot(number_line.max_parallel, number_line.share, **line_look)
    column_number = record.grid.max_parallel.index(recommendation.max_parallel)
    axes.plot([recommendation.max_parallel], lines[0].share[[column_number]], label="recommended", **_STAR)
    axes.set_xscale("log")
    numbers = record.grid.max_parallel
    axes.set_xticks(numbers, labels=[f"{number:,}" for number in numbers])
    axes.minorticks_off()


def trade_off_points(trade_off: TradeOff, part: str) -> list[tuple[TradeOffPoint, float, float]]:
    """Each point with its delay to batch jobs and its training, in percent of those with no idle node left alone."""
    nothing_left_alone = trade_off.points[0]
    whole_delay, whole_share = nothing_left_alone.delay_node_hours[part] or 1.0, nothing_left_alone.share[part] or 1.0
    return [
        (point, 100 * point.delay_node_hours[part] / whole_delay, 100 * point.share[part] / whole_share)
        for point in trade_off.points
    ]


def _draw_trade_off(axes: Axes, trade_off: TradeOff) -> None:
    ages_s = sorted({point.min_age_s for point in trade_off.points})
    for part_name, (_, dashes) in _PARTS.items():
        points = trade_off_points(trade_off, part_name)
        for age_index, age_s in enumerate(ages_s):
            age_points = [(delay, share, point.reserve) for point, delay, share in points if point.min_age_s == age_s]
            is_of_tuning = part_name == "tuning"
            label = f"idle for {duration(age_s)} at least" if age_s else "of any age"
            colour = OKABE_ITO[age_index % len(OKABE_ITO)]
            look: Trace = {"color": colour, "marker": MARKERS[age_index % len(MARKERS)], "markersize": 4.5}
            look |= {"markerfacecolor": colour if is_of_tuning else "white", "label": label if is_of_tuning else None}
            delays, shares, _ = zip(*age_points, strict=True)
            axes.plot(delays, shares, linestyle=dashes, linewidth=1.2, zorder=3, **look)
            for delay, share, reserve in age_points if is_of_tuning else []:
                axes.annotate(f"{reserve}", (delay, share), (4, -9), textcoords="offset points", fontsize=7.5)
    _, delay, share = trade_off_points(trade_off, "tuning")[trade_off.knee]
    axes.plot([delay], [share], **_STAR)
    axis_bottom = min(axes.get_xlim()[0], axes.get_ylim()[0])
    axes.axline((100, 100), slope=1.0, color=GREY, linewidth=0.8, linestyle=":", zorder=1)
    axes.set_xlim(axis_bottom, 103)
    axes.set_ylim(axis_bottom, 103)
    axes.legend(fontsize=8, frameon=False, loc="upper left", title="numbers: nodes in reserve", title_fontsize=8)
    delay_words = f"delay to batch jobs at {duration(trade_off.clear_s)} a node, %"
    style_axes(axes, delay_words, "training, % of that with none left alone")


def _stretch(axes: Axes, lowest_share: float) -> None:
    """Heights by the root of the distance from 100 %, which enlarges tenths of a percent at the top."""
    functions = (lambda share: -np.sqrt(np.maximum(100.0 - share, 0.0)), lambda root: 100.0 - root**2)
    axes.set_yscale("function", functions=functions)
    tick_percents = [tick_percent for tick_percent in _TICKS if tick_percent >= lowest_share]
    axes.set_yticks(tick_percents or [100.0], labels=[f"{tick_percent:g}" for tick_percent in tick_percents or [100.0]])
    axes.set_ylim(lowest_share - 0.05 * (100.0 - lowest_share) - 0.01, 100.0)


TUNING = Figure("tuning", "Forward-looking times and numbers of jobs", as_they_are, tuning_figure)
