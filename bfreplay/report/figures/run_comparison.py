"""Pictures of a comparison of runs: data functions, and functions that draw what these return."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.report.figures.axes import dress, new_figure, settled
from bfreplay.report.figures.look import LINES, OKABE_ITO
from bfreplay.report.figures.picture_file import save_both
from bfreplay.report.figures.time_part import Part, draw_time_axis
from bfreplay.result_folders.comparison import ComparisonRecord, RunComparison, RunDifference

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PARTS = {
    "node_hours": "used node-hours",
    "samples_per_node_hour": "samples per\nused node-hour",
    "rescaling": "rescaling",
    "preemption": "preemption",
    "trimmed": "made after the\nwork was done",
}
"""Of a difference in samples, in the order of the bars, with their words."""

_BLUE, _RED = OKABE_ITO[:2]
_GREY = "#5F5F5F"
_PANEL = 3.0
_MOST_BARS = 400
NEXT_TO_NOTHING = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Differences:
    """One run against the baseline over time, in percent of the baseline's samples in the whole window.

    Parameters
    ----------
    run
        Its label.
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
    run
        Label of the run.
    words
        Of N parts, those that are something.
    sizes
        Of the parts; they add up to ``total``.
    total
        The whole difference.
    """

    run: str
    words: tuple[str, ...]
    sizes: tuple[float, ...]
    total: float

    @property
    def starts(self) -> tuple[float, ...]:
        """Where each bar begins: at the sum of those before it."""
        return tuple(float(sum(self.sizes[:k])) for k in range(len(self.sizes)))


def differences_over_time(comparison: RunComparison) -> list[Differences]:
    """One entry a run but the baseline. Neighbouring bins share a bar where there are more than 400."""
    hours = comparison.table("hours")
    cumulative = comparison.table("cumulative")
    base = _of_run(hours, comparison.record.runs[0].run)
    edges = np.append(_times(base["begin"]), _times(base["end"])[-1:])
    first = np.arange(0, edges.size - 1, -(-(edges.size - 1) // _MOST_BARS))
    found = []
    for pair in comparison.pairs:
        mine, line = _of_run(hours, pair.run), _of_run(cumulative, pair.run)
        share = _percent_of(pair)
        change = np.asarray(mine["samples"]) - np.asarray(base["samples"])
        found.append(
            Differences(
                pair.run,
                np.append(edges[first], edges[-1]),
                np.add.reduceat(change, first) * share,
                _times(line["time"]),
                *(_floats(line[name]) * share for name in ("difference", "low", "high")),
            )
        )
    return found


def waterfalls(comparison: RunComparison) -> list[Steps]:
    """One entry a run but the baseline; parts that are next to nothing in all of them are left out."""
    pairs = comparison.pairs
    kept = [
        name for name in PARTS if any(abs(pair.causes[name]) * _percent_of(pair) > NEXT_TO_NOTHING for pair in pairs)
    ]
    return [
        Steps(
            pair.run,
            tuple(PARTS[name] for name in kept),
            tuple(pair.causes[name] * _percent_of(pair) for name in kept),
            pair.samples.difference * _percent_of(pair),
        )
        for pair in pairs
    ]


def draw_over_time(found: list[Differences], record: ComparisonRecord) -> Figure:
    """Draw ``differences_over_time``: two panels a run, the bars of the bins and below them the cumulative difference.

    ``record`` says whether times are those of a calendar, and what the runs are called.
    """
    figure = new_figure(9.0, 0.9 + 1.5 * _PANEL * len(found))
    grid = figure.subplots(2 * len(found), 1, sharex=True, height_ratios=[1.0, 1.4] * len(found))
    panels = np.atleast_1d(grid).tolist()
    window = Part(record.config.window_start_us, record.config.window_end_us, record.is_relative)
    for k, mine in enumerate(found):
        above, below = panels[2 * k], panels[2 * k + 1]
        above.stairs(mine.difference, window.days(mine.edge_us), fill=True, color=_BLUE, linewidth=0.0)
        above.set_title(f"{_names(record, mine.run)}: difference of samples, % of A's in the window", fontsize=10.5,
                        loc="left", parse_math=False)  # fmt: skip
        _draw_cumulative(below, mine, window)
        for axes, title in ((above, "each bar"), (below, "summed up")):
            axes.axhline(0.0, color="black", linewidth=0.8, zorder=1)
            dress(axes, y=title, y_ticks=_signed_tick)
    draw_time_axis(panels[-1], window)
    return settled(figure)


def draw_causes(found: list[Steps], record: ComparisonRecord) -> Figure:
    """Draw ``waterfalls``: a panel a run, from 0 to the whole difference."""
    figure = new_figure(9.0, 0.6 + _PANEL * len(found))
    for axes, steps in zip(np.atleast_1d(figure.subplots(len(found), 1, sharex=True)).tolist(), found, strict=True):
        places = np.arange(len(steps.sizes) + 1)
        ends = [start + size for start, size in zip(steps.starts, steps.sizes, strict=True)]
        for place, (start, size, end) in enumerate(zip(steps.starts, steps.sizes, ends, strict=True)):
            axes.bar(place, size, bottom=start, width=0.62, color=_BLUE if size >= 0 else _RED,
                     hatch="" if size >= 0 else "///", edgecolor="white", linewidth=0.0)  # fmt: skip
            axes.plot([place + 0.31, place + 0.69], [end, end], color=_GREY, linewidth=0.9)
            _say(axes, place, start, end, size)
        axes.bar(places[-1], steps.total, width=0.62, color=_GREY)
        _say(axes, int(places[-1]), 0.0, steps.total, steps.total)
        axes.axhline(0.0, color="black", linewidth=0.8)
        axes.set_xticks(places, labels=[*steps.words, "all"])
        axes.tick_params(labelbottom=True)
        heights = (0.0, steps.total, *ends)
        room = 0.16 * (max(heights) - min(heights)) or 1.0  # for the numbers
        axes.set_ylim(min(heights) - room, max(heights) + room)
        axes.set_title(f"{_names(record, steps.run)}: what made the difference", fontsize=10.5, loc="left",
                       parse_math=False)  # fmt: skip
        dress(axes, y="% of A's samples", y_ticks=_signed_tick)
        axes.grid(visible=False, axis="x")
    return settled(figure)


def draw_comparison(folder: Path) -> list[Path]:
    """Draw ``differences-over-time`` and ``causes`` into a comparison folder, as PNG and SVG each.

    Raises
    ------
    InputError
        It is no comparison folder, or lacks a table.
    """
    comparison = RunComparison.load(folder)
    return save_both(folder, {
        "differences-over-time": draw_over_time(differences_over_time(comparison), comparison.record),
        "causes": draw_causes(waterfalls(comparison), comparison.record),
    })  # fmt: skip


def _draw_cumulative(axes: Axes, mine: Differences, window: Part) -> None:
    days = window.days(np.append(mine.edge_us[:1], mine.time_us))
    line, low, high = (np.append(0.0, values) for values in (mine.cumulative, mine.low, mine.high))
    if np.isfinite(mine.low).all():
        axes.fill_between(days, low, high, color="#9CC9E8", linewidth=0.0, label="95 % interval of the sum up to then")
    axes.plot(days, line, color=_BLUE, linewidth=1.8, linestyle=LINES[0], label="sum up to then")
    axes.legend(fontsize=9, frameon=False, loc="best")


def _say(axes: Axes, place: int, start: float, end: float, size: float) -> None:
    """The size, above a bar that goes up and below one that goes down."""
    up = size >= 0
    place_of_text = (place, max(start, end) if up else min(start, end))
    axes.annotate(f"{signed_number(size)} %", place_of_text, xytext=(0, 3 if up else -3), textcoords="offset points",
                  ha="center", va="bottom" if up else "top", fontsize=9)  # fmt: skip


def signed_number(value: float) -> str:
    """``+12.34``, ``-0.012``; ``0`` for what is next to nothing."""
    return "0" if abs(value) < NEXT_TO_NOTHING else f"{value:+.2f}" if abs(value) >= 0.1 else f"{value:+.2g}"


def _signed_tick(value: float, _position: float) -> str:
    return "0" if abs(value) < 1e-12 else f"{value:+g}"


def _names(record: ComparisonRecord, run: str) -> str:
    """``B (run-600) against A (run-120)``."""
    name = {each.run: each.name for each in record.runs}
    first = record.runs[0].run
    return " against ".join(label if name[label] is None else f"{label} ({name[label]})" for label in (run, first))


def _percent_of(pair: RunDifference) -> float:
    """What makes samples percent of the baseline's, or of the other run's where the baseline has none."""
    below = pair.samples.baseline or pair.samples.other
    return 100.0 / below if below else 0.0


def _of_run(table: Any, run: str) -> Any:
    import pyarrow.compute as pc

    return table.filter(pc.equal(table["run"], run))


def _times(column: Any) -> NDArray[np.int64]:
    return np.asarray(column.cast("int64"), dtype=np.int64)


def _floats(column: Any) -> NDArray[np.float64]:
    return np.asarray(column.fill_null(float("nan")), dtype=np.float64)
