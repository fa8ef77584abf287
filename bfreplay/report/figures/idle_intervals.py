"""Lengths of idle intervals (a node idle without a break), and the share of them that jobs held."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.report.figures.axes import (
    fix_layout,
    legend_below,
    new_figure,
    page_axis,
    paper_axis,
    plain_tick,
    style_axes,
)
from bfreplay.report.figures.figure import NothingToShowError, PageFigure, RunFigure
from bfreplay.report.figures.marks import Mark, Trace, all_are_alike, by_run, join_text, sentence, tag
from bfreplay.runs.explain.saved_tables import NODE_US_PER_HOUR
from bfreplay.wording import Column, ShownTable, amount, count, duration, percent

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bfreplay.runs.run_result import RunResult

_SHORT_S, _LONG_S = 300.0, 3_600.0
_LENGTH = "length of idle interval"
_HELD, _NOT_HELD = "held by jobs", "not held"
_OF_LOG = (
    Column("n_intervals", "idle_intervals", "count"),
    Column("n_censored", "censored", "count"),
    Column("idle_node_hours", "node-hours", "amount"),
)
_OF_JOBS = (
    Column("n_allocated", "held at some time", "count"),
    Column("held_node_hours", "held, node-hours", "amount"),
    Column("held_share", "held, share", "percent"),
)
_SUMS = ("n_intervals", "n_censored", "n_allocated", "idle_node_us", "allocated_node_us")
"""Columns that are added up."""


@dataclass(frozen=True, slots=True, eq=False)
class IdleIntervals:
    """Idle intervals of one run by length, in B bins, each without its lower edge.

    Parameters
    ----------
    over_s, up_to_s : (B,) float64
        Edges of the bins in seconds; the last ``up_to_s`` may be inf.
    n_intervals, n_censored, n_allocated : (B,) int64
        Intervals; censored intervals; intervals held by a job at some time.
    idle_node_us, allocated_node_us : (B,) float64
        Node time in the intervals, and its part held by jobs.
    """

    over_s: NDArray[np.float64]
    up_to_s: NDArray[np.float64]
    n_intervals: NDArray[np.int64]
    n_censored: NDArray[np.int64]
    n_allocated: NDArray[np.int64]
    idle_node_us: NDArray[np.float64]
    allocated_node_us: NDArray[np.float64]

    @property
    def edge_s(self) -> NDArray[np.float64]:
        """Edges (B + 1,) for drawing: above 0 and finite, by two bins a doubling."""
        edge = np.append(self.over_s, self.up_to_s[-1])
        if not math.isfinite(edge[-1]):
            edge[-1] = edge[-2] * math.sqrt(2)
        if edge[0] <= 0.0:
            edge[0] = edge[1] / math.sqrt(2)
        return edge

    @property
    def held_share(self) -> NDArray[np.float64]:
        """Share of the node time of each bin held by jobs; nan for an empty bin."""
        idle = np.where(self.idle_node_us > 0, self.idle_node_us, 1)
        return np.where(self.idle_node_us > 0, self.allocated_node_us / idle, np.nan)

    def longer(self, values: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.float64]:
        """Share of the sum of ``values (B,)`` in intervals longer than ``over_s``: (B,), the first is 1."""
        total = values.sum()
        above: NDArray[np.float64] = np.cumsum(values[::-1])[::-1] / total
        return above

    def is_of_the_log_of(self, other: IdleIntervals) -> bool:
        """Return whether both seem to be of one log."""
        return all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in ("over_s", "n_intervals", "idle_node_us")
        )


def idle_intervals(run: RunResult) -> IdleIntervals:
    """Return the idle intervals of a run from its table.

    Raises
    ------
    NothingToShowError
        No node was idle at any time.
    """
    table = run.table("idle_intervals")
    if not table.num_rows:
        raise NothingToShowError("no node was idle at any time of the window, so there are no idle intervals")
    # more node time than 64 bits hold is in several rows of one bin
    frame = table.to_pandas().astype({"idle_node_us": np.float64, "allocated_node_us": np.float64})
    by_bin = frame.groupby("over_s")
    sums, up_to_s = by_bin[list(_SUMS)].sum(), by_bin["up_to_s"].first().fillna(math.inf)
    return IdleIntervals(up_to_s.index.to_numpy(), up_to_s.to_numpy(), *(sums[name].to_numpy() for name in _SUMS))


def draw(intervals_by_run: Mapping[str, IdleIntervals]) -> Figure:
    """Above, node-hours by length, or the share held run by run; below, the share in longer intervals."""
    figure = new_figure(9.0, 6.4)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[1.2, 1.0])
    low_s, high_s = _range(intervals_by_run)
    if len(intervals_by_run) == 1:
        _draw_node_hours(above, *intervals_by_run.values())
    else:
        for mark, label, intervals in by_run(intervals_by_run):
            heights = 100 * np.append(intervals.held_share, intervals.held_share[-1])
            above.step(intervals.edge_s, heights, where="post", label=tag(label, _HELD), **mark.paper_line)
        above.set_ylim(-2, 102)
    for words, mark, lengths, longer_percent in _curves(intervals_by_run):
        below.plot(lengths, longer_percent, label=words, **mark.paper_line)
    below.set_ylim(-2, 102)
    paper_axis(below, low_s, high_s)
    style_axes(
        above, y="node-hours" if len(intervals_by_run) == 1 else "held by jobs, % of node-hours", y_ticks=plain_tick
    )
    style_axes(below, _LENGTH, "in longer idle intervals, %", y_ticks=plain_tick)
    if len(intervals_by_run) == 1:
        for axes in (above, below):
            axes.legend(fontsize=9, frameon=False, loc="best")
    else:
        legend_below(figure)
    return fix_layout(figure)


def page(intervals_by_run: Mapping[str, IdleIntervals]) -> PageFigure:
    """The same two panels."""
    low_s, high_s = _range(intervals_by_run)
    traces: list[Trace] = []
    if len(intervals_by_run) == 1:
        traces += _page_node_hours(*intervals_by_run.values())
    else:
        for mark, label, intervals in by_run(intervals_by_run):
            percents = [None if math.isnan(share) else 100 * share for share in intervals.held_share.tolist()]
            places, hover = _bins(intervals), f"{label}: %{{y:.3~r}} % held<br>%{{customdata}}"
            points = {
                "x": intervals.edge_s.tolist(),
                "y": [*percents, percents[-1]],
                "customdata": [*places, places[-1]],
            }
            traces.append(mark.curve(tag(label, _HELD), hover, {"shape": "hv"}, **points))
    for words, mark, lengths, longer in _curves(intervals_by_run):
        hover = f"{words}, longer than %{{customdata}}: %{{y:.3~r}} %"
        traces.append(mark.curve(words, hover, x=lengths, y=longer, yaxis="y2", customdata=[*map(duration, lengths)]))
    above: Trace = {"title": {"text": "node-hours"}, "rangemode": "tozero", "tickformat": ","}
    if len(intervals_by_run) > 1:
        above = {"title": {"text": "held, % of node-hours"}, "range": [-2, 102]}
    layout = {
        "barmode": "stack",
        "bargap": 0,
        "xaxis": {"title": {"text": _LENGTH}, **page_axis(low_s, high_s), "anchor": "y2"},
        "yaxis": {**above, "domain": [0.5, 1.0]},
        "yaxis2": {"title": {"text": "in longer idle intervals, %"}, "domain": [0.0, 0.42], "range": [-2, 102]},
        "hovermode": "closest",
        "legend": {"traceorder": "normal"},
    }
    return PageFigure(traces, layout, height=560)


def words(intervals_by_run: Mapping[str, IdleIntervals]) -> str:
    """Lengths of the intervals with half of the node-hours, and the shares held of short and long intervals."""
    sentences = []
    for run_index, (label, intervals) in enumerate(intervals_by_run.items()):
        if run_index == 0 or not _is_one_log(intervals_by_run):
            sentences.append(_log_sentence("" if _is_one_log(intervals_by_run) else label, intervals))
        sentences.append(_jobs_sentence(label, intervals))
    return join_text(intervals_by_run, sentences)


def table(intervals_by_run: Mapping[str, IdleIntervals]) -> ShownTable:
    """A row a bin; bins of runs on different logs are side by side."""
    import pandas as pd

    is_one_log = _is_one_log(intervals_by_run)
    columns = [Column("over_s", "Longer than", "seconds"), Column("up_to_s", "Up to", "seconds")]
    cells: list[pd.Series[Any]] = []  # of each column after these, by bin
    for run_index, (label, intervals) in enumerate(intervals_by_run.items()):
        columns_of_runs = [(column, label) for column in _OF_JOBS]
        if run_index == 0 or not is_one_log:
            columns_of_runs = [*((column, "" if is_one_log else label) for column in _OF_LOG), *columns_of_runs]
        columns += [column.of_run(name) for column, name in columns_of_runs]
        of_run = _cells(intervals)
        cells += [of_run[column.key] for column, _ in columns_of_runs]
    bins = pd.concat(cells, axis=1).sort_index().reset_index()
    rows = bins.astype(object).where(bins.notna() & (bins != math.inf), None).to_numpy().tolist()
    caption = "Idle intervals by length; of one cut by an edge of the window the length seen, a lower bound"
    return ShownTable(caption, tuple(columns), rows)


def _is_one_log(intervals_by_run: Mapping[str, IdleIntervals]) -> bool:
    return all_are_alike(intervals_by_run.values(), IdleIntervals.is_of_the_log_of)


def _range(intervals_by_run: Mapping[str, IdleIntervals]) -> tuple[float, float]:
    edges = [intervals.edge_s for intervals in intervals_by_run.values()]
    return float(min(edge[0] for edge in edges)) / 1.05, float(max(edge[-1] for edge in edges)) * 1.05


def _curves(intervals_by_run: Mapping[str, IdleIntervals]) -> Iterable[tuple[str, Mark, list[float], list[float]]]:
    """Words, mark and points of the lower curves; curves of the log once if all runs are on one log."""
    first = next(iter(intervals_by_run.values()))
    if _is_one_log(intervals_by_run):
        yield "of the node-hours", Mark("idle"), *_curve(first, first.idle_node_us)
        yield "of the idle intervals", Mark("idle", 1), *_curve(first, first.n_intervals)
    else:
        for mark, label, intervals in by_run(intervals_by_run):
            yield tag(label, "of the node-hours"), mark, *_curve(intervals, intervals.idle_node_us)


def _curve(data: IdleIntervals, values: NDArray[np.int64] | NDArray[np.float64]) -> tuple[list[float], list[float]]:
    """Points at the edges, in percent; nothing is longer than the last edge, if there is one."""
    percent_longer = (100 * data.longer(values)).tolist()
    edge = data.edge_s.tolist()
    return (edge, [*percent_longer, 0.0]) if math.isfinite(data.up_to_s[-1]) else (edge[:-1], percent_longer)


def _draw_node_hours(axes: Axes, data: IdleIntervals) -> None:
    edge = data.edge_s
    job_hours, other_hours = (
        part / NODE_US_PER_HOUR for part in (data.allocated_node_us, data.idle_node_us - data.allocated_node_us)
    )
    of_bars: Trace = {"align": "edge", "width": np.diff(edge)}
    axes.bar(edge[:-1], job_hours, label=_HELD, **of_bars, **Mark("useful").paper_fill)
    axes.bar(edge[:-1], other_hours, bottom=job_hours, label=_NOT_HELD, **of_bars, **Mark("unallocated", 1).paper_fill)


def _page_node_hours(data: IdleIntervals) -> Iterable[Trace]:
    edge, bins, numbers = (
        data.edge_s,
        _bins(data),
        zip(data.n_intervals.tolist(), data.n_allocated.tolist(), strict=True),
    )
    counts = [f"{count(n_intervals, 'idle interval')}, {n_in_use:,} held" for n_intervals, n_in_use in numbers]
    job_node_us, other_node_us = data.allocated_node_us, data.idle_node_us - data.allocated_node_us
    for name, node_us, mark in (
        (_HELD, job_node_us, Mark("useful")),
        (_NOT_HELD, other_node_us, Mark("unallocated", 1)),
    ):
        hours = (node_us / NODE_US_PER_HOUR).tolist()
        texts = [f"{amount(hour)} node-hours {name}" for hour in hours]
        yield mark.bars(
            name,
            ((edge[:-1] + edge[1:]) / 2).tolist(),
            hours,
            "%{customdata[0]}<br>%{customdata[1]}<br>%{customdata[2]}",
            width=np.diff(edge).tolist(),
            customdata=[[*bin_data] for bin_data in zip(bins, texts, counts, strict=True)],
        )


def _bins(data: IdleIntervals) -> list[str]:
    """``idle intervals of 4.27 min to 6.03 min``."""
    return [
        f"idle intervals of {duration(lower_s)} to {duration(upper_s)}"
        if math.isfinite(upper_s)
        else f"idle intervals of more than {duration(lower_s)}"
        for lower_s, upper_s in zip(data.over_s.tolist(), data.up_to_s.tolist(), strict=True)
    ]


def _cells(data: IdleIntervals) -> pd.DataFrame:
    """Cells of ``_OF_LOG`` and of ``_OF_JOBS`` by bin; ``object`` keeps counts whole beside bins of another log."""
    import pandas as pd

    cells = {
        "n_intervals": data.n_intervals,
        "n_censored": data.n_censored,
        "idle_node_hours": data.idle_node_us / NODE_US_PER_HOUR,
        "n_allocated": data.n_allocated,
        "held_node_hours": data.allocated_node_us / NODE_US_PER_HOUR,
        "held_share": data.held_share,
    }
    return pd.DataFrame(cells, index=pd.MultiIndex.from_arrays([data.over_s, data.up_to_s]), dtype=object)


def _log_sentence(label: str, data: IdleIntervals) -> str:
    longer = data.longer(data.idle_node_us)
    last_half = int(np.flatnonzero(longer >= 0.5)[-1])
    n_intervals, n_cut = int(data.n_intervals.sum()), int(data.n_censored.sum())
    of_intervals = data.longer(data.n_intervals)[last_half]
    text = (
        f"{count(n_intervals, 'idle interval')}: those longer than {duration(data.over_s[last_half])} make up "
        f"{percent(float(of_intervals))} of the number and {percent(float(longer[last_half]))} of the idle node-hours"
    )
    if n_cut:
        verb = "is" if n_cut == 1 else "are"
        text += f" ({n_cut:,} {verb} cut by an edge of the window, and may have been longer than it shows)"
    return f"{tag(label, text)}."


def _jobs_sentence(label: str, data: IdleIntervals) -> str:
    job_node_us, idle_node_us = int(data.allocated_node_us.sum()), int(data.idle_node_us.sum())
    text = f"jobs held {percent(job_node_us / idle_node_us)} of the idle node-hours"
    parts = []
    for word, which, edges, bin_end in (
        ("up to", data.up_to_s <= _nearest(data.up_to_s, _SHORT_S), data.up_to_s, np.max),
        ("over", data.over_s >= _nearest(data.over_s, _LONG_S), data.over_s, np.min),
    ):
        if part := int(data.idle_node_us[which].sum()):
            share = percent(int(data.allocated_node_us[which].sum()) / part)
            parts.append(f"{share} of those in idle intervals of {word} {duration(bin_end(edges[which]))}")
    return sentence(label, ", ".join(filter(None, (text, " and ".join(parts)))))


def _nearest(edges: NDArray[np.float64], length_s: float) -> float:
    """The edge of a bin that is the nearest to a length, by ratio; the length itself where none is within a bin."""
    finite_edges = edges[np.isfinite(edges) & (edges > 0.0)]
    ratio = np.abs(np.log(finite_edges / length_s))
    if not finite_edges.size or ratio.min() > math.log(2) / 2:
        return length_s
    return float(finite_edges[int(ratio.argmin())])


IDLE_INTERVALS: RunFigure[IdleIntervals] = RunFigure(
    "idle-intervals", "How long nodes stay idle", idle_intervals, draw, page, words, table
)
