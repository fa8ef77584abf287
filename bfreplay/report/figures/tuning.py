"""The picture of a tuning: data functions, and a drawing function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bfreplay.report.figures.axes import dress, new_figure
from bfreplay.report.figures.figure import Figure, as_they_are
from bfreplay.report.figures.marks import MARKERS, OKABE_ITO, Trace
from bfreplay.result_folders.tuning import TradeOff, TradeOffPoint, TuningRecord
from bfreplay.wording import count, duration

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

_GREY = "#5F5F5F"
_SHADE = "#DCE9F2"
_AUTO = "auto"
_TICKS = (100.0, 99.9, 99.5, 99.0, 98.0, 96.0, 94.0, 90.0, 85.0, 80.0, 70.0, 60.0, 50.0, 40.0, 20.0, 0.0)
_FAR = 2.0
"""``auto`` stands at the right of the longest fixed time, by this factor."""
_MEASURES = {"samples": "samples", "finish": "speed of doing all work"}
_PARTS = {"tuning": ("tuned on", "-"), "validation": ("validated on", (0, (4, 2)))}


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
    fixed = np.array([each for each in grid.t_fwd if each != _AUTO], dtype=np.float64)
    found = []
    for part in _PARTS:
        share = 100 * relative_to_best(np.array(record.parts[part].share, dtype=np.float64))
        for m, number in enumerate(grid.max_parallel):
            auto = float(share[-1, m]) if _AUTO in grid.t_fwd else None
            found.append(ForwardTimeLine(part, number, fixed, share[: fixed.size, m], auto))
    return found


def relative_to_best(share: NDArray[np.float64]) -> NDArray[np.float64]:
    """``share`` (T, M) over the largest of its column, so that the level of a column does not hide its shape."""
    best = share.max(axis=0)
    found = np.zeros_like(share)
    np.divide(share, best, out=found, where=best > 0)
    return found


def number_lines(record: TuningRecord) -> list[NumberLine]:
    """One entry a part."""
    grid = record.grid
    row = grid.t_fwd.index(record.recommended.t_fwd)
    numbers = np.array(grid.max_parallel, dtype=np.int64)
    return [NumberLine(part, numbers, 100 * np.array(record.parts[part].share[row])) for part in _PARTS]


def flat_range(record: TuningRecord) -> tuple[float, float] | None:
    """Fixed times that are nearly as good as the best one, for the recommended max_parallel."""
    column = next(column for column in record.columns if column.max_parallel == record.recommended.max_parallel)
    flat = column.flat[0]
    return None if flat is None else (float(flat[0]), float(flat[1]))


def tuning_figure(record: TuningRecord) -> Drawing:
    """Draw the record of a tuning.

    At left against t_fwd, a line for each max_parallel, as share of its best; solid where it was tuned and dashed where
    it was validated. Then against max_parallel, at the recommended t_fwd, as share of the best of all. At right, if it
    was weighed, training against delay to batch jobs, as shares of those with no idle node left alone.
    """
    weighed = record.trade_off
    figure = new_figure(11.0 if weighed is None else 15.5, 5.0)
    widths = [1.55, 1.0] if weighed is None else [1.55, 1.0, 1.3]
    left, right, *last = figure.subplots(1, len(widths), width_ratios=widths)
    if weighed is not None:
        _draw_trade_off(last[0], weighed)
    _draw_forward_times(left, record)
    _draw_numbers(right, record)
    measures = {record.parts[part].measure for part in _PARTS}
    words = " or ".join(_MEASURES[measure] for measure in sorted(measures, reverse=True))
    dress(left, "T_fwd, s", f"{words}, % of the best T_fwd for as many jobs")
    t_fwd = record.recommended.t_fwd
    below = f"most jobs at once, at T_fwd {t_fwd if t_fwd == _AUTO else f'{t_fwd:g} s'}"
    dress(right, below, f"{words}, % of the best of the grid")
    _stretch(left, min(each for line in forward_time_lines(record) for each in line.every))
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, fontsize=8.5, frameon=False, loc="outside lower center", ncols=5)
    return figure


def _draw_forward_times(axes: Axes, record: TuningRecord) -> None:
    recommended = record.recommended
    lines = forward_time_lines(record)
    fixed = lines[0].t_fwd_s
    auto_at = _FAR * float(fixed[-1]) if fixed.size else 1.0
    flat = flat_range(record)
    if flat is not None:
        low, high = flat if flat[0] < flat[1] else (flat[0] / 1.08, flat[1] * 1.08)
        within = 100 * record.config.flat[0]
        axes.axvspan(low, high, color=_SHADE, linewidth=0.0, zorder=0, label=f"within {within:g} % of the best fixed")
    numbers = record.grid.max_parallel
    for line in lines:
        k = numbers.index(line.max_parallel)
        fill = {} if line.part == "tuning" else {"markerfacecolor": "white"}
        look: Trace = {"color": OKABE_ITO[k % len(OKABE_ITO)], "marker": MARKERS[k % len(MARKERS)], **fill}
        look |= {"markersize": 4.5, "clip_on": False}
        is_recommended = line.max_parallel == recommended.max_parallel
        label = f"{count(line.max_parallel, 'job')} at once" if line.part == "tuning" else None
        axes.plot(
            line.t_fwd_s,
            line.share,
            linestyle=_PARTS[line.part][1],
            linewidth=2.0 if is_recommended else 1.2,
            label=label,
            zorder=4 if is_recommended else 3,
            **look,
        )
        if line.auto is not None:
            axes.plot([auto_at], [line.auto], linestyle="none", zorder=3, label=None if fixed.size else label, **look)
    column = numbers.index(recommended.max_parallel)
    row = record.grid.t_fwd.index(recommended.t_fwd)
    at = auto_at if isinstance(recommended.t_fwd, str) else recommended.t_fwd
    _mark(axes, at, 100 * float(relative_to_best(np.array(record.parts["tuning"].share))[row, column]))
    for words, dashes in _PARTS.values():  # what solid and dashed mean, once for all colours
        axes.plot([], [], color=_GREY, linestyle=dashes, linewidth=1.2, label=f"part {words}")
    axes.set_xscale("log")
    ticks = {float(each): f"{each:g}" for each in fixed}
    if lines[0].auto is not None:
        ticks[auto_at] = _AUTO
        if fixed.size:
            axes.axvline(auto_at / _FAR**0.5, color=_GREY, linewidth=0.8, linestyle=":")
    axes.set_xticks(list(ticks), labels=list(ticks.values()))
    axes.minorticks_off()


def _draw_numbers(axes: Axes, record: TuningRecord) -> None:
    recommended = record.recommended
    for line in number_lines(record):
        dashes = _PARTS[line.part][1]
        axes.plot(
            line.max_parallel,
            line.share,
            color=_GREY,
            linestyle=dashes,
            linewidth=1.6,
            marker="o",
            markersize=4.5,
            markerfacecolor=_GREY if line.part == "tuning" else "white",
        )
    column = record.grid.max_parallel.index(recommended.max_parallel)
    _mark(axes, recommended.max_parallel, float(number_lines(record)[0].share[column]))
    axes.set_xscale("log")
    numbers = record.grid.max_parallel
    axes.set_xticks(numbers, labels=[f"{number:,}" for number in numbers])
    axes.minorticks_off()


def trade_off_points(found: TradeOff, part: str) -> list[tuple[TradeOffPoint, float, float]]:
    """Each point with its delay to batch jobs and its training, in percent of those with no idle node left alone."""
    nothing = found.points[0]
    delay, share = nothing.delay_node_hours[part] or 1.0, nothing.share[part] or 1.0
    return [
        (point, 100 * point.delay_node_hours[part] / delay, 100 * point.share[part] / share) for point in found.points
    ]


def _draw_trade_off(axes: Axes, found: TradeOff) -> None:
    ages = sorted({point.min_age_s for point in found.points})
    for part, (_, dashes) in _PARTS.items():
        points = trade_off_points(found, part)
        for k, age in enumerate(ages):
            line = [(delay, share, point.reserve) for point, delay, share in points if point.min_age_s == age]
            is_tuned = part == "tuning"
            label = f"idle for {duration(age)} at least" if age else "of any age"
            colour = OKABE_ITO[k % len(OKABE_ITO)]
            look: Trace = {"color": colour, "marker": MARKERS[k % len(MARKERS)], "markersize": 4.5}
            look |= {"markerfacecolor": colour if is_tuned else "white", "label": label if is_tuned else None}
            delays, shares = [each[0] for each in line], [each[1] for each in line]
            axes.plot(delays, shares, linestyle=dashes, linewidth=1.2, zorder=3, **look)
            for delay, share, reserve in line if is_tuned else []:
                axes.annotate(f"{reserve}", (delay, share), (4, -9), textcoords="offset points", fontsize=7.5)
    _, delay, share = trade_off_points(found, "tuning")[found.knee]
    axes.plot(
        [delay],
        [share],
        linestyle="none",
        marker="*",
        markersize=17,
        color="black",
        markerfacecolor="#FFD23F",
        zorder=2,
    )
    low = min(axes.get_xlim()[0], axes.get_ylim()[0])
    axes.axline((100, 100), slope=1.0, color=_GREY, linewidth=0.8, linestyle=":", zorder=1)
    axes.set_xlim(low, 103)
    axes.set_ylim(low, 103)
    axes.legend(fontsize=8, frameon=False, loc="upper left", title="numbers: nodes in reserve", title_fontsize=8)
    dress(
        axes, f"delay to batch jobs at {duration(found.clear_s)} a node, %", "training, % of that with none left alone"
    )


def _stretch(axes: Axes, low: float) -> None:
    """Heights by the root of the distance from 100 %, which enlarges tenths of a percent at the top."""
    functions = (lambda y: -np.sqrt(np.maximum(100.0 - y, 0.0)), lambda root: 100.0 - root**2)
    axes.set_yscale("function", functions=functions)
    ticks = [each for each in _TICKS if each >= low]
    axes.set_yticks(ticks or [100.0], labels=[f"{each:g}" for each in ticks or [100.0]])
    axes.set_ylim(low - 0.05 * (100.0 - low) - 0.01, 100.0)


def _mark(axes: Axes, x: float, y: float) -> None:
    axes.plot(
        [x],
        [y],
        linestyle="none",
        marker="*",
        markersize=17,
        color="black",
        markerfacecolor="#FFD23F",
        zorder=2,
        label="recommended",
    )


TUNING = Figure("tuning", "Forward-looking times and numbers of jobs", as_they_are, tuning_figure)
