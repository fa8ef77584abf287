"""Idle nodes and nodes held by jobs over time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bfreplay.report.figures.axes import dress, legend_below, new_figure, plain_tick, settle
from bfreplay.report.figures.figure import PageFigure, RunFigure
from bfreplay.report.figures.marks import (
    LIGHT,
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
        part = self.span.inside(start_us, end_us)
        idle, held = (nodes.series() for nodes in self.nodes_in(part))
        return replace(self, span=part, idle=idle, held=held)

    @property
    def share(self) -> float | None:
        """Share of the idle node time held by jobs; ``None`` without any."""
        return self.held.area_us / self.idle.area_us if self.idle.area_us else None


def timeline(run: RunResult) -> Timeline:
    """Idle nodes and nodes held over the window."""
    span, nodes_in = TimeSpan.of_record(run.record), partial(nodes_between, run)
    idle, held = (nodes.series() for nodes in nodes_in(span))
    end_us = run.summary.last_finish_us if run.record.inputs.jobs.of_source else None
    return Timeline(span, idle, held, nodes_in, None if end_us == span.start_us else end_us)


def nodes_between(run: RunResult, part: TimeSpan) -> tuple[StepParts, StepParts]:
    """Read the idle nodes, and those held by jobs, in a part of the window."""
    idle, held = (StepParts(part.start_us, part.end_us, _COLUMNS, FINEST) for _ in range(2))
    for edge_us, n_idle in _idle_parts(run, part):
        idle.add(edge_us, n_idle)
        idle.shrink()
    for edge_us, count_held in SavedAllocations.of(run).nodes_in_parts(part.start_us, part.end_us):
        held.add(edge_us, count_held)
        held.shrink()
    return idle, held


def draw(found: Mapping[str, Timeline]) -> Figure:
    """Idle nodes from the least to the most of each of 480 columns, their mean, and the mean of those held."""
    figure = new_figure(9.0, 4.2)
    axes = figure.subplots()
    span = outer_part([data.span for data in found.values()])
    is_alone = len(found) == 1
    for mark, label, data in by_run(_with_own_idle(found)):
        _draw_idle(axes, data, Mark("idle", mark.k), label)
    for mark, label, data in by_run(found):
        shown = data.held.coarse(_COLUMNS)
        days = span.days(shown.edge_us)
        words = tag(label, "held by jobs" if shown.is_exact else "held by jobs, mean")
        width = 1.2 + 0.5 * min(max(0, len(found) - 1 - mark.k), _MOST_WIDTHS)  # lines that coincide are all to be seen
        if is_alone:
            axes.stairs(shown.mean, days, fill=True, color=PALE_BLUE, linewidth=0.0, zorder=2.2)
        axes.stairs(shown.mean, days, baseline=None, label=words, zorder=3, **(mark.paper_line | {"linewidth": width}))
    axes.set_ylim(bottom=0.0, top=max(1.0, max(float(data.idle.most.max()) for data in found.values())) * 1.04)
    draw_time_axis(axes, span)
    dress(axes, y="nodes", y_ticks=plain_tick)
    legend_below(figure)
    return settle(figure)


def page(found: Mapping[str, Timeline]) -> PageFigure:
    """The same for the page, which draws it as fine as the part of the window that is looked at allows."""
    traces: list[Trace] = []
    series: dict[str, StepSeries] = {}
    for mark, label, data in by_run(_with_own_idle(found)):
        name = tag(label, "idle")
        series[name] = data.idle.coarse()
        own, hover = Mark("idle", mark.k), "idle nodes, {}: %{{y:,.4~g}}"
        edge: Trace = {"line": {"width": 0}, "legendgroup": name}
        range_name, band = tag(label, "idle, least to most"), {"fill": "tonexty", "fillcolor": "@idle-range"}
        traces += [
            own.steps(name, hover.format("least"), name, "least", **edge, showlegend=False),
            own.steps(range_name, hover.format("most"), name, "most", **edge, **band),
            own.steps(tag(label, "idle, mean"), hover.format("mean"), name, line={"width": 1.2}),
        ]
    for mark, label, data in by_run(found):
        name = tag(label, "held")
        series[name] = data.held.coarse()
        fill = {"fill": "tozeroy"} if len(found) == 1 else {}
        hover = f"{tag(label, 'nodes held by jobs, mean')}: %{{y:,.4~g}}"
        traces.append(mark.steps(tag(label, "held by jobs, mean"), hover, name, line={"width": 1.4}, **fill))
    layout = {
        "xaxis": {"time": True},
        "yaxis": {"title": {"text": "nodes"}, "rangemode": "tozero", "tickformat": ",~g", "fixedrange": True},
        "hovermode": "x unified",
    }
    return PageFigure(traces, layout, series, height=400)


def words(found: Mapping[str, Timeline]) -> str:
    """Numbers of idle nodes and of nodes held by jobs."""
    found = {label: _search_of(each) for label, each in found.items()}
    sentences = [sentence(label, _idle_words(data)) for label, data in _with_own_idle(found).items()]
    sentences += [sentence(label, _held_words(data)) for label, data in found.items() if data.idle.most.any()]
    return join_text(found, sentences)


def _search_of(data: Timeline) -> Timeline:
    return data if data.search_end_us is None else data.between(data.span.start_us, data.search_end_us)


def _idle_words(data: Timeline) -> str:
    least, most = data.idle.least.min(), data.idle.most.max()
    if not most:
        return "no node was idle at any time"
    if least == most:
        return f"{count(int(most), 'node')} {'was' if most == 1 else 'were'} idle all the time"
    during = "" if data.search_end_us is None else " during the search"
    mean = amount_of(data.idle.mean_height, "node")
    verb = "was" if mean.endswith("node") else "were"
    return f"{mean} {verb} idle on average{during}, between {least:,.0f} and {most:,.0f}"


def _held_words(data: Timeline) -> str:
    if not data.held.most.any():
        return "jobs held none of them"
    share = "" if data.share is None else f", {percent(data.share)} of the idle node time"
    return f"jobs held {amount_of(data.held.mean_height, 'node')} on average{share}"


def _draw_idle(axes: Axes, data: Timeline, mark: Mark, label: str) -> None:
    shown = data.idle.coarse(_COLUMNS)
    days = data.span.days(shown.edge_us)
    if not shown.is_exact:
        axes.stairs(
            shown.most,
            days,
            baseline=shown.least,
            fill=True,
            color=LIGHT["idle-range"],
            linewidth=0.0,
            zorder=1.5,
            label=tag(label, "idle, least to most"),
        )
    line = mark.paper_line | {"linewidth": 1.0}
    words = tag(label, "idle" if shown.is_exact else "idle, mean")
    axes.stairs(shown.mean, days, baseline=None, zorder=2.5, label=words, **line)


def _with_own_idle(found: Mapping[str, Timeline]) -> Mapping[str, Timeline]:
    """Runs whose idle nodes are to be shown: one without a label where they are the same in all, else each."""
    return {"": next(iter(found.values()))} if all_are_alike(found.values(), _have_same_idle) else found


def _have_same_idle(one: Timeline, other: Timeline) -> bool:
    same_edges = one.span == other.span and np.array_equal(one.idle.edge_us, other.idle.edge_us)
    return same_edges and np.array_equal(one.idle.mean, other.idle.mean)


def _idle_parts(run: RunResult, part: TimeSpan) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield edges, and ``n_idle`` between them, the last rows first; of rows of one instant the last counts."""
    until_us = part.end_us
    for rows in run.batches("pool", ("time", "n_idle"), backwards=True):
        time_us, n_idle = (np.asarray(rows[name].cast("int64"), dtype=np.int64) for name in ("time", "n_idle"))
        edge_us, n_idle = lasting_steps(np.clip(np.append(time_us, until_us), part.start_us, until_us), n_idle)
        if n_idle.size:
            yield edge_us, n_idle
            until_us = int(edge_us[0])


TIMELINE: RunFigure[Timeline] = RunFigure(
    "timeline", "Idle nodes, and those held by jobs, over time", timeline, draw, page, words
)
