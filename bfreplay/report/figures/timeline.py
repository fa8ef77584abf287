"""Idle nodes and nodes held by jobs over time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bfreplay.report.figures.axes import legend_below, new_figure, plain_tick, style_axes
from bfreplay.report.figures.figure import PageFigure, RunFigure
from bfreplay.report.figures.marks import (
    PALE_BLUE,
    Mark,
    Trace,
    all_are_alike,
    amount_of,
    by_run,
    join_text,
    sentence,
    tag,
)
from bfreplay.report.figures.time_axis import TimeSpan, draw_time_axis, outer_part
from bfreplay.runs.explain.saved_tables import SavedAllocations
from bfreplay.runs.step_functions import FINEST, StepParts, StepSeries, lasting_steps
from bfreplay.wording import count, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bfreplay.runs.run_result import RunResult

_COLUMNS = 480
_MOST_WIDTHS = 5


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """Nodes of one run over time.

    Parameters
    ----------
    span
        The window, or a part of it.
    idle
        Idle nodes, including nodes held by jobs.
    held
        Nodes held by jobs.
    nodes_in
        Reads both for a part of the window.
    search_end_us
        End of a search that finished before the window; words cover the time until then.
    """

    span: TimeSpan
    idle: StepSeries
    held: StepSeries
    nodes_in: Callable[[TimeSpan], Sequence[StepParts]]
    search_end_us: int | None = None

    def between(self, start_us: int, end_us: int) -> Timeline:
        """The same for a part of the window; InputError for an empty one, or one that reaches outside the window."""
        part_of_span = self.span.inside(start_us, end_us)
        idle_nodes, held_nodes = (nodes.series() for nodes in self.nodes_in(part_of_span))
        return replace(self, span=part_of_span, idle=idle_nodes, held=held_nodes)

    @property
    def share(self) -> float | None:
        """Share of the idle node time held by jobs; ``None`` without any."""
        return self.held.area_us / self.idle.area_us if self.idle.area_us else None


def timeline(run: RunResult) -> Timeline:
    """Idle nodes and nodes held over the window."""
    span, nodes_in = TimeSpan.of_record(run.record), partial(nodes_between, run)
    idle_nodes, held_nodes = (nodes.series() for nodes in nodes_in(span))
    end_us = run.summary.last_finish_us if run.record.inputs.jobs.of_source else None
    return Timeline(span, idle_nodes, held_nodes, nodes_in, None if end_us == span.start_us else end_us)


def nodes_between(run: RunResult, span: TimeSpan) -> tuple[StepParts, StepParts]:
    """Read the idle nodes, and those held by jobs, in a part of the window."""
    idle_steps, held_steps = (StepParts(span.start_us, span.end_us, _COLUMNS, FINEST) for _ in range(2))
    held_parts = SavedAllocations.of(run).nodes_in_parts(span.start_us, span.end_us)
    for steps, steps_of_parts in ((idle_steps, idle_parts(run, span)), (held_steps, held_parts)):
        for edge_us, nodes in steps_of_parts:
            steps.add(edge_us, nodes)
            steps.shrink()
    return idle_steps, held_steps


def draw(timelines: Mapping[str, Timeline]) -> Figure:
    """Idle nodes from the least to the most of each of 480 columns, their mean, and the mean of those held."""
    figure = new_figure(9.0, 4.2)
    axes = figure.subplots()
    span = outer_part([timeline.span for timeline in timelines.values()])
    is_alone = len(timelines) == 1
    for mark, run_label, timeline in by_run(_with_own_idle(timelines)):
        _draw_idle(axes, timeline, Mark("idle", mark.k), run_label)
    for mark, run_label, timeline in by_run(timelines):
        held_columns = timeline.held.coarse(_COLUMNS)
        edge_days = span.days(held_columns.edge_us)
        held_words = tag(run_label, "held by jobs" if held_columns.is_exact else "held by jobs, mean")
        # lines that coincide are all to be seen
        line_look = mark.paper_line | {"linewidth": 1.2 + 0.5 * min(max(0, len(timelines) - 1 - mark.k), _MOST_WIDTHS)}
        if is_alone:
            axes.stairs(held_columns.mean, edge_days, fill=True, color=PALE_BLUE, linewidth=0.0, zorder=2.2)
        axes.stairs(held_columns.mean, edge_days, baseline=None, label=held_words, zorder=3, **line_look)
    axes.set_ylim(0.0, max(1.0, *(float(timeline.idle.most.max()) for timeline in timelines.values())) * 1.04)
    draw_time_axis(axes, span)
    style_axes(axes, y="nodes", y_ticks=plain_tick)
    legend_below(figure)
    return figure


def page(timelines: Mapping[str, Timeline]) -> PageFigure:
    """The same for the page, which draws it as fine as the part of the window that is looked at allows."""
    traces: list[Trace] = []
    series: dict[str, StepSeries] = {}
    for run_mark, run_label, timeline in by_run(_with_own_idle(timelines)):
        name = tag(run_label, "idle")
        series[name] = timeline.idle.coarse()
        idle_mark, hover = Mark("idle", run_mark.k), "idle nodes, {}: %{{y:,.4~g}}"
        edge_look: Trace = {"line": {"width": 0}, "legendgroup": name}
        range_name, band_look = tag(run_label, "idle, least to most"), {"fill": "tonexty", "fillcolor": "@idle-range"}
        traces += [
            idle_mark.steps(name, hover.format("least"), name, "least", **edge_look, showlegend=False),
            idle_mark.steps(range_name, hover.format("most"), name, "most", **edge_look, **band_look),
            idle_mark.steps(tag(run_label, "idle, mean"), hover.format("mean"), name, line={"width": 1.2}),
        ]
    for run_mark, run_label, timeline in by_run(timelines):
        name = tag(run_label, "held")
        series[name] = timeline.held.coarse()
        fill = {"fill": "tozeroy"} if len(timelines) == 1 else {}
        hover = f"{tag(run_label, 'nodes held by jobs, mean')}: %{{y:,.4~g}}"
        traces.append(run_mark.steps(tag(run_label, "held by jobs, mean"), hover, name, line={"width": 1.4}, **fill))
    layout = {
        "xaxis": {"time": True},
        "yaxis": {"title": {"text": "nodes"}, "rangemode": "tozero", "tickformat": ",~g", "fixedrange": True},
        "hovermode": "x unified",
    }
    return PageFigure(traces, layout, series, height=400)


def words(timelines: Mapping[str, Timeline]) -> str:
    """Numbers of idle nodes and of nodes held by jobs."""
    timelines = {label: _search_of(timeline) for label, timeline in timelines.items()}
    sentences = [sentence(label, _idle_words(data)) for label, data in _with_own_idle(timelines).items()]
    sentences += [sentence(label, _held_words(data)) for label, data in timelines.items() if data.idle.most.any()]
    return join_text(timelines, sentences)


def _search_of(data: Timeline) -> Timeline:
    return data if data.search_end_us is None else data.between(data.span.start_us, data.search_end_us)


def _idle_words(timeline: Timeline) -> str:
    least_nodes, most_nodes = timeline.idle.least.min(), timeline.idle.most.max()
    if not most_nodes:
        return "no node was idle at any time"
    if least_nodes == most_nodes:
        return f"{count(int(most_nodes), 'node')} {'was' if most_nodes == 1 else 'were'} idle all the time"
    span_words = "" if timeline.search_end_us is None else " during the search"
    mean_words = amount_of(timeline.idle.mean_height, "node")
    verb = "was" if mean_words.endswith("node") else "were"
    return f"{mean_words} {verb} idle on average{span_words}, between {least_nodes:,.0f} and {most_nodes:,.0f}"


def _held_words(timeline: Timeline) -> str:
    if not timeline.held.most.any():
        return "jobs held none of them"
    share_words = "" if timeline.share is None else f", {percent(timeline.share)} of the idle node time"
    return f"jobs held {amount_of(timeline.held.mean_height, 'node')} on average{share_words}"


def _draw_idle(axes: Axes, timeline: Timeline, run_mark: Mark, run_label: str) -> None:
    idle_columns = timeline.idle.coarse(_COLUMNS)
    edge_days = timeline.span.days(idle_columns.edge_us)
    if not idle_columns.is_exact:
        band_look: Trace = {"fill": True, "color": Mark("idle-range").colour, "linewidth": 0.0, "zorder": 1.5}
        band_words = tag(run_label, "idle, least to most")
        axes.stairs(idle_columns.most, edge_days, baseline=idle_columns.least, label=band_words, **band_look)
    line_look = run_mark.paper_line | {"linewidth": 1.0}
    line_words = tag(run_label, "idle" if idle_columns.is_exact else "idle, mean")
    axes.stairs(idle_columns.mean, edge_days, baseline=None, zorder=2.5, label=line_words, **line_look)


def _with_own_idle(timelines: Mapping[str, Timeline]) -> Mapping[str, Timeline]:
    """Runs whose idle nodes are to be shown: one without a label where they are the same in all, else each."""
    return {"": next(iter(timelines.values()))} if all_are_alike(timelines.values(), _have_same_idle) else timelines


def _have_same_idle(timeline: Timeline, other: Timeline) -> bool:
    same_edges = timeline.span == other.span and np.array_equal(timeline.idle.edge_us, other.idle.edge_us)
    return same_edges and np.array_equal(timeline.idle.mean, other.idle.mean)


def idle_parts(run: RunResult, span: TimeSpan) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield edges, and ``n_idle`` between them, the last rows first; of rows of one instant the last counts."""
    until_us = span.end_us
    for pool_rows in run.batches("pool", ("time", "n_idle"), backwards=True):
        time_us, n_idle = (np.asarray(pool_rows[name].cast("int64"), dtype=np.int64) for name in ("time", "n_idle"))
        edge_us, n_idle = lasting_steps(np.clip(np.append(time_us, until_us), span.start_us, until_us), n_idle)
        if n_idle.size:
            yield edge_us, n_idle
            until_us = int(edge_us[0])


TIMELINE: RunFigure[Timeline] = RunFigure(
    "timeline", "Idle nodes, and those held by jobs, over time", timeline, draw, page, words
)
