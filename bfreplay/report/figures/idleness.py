"""Figures of the idle nodes of a log: over time, at once, by length of interval, by size of burst."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.idleness import Idleness
from bfreplay.datasets.idleness.bursts import Bursts
from bfreplay.datasets.idleness.week import WEEKDAYS
from bfreplay.datasets.times import DAY_US
from bfreplay.report.figures.axes import (
    log_tick,
    new_figure,
    no_data,
    plain_tick,
    powers_of_two,
    span_ticks,
    style_axes,
)
from bfreplay.report.figures.figure import Figure, as_they_are
from bfreplay.report.figures.marks import BLUE, PALE_BLUE, PALE_GREY, RED, Trace, fill_look, point_look
from bfreplay.report.figures.time_axis import TimeSpan, draw_time_axis
from bfreplay.runs.step_functions import StepSeries
from bfreplay.wording import amount

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

_US = 1_000_000
_DASHES = (0, (6, 2))


def percent_tick(value: float, _position: float) -> str:
    """``5%``, ``2.5%``."""
    percent_value = value * 100
    return f"{percent_value:.0f}%" if abs(percent_value - round(percent_value)) < 1e-9 else f"{percent_value:.1f}%"


@dataclass(frozen=True, slots=True, eq=False)
class LengthCurves:
    """Idle intervals by length.

    ``edge_s`` (B+1,), and of each bin between two of them ``of_intervals`` and ``of_node_hours`` (B,), shares that sum
    to 1 each; and ``longer`` (L,), the share of idle node-hours in those longer than ``over_s`` (L,), which ascends.
    """

    edge_s: NDArray[np.float64]
    of_intervals: NDArray[np.float64]
    of_node_hours: NDArray[np.float64]
    over_s: NDArray[np.float64]
    longer: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class WidthCurves:
    """Curves by ``nodes`` (W,) idle at once: ``share`` of time, ``mean_s`` and ``median_s`` of a stretch (or NaN)."""

    nodes: NDArray[np.int64]
    share: NDArray[np.float64]
    mean_s: NDArray[np.float64]
    median_s: NDArray[np.float64]


def timeline_band(idleness: Idleness) -> tuple[TimeSpan, StepSeries]:
    """The window, and idle nodes over it."""
    line = idleness.timeline
    window = TimeSpan(idleness.window_start_us, idleness.window_end_us, is_relative=idleness.week is None)
    edges, least_nodes, mean_nodes, most_nodes = map(np.array, (line.edges_us, line.least, line.mean, line.most))
    return window, StepSeries(edges, least_nodes, mean_nodes, most_nodes)


def hour_table(idleness: Idleness) -> NDArray[np.float64] | None:
    """Mean idle nodes by weekday and hour, (7, 24), NaN where nothing is covered; ``None`` without a calendar."""
    return None if idleness.week is None else np.array(idleness.week.mean, dtype=np.float64)


def colour_range(table: NDArray[np.float64]) -> tuple[float, float]:
    """Lowest and highest number of nodes of the colour scale.

    The lowest is 0 where the least cell is near it, at most a quarter of the greatest; else that cell. It stays a tenth
    below the greatest, so that small differences do not look large.
    """
    lowest, highest = float(np.nanmin(table)), max(1e-9, float(np.nanmax(table)))
    return (0.0 if lowest <= highest / 4 else min(lowest, 0.9 * highest)), highest


def length_curves(idleness: Idleness) -> LengthCurves:
    """Fine bins of all lengths, and the share of node-hours in longer intervals at their edges and more."""
    bins = idleness.idle_interval_spectrum
    interval_counts, node_us = np.array(bins.count, dtype=np.float64), np.array(bins.node_us, dtype=np.float64)
    edges = np.array(bins.edges_us, dtype=np.float64) / _US
    if not len(interval_counts):
        return LengthCurves(edges, interval_counts, node_us, edges, edges)
    if edges[0] == 0.0:  # lengths up to the first edge: as wide as the others on a logarithmic axis
        edges[0] = edges[1] / np.sqrt(2)
    node_us_above = np.append(np.cumsum(node_us[::-1])[::-1], 0.0)
    points = dict(zip(edges.tolist(), (node_us_above / node_us_above[0]).tolist(), strict=True))
    points |= {over_s: share for over_s, share in marked_lengths(idleness, edges) if edges[0] < over_s < edges[-1]}
    over_s, longer = np.array(sorted(points.items())).T
    return LengthCurves(edges, interval_counts / interval_counts.sum(), node_us / node_us.sum(), over_s, longer)


def marked_lengths(idleness: Idleness, edge_s: NDArray[np.float64]) -> list[tuple[float, float]]:
    """Lengths with a figure of their own between the first and the last edge, and their shares of the node-hours."""
    lengths = [(float(interval.over_s), interval.share) for interval in idleness.longer_idle_intervals]
    return [(over_s, share) for over_s, share in lengths if edge_s[0] <= over_s <= edge_s[-1]]


def width_curves(idleness: Idleness) -> WidthCurves:
    """Return the curves at each power of two up to the size of the machine."""
    width_rows = [(width.nodes, width.share_of_time, width.mean_s, width.median_s) for width in idleness.widths]
    nodes, *curves = np.array(width_rows, dtype=np.float64).T
    return WidthCurves(nodes.astype(np.int64), *curves)


def bursts_per_day(bursts: Bursts, idleness: Idleness) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Nodes at once (1, 2, 4, ...), and the number of bursts a day of at least that size."""
    per_day = DAY_US / (idleness.window_end_us - idleness.window_start_us)
    sizes_and_counts = np.array(bursts.at_least, dtype=np.int64).reshape(-1, 2)
    return sizes_and_counts[:, 0], np.asarray(sizes_and_counts[:, 1] * per_day, dtype=np.float64)


def draw_idle_over_time(idleness: Idleness) -> Drawing:
    """Fewest, mean and most idle nodes in each column of the picture; the mean of the window as a dashed line."""
    window, idle_band = timeline_band(idleness)
    edge_days = window.days(idle_band.edge_us)
    figure = new_figure(9.0, 3.8)
    axes = figure.add_subplot()
    axes.stairs(idle_band.most, edge_days, baseline=idle_band.least, fill=True, color=PALE_BLUE, label="fewest to most")
    axes.stairs(idle_band.mean, edge_days, baseline=None, color=BLUE, linewidth=1.0, label="mean")
    mean_words = f"mean of the window: {amount(idleness.mean_idle_nodes)} nodes"
    axes.axhline(idleness.mean_idle_nodes, color=RED, linestyle=_DASHES, linewidth=1.4, label=mean_words)
    axes.set_ylim(0.0, max(1.0, float(idle_band.most.max())) * 1.05)
    _right_scale(axes, 1 / idleness.n_nodes, f"share of {idleness.n_nodes:,} nodes", percent_tick)
    draw_time_axis(axes, window, "UTC" if idleness.week is None else idleness.week.time_zone)
    style_axes(axes, y="idle nodes", y_ticks=plain_tick)
    _title(axes, "Idle nodes over time", idleness)
    figure.legend(loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    return figure


def draw_hour_and_weekday(idleness: Idleness) -> Drawing:
    """Heat map of the mean idle nodes by hour and weekday, with the means by hour above and by weekday beside it."""
    from matplotlib import colormaps

    mean_nodes, week = hour_table(idleness), idleness.week
    figure = new_figure(9.0, 4.2)
    if mean_nodes is None or week is None:
        return _only_words(figure, "no hour of the day: the times of the log are relative", idleness)
    panel_grid = figure.add_gridspec(2, 2, width_ratios=(24, 5), height_ratios=(3, 7))
    hour_axes, heat_axes = figure.add_subplot(panel_grid[0, 0]), figure.add_subplot(panel_grid[1, 0])
    day_axes = figure.add_subplot(panel_grid[1, 1], sharey=heat_axes)
    colours = colormaps["cividis"].with_extremes(bad="none")
    heat_axes.set_facecolor("white")
    heat_axes.patch.set(hatch="///", edgecolor=PALE_GREY)  # shows through where the window covers nothing
    lowest, highest = colour_range(mean_nodes)
    mesh_cells = np.arange(25), np.arange(8), np.ma.masked_invalid(mean_nodes)
    mesh = heat_axes.pcolormesh(*mesh_cells, cmap=colours, vmin=lowest, vmax=highest)
    heat_axes.set_yticks(np.arange(7) + 0.5, labels=WEEKDAYS, fontsize=9)
    heat_axes.invert_yaxis()
    heat_axes.set_xticks(np.arange(0, 25, 3), labels=[f"{hour:02}:00" for hour in range(0, 25, 3)], fontsize=9)
    hatch_words = "; hatched: not in the log" if np.isnan(mean_nodes).any() else ""
    heat_axes.set_xlabel(f"hour of the day ({week.time_zone}){hatch_words}", fontsize=10)
    hour_means, day_means = (np.array(means, dtype=np.float64) for means in (week.by_hour, week.by_weekday))
    hour_axes.bar(np.arange(24) + 0.5, hour_means, width=0.84, color=BLUE)
    hour_axes.set_xlim(0, 24)
    hour_axes.set_xticks(np.arange(0, 25, 3), labels=[])
    hour_axes.set_ylabel("all days", fontsize=9)
    hour_axes.yaxis.set_major_formatter(plain_tick)
    day_axes.barh(np.arange(7) + 0.5, day_means, height=0.84, color=BLUE)
    day_axes.tick_params(axis="y", left=False, labelleft=False)
    day_axes.xaxis.set_major_formatter(plain_tick)
    day_axes.locator_params(axis="x", nbins=3)
    day_axes.set_xlabel("all hours", fontsize=9)
    for axes in (hour_axes, day_axes):
        style_axes(axes)
    for spine in heat_axes.spines.values():
        spine.set_visible(False)
    scale_bar = figure.colorbar(mesh, ax=[heat_axes, day_axes], fraction=0.05, pad=0.02, format=plain_tick)
    scale_bar.set_label(f"mean idle nodes (from {amount(lowest)}, not 0)" if lowest else "mean idle nodes", fontsize=10)
    scale_bar.ax.tick_params(labelsize=9)
    _title(hour_axes, "Mean idle nodes by hour and weekday", idleness)
    return figure


def draw_lengths(idleness: Idleness) -> Drawing:
    """Above, idle intervals and their node-hours by length; below, the share in longer intervals."""
    curves = length_curves(idleness)
    figure = new_figure(9.0, 5.4)
    if not len(curves.of_intervals):
        return _only_words(figure, "no idle interval: no node is idle at any time", idleness)
    bins_axes, longer_axes = figure.subplots(2, 1, sharex=True)
    bins_axes.stairs(curves.of_node_hours, curves.edge_s, fill=True, color=PALE_BLUE, label="of the idle node-hours")
    bins_axes.stairs(curves.of_intervals, curves.edge_s, color=RED, linewidth=1.8, label="of the idle intervals")
    bins_axes.set_ylim(bottom=0.0)
    longer_axes.plot(curves.over_s, curves.longer, color=BLUE, linewidth=1.8)
    marked_points = np.array(marked_lengths(idleness, curves.edge_s)).reshape(-1, 2)
    longer_axes.plot(*marked_points.T, **point_look(BLUE))
    longer_axes.set_ylim(0.0, 1.04)
    _right_scale(longer_axes, idleness.mean_idle_nodes, "as so many\ndedicated nodes", plain_tick)
    longer_axes.set_xscale("log")
    longer_axes.set_xlim(curves.edge_s[0] / 1.5, curves.edge_s[-1] * 1.5)
    for axes in (bins_axes, longer_axes):
        span_ticks(axes, "x")
    style_axes(bins_axes, y="share in a bin\n(two bins a doubling)", y_ticks=percent_tick)
    length_title = "length of an idle interval (one node idle without a break)"
    style_axes(longer_axes, length_title, "idle node-hours\nin longer idle intervals", y_ticks=percent_tick)
    remark = "" if idleness.origin.log_warnings.node_assignment is None else ", node assignment simulated"
    _title(bins_axes, f"Idle intervals by length{remark}", idleness)
    figure.legend(loc="outside lower center", ncols=2, fontsize=9, frameon=False)
    return figure


def draw_widths(idleness: Idleness) -> Drawing:
    """Above, the share of time with at least a number of nodes idle; below, the length of such stretches."""
    curves = width_curves(idleness)
    figure = new_figure(9.0, 5.0)
    share_axes, length_axes = figure.subplots(2, 1, sharex=True)
    share_axes.plot(curves.nodes, curves.share, color=BLUE, linewidth=1.8, marker="o", markersize=5)
    share_axes.set_ylim(0.0, 1.04)
    if np.isfinite(curves.mean_s).any():
        style: Trace = {"linewidth": 1.8, "markersize": 5}
        length_axes.plot(curves.nodes, curves.mean_s, color=BLUE, marker="o", label="mean", **style)
        style |= {"color": RED, "marker": "s", "linestyle": _DASHES, "label": "median"}
        length_axes.plot(curves.nodes, curves.median_s, **style)
        length_axes.set_yscale("log")
        lengths_s = [curves.mean_s, curves.median_s]
        length_axes.set_ylim(np.nanmin(lengths_s) / 2, np.nanmax(lengths_s) * 2)
        span_ticks(length_axes, "y")
        length_axes.legend(fontsize=9, frameon=False, loc="best")
    else:
        length_axes.set_yticks([])
        no_data(length_axes, "no node is idle at any time")
    powers_of_two(length_axes, int(curves.nodes[-1]), room_for=13)
    style_axes(share_axes, y="share of time", y_ticks=percent_tick)
    style_axes(length_axes, "at least so many nodes idle at once", "length of a stretch")
    _title(share_axes, "How many nodes are idle at once, and for how long without a break", idleness)
    return figure


def draw_bursts(idleness: Idleness) -> Drawing:
    """At left, bursts a day by the nodes in them; at right, by their share of the idle nodes."""
    figure = new_figure(9.0, 4.0)
    size_axes, share_axes = figure.subplots(1, 2, width_ratios=(3, 2))
    # where both lines are one, the joins show through the gaps and the open markers of the reclaims above them
    open_marker = {"marker": "s", "markersize": 9, "markerfacecolor": "none", "linestyle": (0, (4, 4)), "zorder": 3}
    kinds = (
        ("reclaimed at once", idleness.reclaim_bursts, RED, "//", open_marker),
        ("joining at once", idleness.join_bursts, BLUE, "", {"marker": "o", "markersize": 5, "zorder": 2.5}),
    )
    if not (idleness.reclaim_bursts.count or idleness.join_bursts.count):
        figure.delaxes(size_axes)
        figure.delaxes(share_axes)
        return _only_words(figure, "no burst: no node joins or is reclaimed", idleness)
    largest, highest = 1, 0.0
    for kind_index, (kind_words, bursts, kind_colour, hatch, line_look) in enumerate(kinds):
        burst_sizes, per_day = bursts_per_day(bursts, idleness)
        largest = max(largest, *burst_sizes.tolist(), 1)
        size_axes.plot(burst_sizes, per_day, color=kind_colour, linewidth=1.8, label=kind_words, **line_look)
        places = np.arange(len(bursts.large)) + (kind_index - 0.5) * 0.4
        heights = [large.per_day for large in bursts.large]
        share_bars = share_axes.bar(places, heights, width=0.36, **fill_look(kind_colour, hatch, linewidth=0.5))
        share_axes.bar_label(share_bars, labels=[*map(amount, heights)], fontsize=8, padding=2)
        highest = max([highest, *heights])
    size_axes.set_yscale("log")
    powers_of_two(size_axes, largest, room_for=9)
    labels = [f"at least {large.label}" for large in idleness.join_bursts.large]
    share_axes.set_xticks(np.arange(len(labels)), labels=labels)
    share_axes.set_ylim(0.0, highest * 1.12 or 1.0)
    style_axes(size_axes, "at least so many nodes at once", "bursts a day", y_ticks=log_tick)
    style_axes(share_axes, "share of the idle nodes at once", "bursts a day", y_ticks=plain_tick)
    _title(size_axes, "Bursts", idleness)
    figure.legend(loc="outside lower center", ncols=2, fontsize=9, frameon=False, handlelength=3.6)
    return figure


def _only_words(figure: Drawing, words: str, idleness: Idleness) -> Drawing:
    axes = figure.add_subplot()
    axes.set_axis_off()
    no_data(axes, words, fontsize=11)
    _title(axes, "", idleness)
    return figure


def _right_scale(axes: Axes, factor: float, label: str, formatter: Callable[[float, float], str]) -> None:
    """At right the same heights times ``factor``."""
    functions = lambda height: np.multiply(height, factor), lambda height: np.divide(height, factor)
    right_scale = axes.secondary_yaxis("right", functions=functions)
    right_scale.yaxis.set_major_formatter(formatter)
    right_scale.set_ylabel(label, fontsize=10)
    right_scale.tick_params(labelsize=9)
    right_scale.spines["right"].set_visible(False)


def _title(axes: Axes, title: str, idleness: Idleness) -> None:
    title_words = [title_word for title_word in (title, idleness.origin.cluster) if title_word]
    axes.set_title(", ".join(title_words), fontsize=11, loc="left", parse_math=False)


IDLE_OVER_TIME = Figure("idle-over-time", "Idle nodes over time", as_they_are, draw_idle_over_time)
HOUR_AND_WEEKDAY = Figure("hour-and-weekday", "Mean idle nodes by hour and weekday", as_they_are, draw_hour_and_weekday)
LENGTHS = Figure("interval-lengths", "Idle intervals by length", as_they_are, draw_lengths)
WIDTHS = Figure("widths", "How many nodes are idle at once, and for how long without a break", as_they_are, draw_widths)
BURSTS = Figure("bursts", "Bursts", as_they_are, draw_bursts)
