"""Figures of a comparison of runs: differences over time, and their causes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.report.figures.axes import fix_layout, new_figure, panels_below, style_axes
from bfreplay.report.figures.figure import Figure, PageFigure
from bfreplay.report.figures.marks import BLUE, PALE_BLUE, ROWS, Mark, Trace, axis, in_lines, layout_axis, run_number
from bfreplay.report.figures.time_axis import TimeSpan, draw_time_axis
from bfreplay.result_folders.comparison import ComparisonRecord, RunComparison, RunDifference
from bfreplay.runs.comparison_tables import CAUSE_WORDS, bin_words
from bfreplay.runs.step_functions import StepSeries
from bfreplay.wording import count, value_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

_GREY = "#5F5F5F"
_PANEL = 3.0
_MOST_BARS = 400
_NEXT_TO_NOTHING = 1e-6
_SUM_HEIGHT, _BARS_HEIGHT, _GAP = 250, 120, 24
_ROW_HEIGHT, _PANEL_FOOT = 40, 70
_BANDS = ("/", "\\", "|", "-", "x", ".")
"""Patterns of the bands, which lie upon each other."""
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
        marks = [Mark("useful") if size >= 0 else Mark("lost", 1) for size in self.parts.values()]
        parts = zip(self.parts, starts, self.parts.values(), marks, strict=False)
        return [*parts, ("all", 0.0, self.total, Mark("idle"))]

    @property
    def ends(self) -> tuple[float, float]:
        """Lowest and highest value of the bars."""
        bar_ends = [0.0, *(start + size for _, start, size, _ in self.bars)]
        return min(bar_ends), max(bar_ends)


def differences_over_time(comparison: RunComparison) -> list[Differences]:
    """One entry a run but the baseline. Neighbouring bins share a bar where there are more than 400."""
    record = comparison.record
    window = TimeSpan(record.config.window_start_us, record.config.window_end_us, record.is_relative)
    hours, cumulative = comparison.table("hours"), comparison.table("cumulative")
    base = _of_run(hours, record.runs[0].run)
    edges = np.append(_times(base["begin"]), _times(base["end"])[-1:])
    first = np.arange(0, edges.size - 1, -(-(edges.size - 1) // _MOST_BARS))
    found = []
    for pair in comparison.pairs:
        data, line = _of_run(hours, pair.run), _of_run(cumulative, pair.run)
        share = _percent_of(pair)
        change = np.asarray(data["samples"]) - np.asarray(base["samples"])
        found.append(
            Differences(
                pair.run,
                _names(record, pair.run),
                window,
                record.config.bin_s,
                np.append(edges[first], edges[-1]),
                np.add.reduceat(change, first) * share,
                _times(line["time"]),
                *(_floats(line[name]) * share for name in ("difference", "low", "high")),
            )
        )
    return found


def draw_over_time(all_runs: list[Differences]) -> Drawing:
    """Two panels a run: the bars of the bins, and below them the cumulative difference."""
    figure = new_figure(9.0, 0.9 + 1.5 * _PANEL * len(all_runs))
    panels = panels_below(figure, [1.0, 1.4] * len(all_runs))
    for run_index, data in enumerate(all_runs):
        above, below = panels[2 * run_index], panels[2 * run_index + 1]
        above.stairs(data.difference, data.window.days(data.edge_us), fill=True, color=BLUE, linewidth=0.0)
        above.set_title(
            f"{data.names}: difference of samples, % of A's in the window", fontsize=10.5, loc="left", parse_math=False
        )
        _draw_cumulative(below, data)
        for axes, title in ((above, "each bar"), (below, "summed up")):
            axes.axhline(0.0, color="black", linewidth=0.8, zorder=1)
            style_axes(axes, y=title, y_ticks=_signed_tick)
    draw_time_axis(panels[-1], all_runs[0].window)
    return fix_layout(figure)


def over_time_page(all_runs: list[Differences]) -> PageFigure:
    """The same for the page.

    Above is a line a run with its 95 % band: at any time the sum of all bins up to and with that one. Below is a panel
    a run with the difference of each bin.
    """
    room = _SUM_HEIGHT + len(all_runs) * (_BARS_HEIGHT + _GAP)
    layout: Trace = {
        "xaxis": {"time": True, "anchor": axis(len(all_runs))},
        "yaxis": {"title": {"text": "summed up, %"}, "domain": [1 - _SUM_HEIGHT / room, 1.0], **_OF_TIME},
        "hovermode": "closest",
        "legend": {"traceorder": "normal"},
    }
    traces: list[Trace] = []
    series: dict[str, StepSeries] = {}
    for run_index, data in enumerate(all_runs):
        mark = Mark.of_run(run_number(data.run))
        edge_us = np.append(data.edge_us[:1], data.time_us)
        names = {name: f"{name}-{data.run}" for name in ("sum", "low", "high", "bin")}
        if np.isfinite(data.low).all():
            series |= {
                names["low"]: StepSeries.exact(edge_us, data.low),
                names["high"]: StepSeries.exact(edge_us, data.high),
            }
            shape = _BANDS[mark.k % len(_BANDS)]
            pattern = {
                "shape": shape,
                "fgcolor": f"@{mark.role}",
                "bgcolor": "rgba(0,0,0,0)",
                "size": 6,
                "solidity": 0.2,
            }
            line_look: Trace = {"line": {"width": 0.5, "dash": "solid"}, "hoverinfo": "skip"}
            words = f"{data.run}: 95 % interval of the sum"
            traces += [
                mark.steps(f"{data.run}: lower end", "", names["low"], "least", showlegend=False, **line_look),
                mark.steps(words, "", names["high"], "most", fill="tonexty", fillpattern=pattern, **line_look),
            ]
        series[names["sum"]] = StepSeries.exact(edge_us, data.cumulative)
        series[names["bin"]] = StepSeries.exact(data.edge_us, data.difference)
        value = "%{y:+.3~r} % of A's samples"
        traces += [
            mark.steps(f"{data.run}: sum up to then", f"{data.run}, up to then: {value}", names["sum"]),
            mark.steps(
                f"{data.run}: each bin",
                f"{data.run}, this bin: {value}",
                names["bin"],
                showlegend=False,
                line={"width": 1, "dash": "solid"},
                fill="tozeroy",
                yaxis=axis(run_index + 1),
            ),
        ]
        upper = 1 - (_SUM_HEIGHT + _GAP + run_index * (_BARS_HEIGHT + _GAP)) / room
        title, domain = {"text": f"{data.run}: each bin, %"}, [max(0.0, upper - _BARS_HEIGHT / room), upper]
        layout[layout_axis(run_index + 1)] = {"title": title, "domain": domain, **_OF_TIME}
    return PageFigure(traces, layout, series, height=room + 110)


def over_time_words(all_runs: list[Differences]) -> str:
    """Run by run the difference at the end, and in how many bins the run was ahead."""
    sentences = []
    for data in all_runs:
        ahead, behind = (int((sign * data.difference > _NEXT_TO_NOTHING).sum()) for sign in (1, -1))
        text = f"Over the window {data.run} - A is {_signed_text(float(data.cumulative[-1]))} % of A's samples"
        if np.isfinite(data.low[-1]):
            low_text, high_text = (_signed_text(float(band_end[-1])) for band_end in (data.low, data.high))
            text += f" (95 % interval of the sum {low_text} to {high_text} %)"
        bins = f"{count(data.difference.size, 'bin')} of {bin_words((data.edge_us[1] - data.edge_us[0]) / 1e6)}"
        sentences.append(f"{text}; of {bins} {data.run} was ahead in {ahead:,} and behind in {behind:,}.")
    return f"{' '.join(sentences)} Intervals are by blocks of neighbouring bins of {bin_words(all_runs[0].bin_s)}."


def waterfalls(comparison: RunComparison) -> list[Steps]:
    """One entry a run but the baseline, without parts that are negligible in all."""
    pairs = comparison.pairs
    sizes = [{name: pair.causes[name] * _percent_of(pair) for name in CAUSE_WORDS} for pair in pairs]
    shown_causes = [name for name in CAUSE_WORDS if any(abs(of_pair[name]) > _NEXT_TO_NOTHING for of_pair in sizes)]
    return [
        Steps(
            pair.run,
            _names(comparison.record, pair.run),
            {CAUSE_WORDS[name]: of_pair[name] for name in shown_causes},
            pair.samples.difference * _percent_of(pair),
        )
        for pair, of_pair in zip(pairs, sizes, strict=True)
    ]


def draw_causes(all_steps: list[Steps]) -> Drawing:
    """Draw ``waterfalls``: a panel a run, from 0 to the whole difference."""
    figure = new_figure(9.0, 0.6 + _PANEL * len(all_steps))
    for axes, steps in zip(panels_below(figure, [1.0] * len(all_steps)), all_steps, strict=True):
        for place, (words, start, size, mark) in enumerate(steps.bars):
            axes.bar(place, size, bottom=start, width=0.62, **mark.paper_fill)
            if words != "all":
                axes.plot([place + 0.31, place + 0.69], [start + size] * 2, color=_GREY, linewidth=0.9)
            _say(axes, place, start, size)
        axes.axhline(0.0, color="black", linewidth=0.8)
        axes.set_xticks(range(len(steps.bars)), labels=[in_lines(words, 15, "\n") for words, *_ in steps.bars])
        axes.tick_params(labelbottom=True)
        lowest, highest = steps.ends
        room = 0.16 * (highest - lowest) or 1.0  # for the numbers
        axes.set_ylim(lowest - room, highest + room)
        axes.set_title(f"{steps.names}: what made the difference", fontsize=10.5, loc="left", parse_math=False)
        style_axes(axes, y="% of A's samples", y_ticks=_signed_tick)
        axes.grid(visible=False, axis="x")
    return fix_layout(figure)


def causes_page(all_steps: list[Steps]) -> PageFigure:
    """A panel a run: from 0 by one bar a part to the whole difference, in percent of the baseline's samples."""
    layout: Trace = {"showlegend": False, "hovermode": "closest", "barmode": "overlay"}
    traces: list[Trace] = []
    room = sum(len(steps.bars) * _ROW_HEIGHT + _PANEL_FOOT for steps in all_steps)
    above = 0
    for run_index, steps in enumerate(all_steps):
        for part, base, size, mark in steps.bars:
            text = f"{_signed_text(size)} %"
            traces.append(
                mark.bars(
                    "",
                    [size],
                    [in_lines(part, 16)],
                    f"{steps.run}: {part}<br>{text} of A's samples",
                    base=[base],
                    orientation="h",
                    width=0.6,
                    xaxis=axis(run_index, "x"),
                    yaxis=axis(run_index),
                    text=[text],
                    textposition="outside",
                    textangle=0,
                    cliponaxis=False,
                    constraintext="none",
                )
            )
        upper = 1 - above / room
        above += len(steps.bars) * _ROW_HEIGHT
        lowest, highest = steps.ends
        beside = 0.8 * (highest - lowest) or 1.0  # for the numbers
        layout[layout_axis(run_index)] = {**ROWS, "domain": [1 - above / room, upper]}
        layout[layout_axis(run_index, "x")] = {
            "title": {"text": f"{steps.run} - A, % of A's samples"},
            "anchor": axis(run_index),
            "range": [lowest - beside, highest + beside],
            "zeroline": True,
        }
        above += _PANEL_FOOT
    return PageFigure(traces, layout, height=room + 40)


def causes_words(all_steps: list[Steps]) -> str:
    """The parts of each difference, and the whole."""
    sentences = []
    for steps in all_steps:
        parts = [f"{words} {_signed_text(size)} %" for words, size in steps.parts.items()]
        text = f"{', '.join(parts)}; all {_signed_text(steps.total)} %" if parts else "no difference"
        sentences.append(f"{steps.run} against A, in percent of A's samples: {text}.")
    return "\n".join(sentences)


def _draw_cumulative(axes: Axes, data: Differences) -> None:
    days = data.window.days(np.append(data.edge_us[:1], data.time_us))
    line, lower, upper = (np.append(0.0, values) for values in (data.cumulative, data.low, data.high))
    if np.isfinite(data.low).all():
        axes.fill_between(
            days, lower, upper, color=PALE_BLUE, linewidth=0.0, label="95 % interval of the sum up to then"
        )
    axes.plot(days, line, color=BLUE, linewidth=1.8, label="sum up to then")
    axes.legend(fontsize=9, frameon=False, loc="best")


def _say(axes: Axes, place: int, start: float, size: float) -> None:
    """Write the size above a bar that goes up, and below a bar that goes down."""
    is_positive = size >= 0
    axes.annotate(
        f"{_signed_text(size)} %",
        (place, start + size),
        xytext=(0, 3 if is_positive else -3),
        textcoords="offset points",
        ha="center",
        va="bottom" if is_positive else "top",
        fontsize=9,
    )


def _signed_text(value: float) -> str:
    """``+12.3``, ``-0.0120``; ``0`` for a negligible value."""
    return "0" if abs(value) < _NEXT_TO_NOTHING else value_text(value, "signed")


def _signed_tick(value: float, _position: float) -> str:
    return "0" if abs(value) < 1e-12 else f"{value:+g}"


def _names(record: ComparisonRecord, run_label: str) -> str:
    """``B (run-600) against A (run-120)``."""
    name_of_run = {run_label.run: run_label.name for run_label in record.runs}
    first = record.runs[0].run
    return " against ".join(
        label if name_of_run[label] is None else f"{label} ({name_of_run[label]})" for label in (run_label, first)
    )


def _percent_of(pair: RunDifference) -> float:
    """Factor from samples to percent of the baseline's, or of the other run's if the baseline has none."""
    below = pair.samples.baseline or pair.samples.other
    return 100.0 / below if below else 0.0


def _of_run(table: Any, run_label: str) -> Any:
    import pyarrow.compute as pc

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
