"""Lengths of idle intervals (a node idle without a break), and the share of them that jobs held."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.report.figures.axes import legend_below, new_figure, page_axis, paper_axis, plain_tick, style_axes
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
        edges_s = np.append(self.over_s, self.up_to_s[-1])
        if not math.isfinite(edges_s[-1]):
            edges_s[-1] = edges_s[-2] * math.sqrt(2)
        if edges_s[0] <= 0.0:
            edges_s[0] = edges_s[1] / math.sqrt(2)
        return edges_s

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
        column_names = ("over_s", "n_intervals", "idle_node_us")
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in column_names)


def idle_intervals(run: RunResult) -> IdleIntervals:
    """Return the idle intervals of a run from its table.

    Raises
    ------
    NothingToShowError
        No node was idle at any time.
    """
    interval_table = run.table("idle_intervals")
    if not interval_table.num_rows:
        raise NothingToShowError("no node was idle at any time of the window, so there are no idle intervals")
    # more node time than 64 bits hold is in several rows of one bin
    interval_rows = interval_table.to_pandas().astype({"idle_node_us": np.float64, "allocated_node_us": np.float64})
    by_bin = interval_rows.groupby("over_s")
    sums, up_to_s = by_bin[list(_SUMS)].sum(), by_bin["up_to_s"].first().fillna(math.inf)
    return IdleIntervals(up_to_s.index.to_numpy(), up_to_s.to_numpy(), *(sums[name].to_numpy() for name in _SUMS))


def draw(intervals_by_run: Mapping[str, IdleIntervals]) -> Figure:
    """Above, node-hours by length, or the share held run by run; below, the share in longer intervals."""
    figure = new_figure(9.0, 6.4)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[1.2, 1.0])
    is_alone = len(intervals_by_run) == 1
    if is_alone:
        _draw_node_hours(above, *intervals_by_run.values())
    else:
        for curve_mark, run_label, intervals in by_run(intervals_by_run):
            heights = 100 * np.append(intervals.held_share, intervals.held_share[-1])
            above.step(intervals.edge_s, heights, where="post", label=tag(run_label, _HELD), **curve_mark.paper_line)
        above.set_ylim(-2, 102)
    for curve_words, curve_mark, lengths, longer_percent in _curves(intervals_by_run):
        below.plot(lengths, longer_percent, label=curve_words, **curve_mark.paper_line)
    below.set_ylim(-2, 102)
    paper_axis(below, *_range(intervals_by_run))
    style_axes(above, y="node-hours" if is_alone else "held by jobs, % of node-hours", y_ticks=plain_tick)
    style_axes(below, _LENGTH, "in longer idle intervals, %", y_ticks=plain_tick)
    if is_alone:
        for axes in (above, below):
            axes.legend(fontsize=9, frameon=False, loc="best")
    else:
        legend_below(figure)
    return figure


def page(intervals_by_run: Mapping[str, IdleIntervals]) -> PageFigure:
    """The same two panels."""
    traces: list[Trace] = []
    above: Trace = {"title": {"text": "held, % of node-hours"}, "range": [-2, 102]}
    if len(intervals_by_run) == 1:
        traces += _page_node_hours(*intervals_by_run.values())
        above = {"title": {"text": "node-hours"}, "rangemode": "tozero", "tickformat": ","}
    else:
        for mark, run_label, intervals in by_run(intervals_by_run):
            percents = [None if math.isnan(share) else 100 * share for share in intervals.held_share.tolist()]
            bin_words, hover = _bins(intervals), f"{run_label}: %{{y:.3~r}} % held<br>%{{customdata}}"
            points = {"x": intervals.edge_s.tolist(), "y": [*percents, percents[-1]]}
            texts = [*bin_words, bin_words[-1]]
            traces.append(mark.curve(tag(run_label, _HELD), hover, {"shape": "hv"}, **points, customdata=texts))
    for words, mark, lengths, longer in _curves(intervals_by_run):
        hover = f"{words}, longer than %{{customdata}}: %{{y:.3~r}} %"
        traces.append(mark.curve(words, hover, x=lengths, y=longer, yaxis="y2", customdata=[*map(duration, lengths)]))
    layout = {
        "barmode": "stack",
        "bargap": 0,
        "xaxis": {"title": {"text": _LENGTH}, **page_axis(*_range(intervals_by_run)), "anchor": "y2"},
        "yaxis": {**above, "domain": [0.5, 1.0]},
        "yaxis2": {"title": {"text": "in longer idle intervals, %"}, "domain": [0.0, 0.42], "range": [-2, 102]},
        "hovermode": "closest",
        "legend": {"traceorder": "normal"},
    }
    return PageFigure(traces, layout, height=560)


def words(intervals_by_run: Mapping[str, IdleIntervals]) -> str:
    """Lengths of the intervals with half of the node-hours, and the shares held of short and long intervals."""
    label_of_log = _labels_of_logs(intervals_by_run)
    sentences = []
    for run_label, intervals in intervals_by_run.items():
        if run_label in label_of_log:
            sentences.append(_log_sentence(label_of_log[run_label], intervals))
        sentences.append(_jobs_sentence(run_label, intervals))
    return join_text(intervals_by_run, sentences)


def table(intervals_by_run: Mapping[str, IdleIntervals]) -> ShownTable:
    """A row a bin; bins of runs on different logs are side by side."""
    import pandas as pd

    label_of_log = _labels_of_logs(intervals_by_run)
    columns = [Column("over_s", "Longer than", "seconds"), Column("up_to_s", "Up to", "seconds")]
    cells_of_columns: list[pd.Series[Any]] = []  # of each column after these, by bin
    for run_label, intervals in intervals_by_run.items():
        run_columns = [(column, run_label) for column in _OF_JOBS]
        if run_label in label_of_log:
            run_columns = [*((column, label_of_log[run_label]) for column in _OF_LOG), *run_columns]
        columns += [column.of_run(label_shown) for column, label_shown in run_columns]
        run_cells = _cells(intervals)
        cells_of_columns += [run_cells[column.key] for column, _ in run_columns]
    bins = pd.concat(cells_of_columns, axis=1).sort_index().reset_index()
    table_rows = bins.astype(object).where(bins.notna() & (bins != math.inf), None).to_numpy().tolist()
    caption = "Idle intervals by length; of one cut by an edge of the window the length seen, a lower bound"
    return ShownTable(caption, tuple(columns), table_rows)


def _labels_of_logs(intervals_by_run: Mapping[str, IdleIntervals]) -> dict[str, str]:
    """Label of the log of each run; of the first run alone, and empty, if all runs are on one log."""
    labels = list(intervals_by_run)
    return {labels[0]: ""} if _is_one_log(intervals_by_run) else dict(zip(labels, labels, strict=True))


def _is_one_log(intervals_by_run: Mapping[str, IdleIntervals]) -> bool:
    return all_are_alike(intervals_by_run.values(), IdleIntervals.is_of_the_log_of)


def _range(intervals_by_run: Mapping[str, IdleIntervals]) -> tuple[float, float]:
    edges_of_runs = [intervals.edge_s for intervals in intervals_by_run.values()]
    return float(min(edge[0] for edge in edges_of_runs)) / 1.05, float(max(edge[-1] for edge in edges_of_runs)) * 1.05


def _curves(intervals_by_run: Mapping[str, IdleIntervals]) -> Iterable[tuple[str, Mark, list[float], list[float]]]:
    """Words, mark and points of the lower curves; curves of the log once if all runs are on one log."""
    first_intervals = next(iter(intervals_by_run.values()))
    if _is_one_log(intervals_by_run):
        yield "of the node-hours", Mark("idle"), *_curve(first_intervals, first_intervals.idle_node_us)
        yield "of the idle intervals", Mark("idle", 1), *_curve(first_intervals, first_intervals.n_intervals)
    else:
        for run_mark, run_label, intervals in by_run(intervals_by_run):
            yield tag(run_label, "of the node-hours"), run_mark, *_curve(intervals, intervals.idle_node_us)


def _curve(data: IdleIntervals, values: NDArray[np.int64] | NDArray[np.float64]) -> tuple[list[float], list[float]]:
    """Points at the edges, in percent; nothing is longer than the last edge, if there is one."""
    percent_longer = (100 * data.longer(values)).tolist()
    edges_s = data.edge_s.tolist()
    return (edges_s, [*percent_longer, 0.0]) if math.isfinite(data.up_to_s[-1]) else (edges_s[:-1], percent_longer)


def _draw_node_hours(axes: Axes, intervals: IdleIntervals) -> None:
    edges_s, below = intervals.edge_s, np.zeros(intervals.over_s.size)
    for name, mark, hours in _parts(intervals):
        axes.bar(edges_s[:-1], hours, bottom=below, label=name, align="edge", width=np.diff(edges_s), **mark.paper_fill)
        below = hours


def _page_node_hours(intervals: IdleIntervals) -> Iterable[Trace]:
    edges_s, bin_words = intervals.edge_s, _bins(intervals)
    numbers = zip(intervals.n_intervals.tolist(), intervals.n_allocated.tolist(), strict=True)
    count_words = [f"{count(n_intervals, 'idle interval')}, {n_in_use:,} held" for n_intervals, n_in_use in numbers]
    centres, widths = ((edges_s[:-1] + edges_s[1:]) / 2).tolist(), np.diff(edges_s).tolist()
    hover = "%{customdata[0]}<br>%{customdata[1]}<br>%{customdata[2]}"
    for part_name, part_mark, node_hours in _parts(intervals):
        hour_words = [f"{amount(hour)} node-hours {part_name}" for hour in node_hours.tolist()]
        hover_rows = [[*bin_data] for bin_data in zip(bin_words, hour_words, count_words, strict=True)]
        yield part_mark.bars(part_name, centres, node_hours.tolist(), hover, width=widths, customdata=hover_rows)


def _parts(intervals: IdleIntervals) -> list[tuple[str, Mark, NDArray[np.float64]]]:
    """Name, mark and node-hours (B,) of the parts of the bars, from below."""
    node_us = intervals.allocated_node_us, intervals.idle_node_us - intervals.allocated_node_us
    job_hours, other_hours = (part_us / NODE_US_PER_HOUR for part_us in node_us)
    return [(_HELD, Mark("useful"), job_hours), (_NOT_HELD, Mark("unallocated", 1), other_hours)]


def _bins(intervals: IdleIntervals) -> list[str]:
    """``idle intervals of 4.27 min to 6.03 min``."""
    return [
        f"idle intervals of {duration(lower_s)} to {duration(upper_s)}"
        if math.isfinite(upper_s)
        else f"idle intervals of more than {duration(lower_s)}"
        for lower_s, upper_s in zip(intervals.over_s.tolist(), intervals.up_to_s.tolist(), strict=True)
    ]


def _cells(intervals: IdleIntervals) -> pd.DataFrame:
    """Cells of ``_OF_LOG`` and of ``_OF_JOBS`` by bin; ``object`` keeps counts whole beside bins of another log."""
    import pandas as pd

    cells = {
        "n_intervals": intervals.n_intervals,
        "n_censored": intervals.n_censored,
        "idle_node_hours": intervals.idle_node_us / NODE_US_PER_HOUR,
        "n_allocated": intervals.n_allocated,
        "held_node_hours": intervals.allocated_node_us / NODE_US_PER_HOUR,
        "held_share": intervals.held_share,
    }
    return pd.DataFrame(cells, index=pd.MultiIndex.from_arrays([intervals.over_s, intervals.up_to_s]), dtype=object)


def _log_sentence(run_label: str, intervals: IdleIntervals) -> str:
    longer = intervals.longer(intervals.idle_node_us)
    last_half = int(np.flatnonzero(longer >= 0.5)[-1])
    n_intervals, n_cut = int(intervals.n_intervals.sum()), int(intervals.n_censored.sum())
    shares = [percent(float(share[last_half])) for share in (intervals.longer(intervals.n_intervals), longer)]
    text = f"{count(n_intervals, 'idle interval')}: those longer than {duration(intervals.over_s[last_half])} make up "
    text += f"{shares[0]} of the number and {shares[1]} of the idle node-hours"
    if n_cut:
        verb = "is" if n_cut == 1 else "are"
        text += f" ({n_cut:,} {verb} cut by an edge of the window, and may have been longer than it shows)"
    return f"{tag(run_label, text)}."


def _jobs_sentence(run_label: str, intervals: IdleIntervals) -> str:
    job_node_us, idle_node_us = int(intervals.allocated_node_us.sum()), int(intervals.idle_node_us.sum())
    job_words = f"jobs held {percent(job_node_us / idle_node_us)} of the idle node-hours"
    length_words = []
    for bound_word, which, edges, bin_end in (
        ("up to", intervals.up_to_s <= _nearest(intervals.up_to_s, _SHORT_S), intervals.up_to_s, np.max),
        ("over", intervals.over_s >= _nearest(intervals.over_s, _LONG_S), intervals.over_s, np.min),
    ):
        if part_node_us := int(intervals.idle_node_us[which].sum()):
            share = percent(int(intervals.allocated_node_us[which].sum()) / part_node_us)
            length_words.append(f"{share} of those in idle intervals of {bound_word} {duration(bin_end(edges[which]))}")
    return sentence(run_label, ", ".join(filter(None, (job_words, " and ".join(length_words)))))


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
