"""Figures of a comparison of runs: differences over time, and their causes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.report.figures.axes import fix_layout, new_figure, panel_title, panels_below, style_axes
from bfreplay.report.figures.figure import Figure, PageFigure
from bfreplay.report.figures.marks import BLUE, GREY, PALE_BLUE, ROWS, Mark, Trace, axis, in_lines, layout_axis
from bfreplay.report.figures.time_axis import TimeSpan, draw_time_axis
from bfreplay.result_folders.comparison import ComparisonRecord, RunComparison, RunDifference
from bfreplay.runs.comparison_tables import CAUSE_WORDS, bin_words
from bfreplay.runs.step_functions import StepSeries
from bfreplay.wording import count, value_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

_PANEL = 3.0
_MOST_BARS = 400
_NEXT_TO_NOTHING = 1e-6
_SUM_HEIGHT, _BARS_HEIGHT, _GAP = 250, 120, 24
_ROW_HEIGHT, _PANEL_FOOT = 40, 70
_BANDS = ("/", "\\", "|", "-", "x", ".")
"""Patterns of the bands, which lie upon each other."""
_BAND_PATTERN = {"bgcolor": "rgba(0,0,0,0)", "size": 6, "solidity": 0.2}
_OF_TIME = {"zeroline": True, "fixedrange": True}
"""Of axes beside one of time, which alone is zoomed."""


@dataclass(frozen=True, slots=True, eq=False)
class Differences:
    """One run against the baseline over time, in percent of the baseline's samples in the whole window.

    Parameters
    ----------
    run, names
        Label; and ``B (run-600) against A (run-120)``.
    window, bin_s
        Of the comparison.
    edge_us : (T + 1,) int64
        Bins of the bars, in microseconds since the epoch.
    difference : (T,) float64
        Of each bin.
    time_us : (P,) int64
        Of the cumulative difference.
    cumulative, low, high : (P,) float64
        It and its band; ``low`` and ``high`` are nan without one.
    """

    run: str
    names: str
    window: TimeSpan
    bin_s: float
    edge_us: NDArray[np.int64]
    difference: NDArray[np.float64]
    time_us: NDArray[np.int64]
    cumulative: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Steps:
    """A waterfall: from 0 by one bar a part to the whole difference, in percent of the baseline's samples.

    Parameters
    ----------
    run, names
        Label of the run; and ``B (run-600) against A (run-120)``.
    parts
        Names and sizes of the parts; sizes add up to ``total``.
    total
        The whole difference.
    """

    run: str
    names: str
    parts: Mapping[str, float]
    total: float

    @property
    def bars(self) -> list[tuple[str, float, float, Mark]]:
        """Words, start (the sum of the bars before it), size and mark of each bar; the last is the whole."""
        starts = accumulate(self.parts.values(), initial=0.0)
        marks = [Mark("useful") if part_size >= 0 else Mark("lost", 1) for part_size in self.parts.values()]
        part_bars = zip(self.parts, starts, self.parts.values(), marks, strict=False)
        return [*part_bars, ("all", 0.0, self.total, Mark("idle"))]

    @property
    def ends(self) -> tuple[float, float]:
        """Lowest and highest value of the bars."""
        bar_ends = [0.0, *(start + bar_size for _, start, bar_size, _ in self.bars)]
        return min(bar_ends), max(bar_ends)


def differences_over_time(comparison: RunComparison) -> list[Differences]:
    """One entry a run but the baseline. Neighbouring bins share a bar where there are more than 400."""
    record = comparison.record
    window = TimeSpan(record.config.window_start_us, record.config.window_end_us, record.is_relative)
    baseline_bins = _of_run(comparison, "hours", record.runs[0].run)
    bin_edges_us = np.append(_times(baseline_bins["begin"]), _times(baseline_bins["end"])[-1:])
    first_bins = np.arange(0, bin_edges_us.size - 1, -(-(bin_edges_us.size - 1) // _MOST_BARS))
    bars = window, record.config.bin_s, np.append(bin_edges_us[first_bins], bin_edges_us[-1])
    differences = []
    for pair in comparison.pairs:
        line, share = _of_run(comparison, "cumulative", pair.run), _percent_of(pair)
        change = np.asarray(_of_run(comparison, "hours", pair.run)["samples"]) - np.asarray(baseline_bins["samples"])
        heights = np.add.reduceat(change, first_bins) * share
        sums = (_floats(line[column_name]) * share for column_name in ("difference", "low", "high"))
        differences.append(Differences(pair.run, _names(record, pair.run), *bars, heights, _times(line["time"]), *sums))
    return differences


def draw_over_time(all_runs: list[Differences]) -> Drawing:
    """Two panels a run: the bars of the bins, and below them the cumulative difference."""
    figure = new_figure(9.0, 0.9 + 1.5 * _PANEL * len(all_runs))
    panels = panels_below(figure, [1.0, 1.4] * len(all_runs))
    for run_index, data in enumerate(all_runs):
        bins_axes, sums_axes = panels[2 * run_index : 2 * run_index + 2]
        bins_axes.stairs(data.difference, data.window.days(data.edge_us), fill=True, color=BLUE, linewidth=0.0)
        panel_title(bins_axes, f"{data.names}: difference of samples, % of A's in the window")
        _draw_cumulative(sums_axes, data)
        for axes, axis_title in ((bins_axes, "each bar"), (sums_axes, "summed up")):
            axes.axhline(0.0, color="black", linewidth=0.8, zorder=1)
            style_axes(axes, y=axis_title, y_ticks=_signed_tick)
    draw_time_axis(panels[-1], all_runs[0].window)
    return fix_layout(figure)


def over_time_page(all_runs: list[Differences]) -> PageFigure:
    """The same for the page.

    Above is a line a run with its 95 % band: at any time the sum of all bins up to and with that one. Below is a panel
    a run with the difference of each bin.
    """
    all_pixels = _SUM_HEIGHT + len(all_runs) * (_BARS_HEIGHT + _GAP)
    layout: Trace = {
        "xaxis": {"time": True, "anchor": axis(len(all_runs))},
        "yaxis": {"title": {"text": "summed up, %"}, "domain": [1 - _SUM_HEIGHT / all_pixels, 1.0], **_OF_TIME},
        "hovermode": "closest",
        "legend": {"traceorder": "normal"},
    }
    traces: list[Trace] = []
    series: dict[str, StepSeries] = {}
    for run_index, data in enumerate(all_runs):
        run_mark = Mark.of_label(data.run)
        edge_us = np.append(data.edge_us[:1], data.time_us)
        names = {series_name: f"{series_name}-{data.run}" for series_name in ("sum", "low", "high", "bin")}
        if np.isfinite(data.low).all():
            for series_name, band_end in (("low", data.low), ("high", data.high)):
                series[names[series_name]] = StepSeries.exact(edge_us, band_end)
            pattern = {"shape": _BANDS[run_mark.k % len(_BANDS)], "fgcolor": f"@{run_mark.role}", **_BAND_PATTERN}
            line_look: Trace = {"line": {"width": 0.5, "dash": "solid"}, "hoverinfo": "skip"}
            band_words = f"{data.run}: 95 % interval of the sum"
            traces += [
                run_mark.steps(f"{data.run}: lower end", "", names["low"], "least", showlegend=False, **line_look),
                run_mark.steps(band_words, "", names["high"], "most", fill="tonexty", fillpattern=pattern, **line_look),
            ]
        series[names["sum"]] = StepSeries.exact(edge_us, data.cumulative)
        series[names["bin"]] = StepSeries.exact(data.edge_us, data.difference)
        bin_line = {"width": 1, "dash": "solid"}
        bin_look: Trace = {"showlegend": False, "line": bin_line, "fill": "tozeroy", "yaxis": axis(run_index + 1)}
        value_format = "%{y:+.3~r} % of A's samples"
        traces += [
            run_mark.steps(f"{data.run}: sum up to then", f"{data.run}, up to then: {value_format}", names["sum"]),
            run_mark.steps(f"{data.run}: each bin", f"{data.run}, this bin: {value_format}", names["bin"], **bin_look),
        ]
        upper = 1 - (_SUM_HEIGHT + _GAP + run_index * (_BARS_HEIGHT + _GAP)) / all_pixels
        axis_title, domain = {"text": f"{data.run}: each bin, %"}, [max(0.0, upper - _BARS_HEIGHT / all_pixels), upper]
        layout[layout_axis(run_index + 1)] = {"title": axis_title, "domain": domain, **_OF_TIME}
    return PageFigure(traces, layout, series, height=all_pixels + 110)


def over_time_words(all_runs: list[Differences]) -> str:
    """Run by run the difference at the end, and in how many bins the run was ahead."""
    sentences = []
    for data in all_runs:
        ahead, behind = (int((direction * data.difference > _NEXT_TO_NOTHING).sum()) for direction in (1, -1))
        run_words = f"Over the window {data.run} - A is {_signed_text(float(data.cumulative[-1]))} % of A's samples"
        if np.isfinite(data.low[-1]):
            low_text, high_text = (_signed_text(float(band_end[-1])) for band_end in (data.low, data.high))
            run_words += f" (95 % interval of the sum {low_text} to {high_text} %)"
        bin_text = f"{count(data.difference.size, 'bin')} of {bin_words((data.edge_us[1] - data.edge_us[0]) / 1e6)}"
        sentences.append(f"{run_words}; of {bin_text} {data.run} was ahead in {ahead:,} and behind in {behind:,}.")
    return f"{' '.join(sentences)} Intervals are by blocks of neighbouring bins of {bin_words(all_runs[0].bin_s)}."


def waterfalls(comparison: RunComparison) -> list[Steps]:
    """One entry a run but the baseline, without parts that are negligible in all."""
    pairs = comparison.pairs
    sizes = [{cause: pair.causes[cause] * _percent_of(pair) for cause in CAUSE_WORDS} for pair in pairs]
    shown_causes = [cause for cause in CAUSE_WORDS if any(abs(of_pair[cause]) > _NEXT_TO_NOTHING for of_pair in sizes)]
    waterfalls_of_runs = []
    for pair, of_pair in zip(pairs, sizes, strict=True):
        cause_parts = {CAUSE_WORDS[cause]: of_pair[cause] for cause in shown_causes}
        total = pair.samples.difference * _percent_of(pair)
        waterfalls_of_runs.append(Steps(pair.run, _names(comparison.record, pair.run), cause_parts, total))
    return waterfalls_of_runs


def draw_causes(all_steps: list[Steps]) -> Drawing:
    """Draw ``waterfalls``: a panel a run, from 0 to the whole difference."""
    figure = new_figure(9.0, 0.6 + _PANEL * len(all_steps))
    for axes, steps in zip(panels_below(figure, [1.0] * len(all_steps)), all_steps, strict=True):
        for bar_place, (words, bar_start, bar_size, bar_mark) in enumerate(steps.bars):
            axes.bar(bar_place, bar_size, bottom=bar_start, width=0.62, **bar_mark.paper_fill)
            if words != "all":
                axes.plot([bar_place + 0.31, bar_place + 0.69], [bar_start + bar_size] * 2, color=GREY, linewidth=0.9)
            # the size: above a bar that goes up, and below a bar that goes down
            offset, anchor = (3, "bottom") if bar_size >= 0 else (-3, "top")
            text_look: Trace = {"textcoords": "offset points", "ha": "center", "va": anchor, "fontsize": 9}
            axes.annotate(
                f"{_signed_text(bar_size)} %", (bar_place, bar_start + bar_size), xytext=(0, offset), **text_look
            )
        axes.axhline(0.0, color="black", linewidth=0.8)
        axes.set_xticks(range(len(steps.bars)), labels=[in_lines(words, 15, "\n") for words, *_ in steps.bars])
        axes.tick_params(labelbottom=True)
        lowest, highest = steps.ends
        number_room = 0.16 * (highest - lowest) or 1.0  # for the numbers
        axes.set_ylim(lowest - number_room, highest + number_room)
        panel_title(axes, f"{steps.names}: what made the difference")
        style_axes(axes, y="% of A's samples", y_ticks=_signed_tick)
        axes.grid(visible=False, axis="x")
    return fix_layout(figure)


def causes_page(all_steps: list[Steps]) -> PageFigure:
    """A panel a run: from 0 by one bar a part to the whole difference, in percent of the baseline's samples."""
    layout: Trace = {"showlegend": False, "hovermode": "closest", "barmode": "overlay"}
    traces: list[Trace] = []
    text_look: Trace = {"textposition": "outside", "textangle": 0, "cliponaxis": False, "constraintext": "none"}
    all_pixels = sum(len(steps.bars) * _ROW_HEIGHT + _PANEL_FOOT for steps in all_steps)
    pixels_above = 0
    for run_index, steps in enumerate(all_steps):
        for part, bar_start, bar_size, bar_mark in steps.bars:
            percent_text = f"{_signed_text(bar_size)} %"
            hover = f"{steps.run}: {part}<br>{percent_text} of A's samples"
            bar_shape: Trace = {"base": [bar_start], "orientation": "h", "width": 0.6}
            panel_axes = {"xaxis": axis(run_index, "x"), "yaxis": axis(run_index)}
            bar_looks = bar_shape | panel_axes | {"text": [percent_text]} | text_look
            traces.append(bar_mark.bars("", [bar_size], [in_lines(part, 16)], hover, **bar_looks))
        upper_end = 1 - pixels_above / all_pixels
        pixels_above += len(steps.bars) * _ROW_HEIGHT
        lowest, highest = steps.ends
        number_room = 0.8 * (highest - lowest) or 1.0  # for the numbers
        layout[layout_axis(run_index)] = {**ROWS, "domain": [1 - pixels_above / all_pixels, upper_end]}
        layout[layout_axis(run_index, "x")] = {
            "title": {"text": f"{steps.run} - A, % of A's samples"},
            "anchor": axis(run_index),
            "range": [lowest - number_room, highest + number_room],
            "zeroline": True,
        }
        pixels_above += _PANEL_FOOT
    return PageFigure(traces, layout, height=all_pixels + 40)


def causes_words(all_steps: list[Steps]) -> str:
    """The parts of each difference, and the whole."""
    sentences = []
    for steps in all_steps:
        parts = [f"{part_words} {_signed_text(part_size)} %" for part_words, part_size in steps.parts.items()]
        run_words = f"{', '.join(parts)}; all {_signed_text(steps.total)} %" if parts else "no difference"
        sentences.append(f"{steps.run} against A, in percent of A's samples: {run_words}.")
    return "\n".join(sentences)


def _draw_cumulative(axes: Axes, data: Differences) -> None:
    edge_days = data.window.days(np.append(data.edge_us[:1], data.time_us))
    cumulative, lower, upper = (np.append(0.0, values) for values in (data.cumulative, data.low, data.high))
    if np.isfinite(data.low).all():
        band_words = "95 % interval of the sum up to then"
        axes.fill_between(edge_days, lower, upper, color=PALE_BLUE, linewidth=0.0, label=band_words)
    axes.plot(edge_days, cumulative, color=BLUE, linewidth=1.8, label="sum up to then")
    axes.legend(fontsize=9, frameon=False, loc="best")


def _signed_text(value: float) -> str:
    """``+12.3``, ``-0.0120``; ``0`` for a negligible value."""
    return "0" if abs(value) < _NEXT_TO_NOTHING else value_text(value, "signed")


def _signed_tick(value: float, _position: float) -> str:
    return "0" if abs(value) < 1e-12 else f"{value:+g}"


def _names(record: ComparisonRecord, run_label: str) -> str:
    """``B (run-600) against A (run-120)``."""
    name_of_run = {run.run: run.run if run.name is None else f"{run.run} ({run.name})" for run in record.runs}
    return f"{name_of_run[run_label]} against {name_of_run[record.runs[0].run]}"


def _percent_of(pair: RunDifference) -> float:
    """Factor from samples to percent of the baseline's, or of the other run's if the baseline has none."""
    whole_samples = pair.samples.baseline or pair.samples.other
    return 100.0 / whole_samples if whole_samples else 0.0


def _of_run(comparison: RunComparison, table_name: str, run_label: str) -> Any:
    import pyarrow.compute as pc

    table = comparison.table(table_name)
    return table.filter(pc.equal(table["run"], run_label))


def _times(column: Any) -> NDArray[np.int64]:
    return np.asarray(column.cast("int64"), dtype=np.int64)


def _floats(column: Any) -> NDArray[np.float64]:
    return np.asarray(column.fill_null(float("nan")), dtype=np.float64)


DIFFERENCES_OVER_TIME: Figure[list[Differences]] = Figure(
    "differences-over-time",
    "Differences over time",
    differences_over_time,
    draw_over_time,
    over_time_page,
    over_time_words,
)
CAUSES: Figure[list[Steps]] = Figure(
    "causes", "What made the differences", waterfalls, draw_causes, causes_page, causes_words
)
