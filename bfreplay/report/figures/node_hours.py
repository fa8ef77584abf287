"""Idle node-hours by label of the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from bfreplay.report.figures.axes import new_figure, style_axes
from bfreplay.report.figures.figure import NothingToShowError, PageFigure, RunFigure
from bfreplay.report.figures.marks import ROWS, Mark, Trace, of_each, tag
from bfreplay.runs.explain.saved_tables import NODE_US_PER_HOUR
from bfreplay.runs.metrics import HELD_NOTHING_MADE, idle_until_done_us
from bfreplay.wording import Column, ShownTable, amount, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bfreplay.runs.run_result import RunResult


class _Part(NamedTuple):
    """A label of the ledger: ``key`` of its node time there, words, and its mark."""

    key: str
    words: str
    mark: Mark


PARTS = (
    _Part("useful_node_us", "useful", Mark("useful")),
    _Part("rescaling_node_us", "rescaling", Mark("rescaling", 1)),
    _Part("preempted_node_us", "preempted", Mark("lost", 3)),
    _Part("repeated_node_us", "repeated: the work was lost", Mark("lost", 2)),
    _Part("stalled_node_us", f"stalled: {HELD_NOTHING_MADE}", Mark("unallocated", 5)),
    _Part("unallocated_node_us", "unallocated: held by no job", Mark("unallocated")),
)
"""Every idle node-microsecond is in exactly one, from left to right."""
_ROOM_FOR_TEXT = 0.06
_PALE = ("unallocated", "rescaling")


@dataclass(frozen=True, slots=True)
class NodeHours:
    """Node time of one run in node-microseconds: ``part`` by the keys of ``PARTS``, which add up to ``idle > 0``.

    Of a finished search (``is_search``), the node time until its end.
    """

    idle: int
    part: Mapping[str, int]
    is_search: bool = False

    def hours(self, part_key: str) -> float:
        """Node-hours of a part."""
        return self.part[part_key] / NODE_US_PER_HOUR

    def share(self, part_key: str) -> float:
        """Share of the idle node time, by part."""
        return self.part[part_key] / self.idle


def node_hours(run: RunResult) -> NodeHours:
    """Node time by label, as the ledger has it.

    Raises
    ------
    NothingToShowError
        No node was idle at any time.
    """
    ledger = run.summary.ledger
    if not ledger.idle_node_us:
        raise NothingToShowError("no node was idle at any time of the window, so there are no idle node-hours")
    part_node_us = {part.key: ledger[part.key] for part in PARTS}
    idle_us = idle_until_done_us(run) if run.record.inputs.jobs.of_source else None
    if not idle_us:
        return NodeHours(ledger.idle_node_us, part_node_us)
    part_node_us["unallocated_node_us"] -= ledger.idle_node_us - idle_us
    return NodeHours(idle_us, part_node_us, is_search=True)


def draw(hours_by_run: Mapping[str, NodeHours]) -> Figure:
    """One bar a run, from 0 to 100 % of its idle node-hours."""
    figure = new_figure(9.0, 1.5 + 0.5 * len(hours_by_run))
    draw_bars(figure.subplots(), hours_by_run)
    figure.legend(loc="outside upper left", ncols=4, fontsize=9, frameon=False)
    return figure


def draw_bars(axes: Axes, hours_by_run: Mapping[str, NodeHours]) -> None:
    """Draw the bars of ``draw`` into a panel."""
    for part in _parts(hours_by_run):
        shares = [run_hours.share(part.key) for run_hours in hours_by_run.values()]
        left_edges = [_left_edge(run_hours, part) for run_hours in hours_by_run.values()]
        percents, bar_look = [100 * share for share in shares], part.mark.paper_fill
        axes.barh(range(len(hours_by_run)), percents, left=left_edges, height=0.62, label=part.words, **bar_look)
        text_look: Trace = {"ha": "center", "va": "center", "fontsize": 9}
        text_look["color"] = "black" if part.mark.role in _PALE else "white"
        text_look["bbox"] = {"facecolor": part.mark.colour, "edgecolor": "none", "pad": 1.5}
        for row_number, (share, left_edge) in enumerate(zip(shares, left_edges, strict=True)):
            if share >= _ROOM_FOR_TEXT:
                axes.text(left_edge + 50 * share, row_number, percent(share), **text_look)
    axes.set_yticks(range(len(hours_by_run)), labels=list(hours_by_run))
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    style_axes(axes, "% of the idle node-hours", categories="y")


def page(hours_by_run: Mapping[str, NodeHours]) -> PageFigure:
    """The same for the page, with node-hours in the hover texts."""
    traces = []
    text_look = {"textposition": "inside", "insidetextanchor": "middle", "textangle": 0}
    for part in _parts(hours_by_run):
        shares = [run_hours.share(part.key) for run_hours in hours_by_run.values()]
        hover_texts = [
            [tag(run_label, part.words), f"{amount(run_hours.hours(part.key))} node-hours", percent(share)]
            for (run_label, run_hours), share in zip(hours_by_run.items(), shares, strict=True)
        ]
        percent_labels = [percent(share) if share >= _ROOM_FOR_TEXT and not part.mark.k else "" for share in shares]
        look: Trace = {"customdata": hover_texts, "orientation": "h", "text": percent_labels, **text_look}
        hover = "%{customdata[0]}<br>%{customdata[1]} (%{customdata[2]})"
        traces.append(part.mark.bars(part.words, [100 * share for share in shares], list(hours_by_run), hover, **look))
    layout = {
        "barmode": "stack",
        "bargap": 0.35,
        "xaxis": {"title": {"text": "% of the idle node-hours"}, "range": [0, 100]},
        "yaxis": ROWS,
        "legend": {"traceorder": "normal"},
    }
    return PageFigure(traces, layout, height=190 + 42 * len(hours_by_run))


def table(hours_by_run: Mapping[str, NodeHours]) -> ShownTable:
    """A row a label, node-hours and share of each run; then what was idle."""
    run_columns = (Column("node_hours", "node-hours", "amount"), Column("share", "share", "percent"))
    columns = [Column("part", "Idle node-hours")]
    columns += [column.of_run(run_label) for run_label in hours_by_run for column in run_columns]
    rows: list[list[Any]] = []
    has_part = _parts(hours_by_run)
    for part in PARTS:
        if part.key == "repeated_node_us" and part not in has_part:
            continue  # most runs have no work at risk
        cells = [cell for hours in hours_by_run.values() for cell in (hours.hours(part.key), hours.share(part.key))]
        rows.append([part.words, *cells])
    rows.append(["all", *(cell for hours in hours_by_run.values() for cell in (hours.idle / NODE_US_PER_HOUR, 1.0))])
    return ShownTable("Where the idle node-hours went", tuple(columns), rows)


def _parts(hours_by_run: Mapping[str, NodeHours]) -> list[_Part]:
    """Labels that some run has."""
    return [part for part in PARTS if any(run_hours.part[part.key] for run_hours in hours_by_run.values())]


def _left_edge(run_hours: NodeHours, ledger_part: _Part) -> float:
    return 100 * sum(run_hours.share(part_before.key) for part_before in PARTS[: PARTS.index(ledger_part)])


def _words(data: NodeHours) -> str:
    """Shares of the labels."""
    share = {part.key: percent(data.share(part.key)) for part in PARTS}
    when = " during the search," if data.is_search else ""
    text = f"Of {amount(data.idle / NODE_US_PER_HOUR)} idle node-hours{when} {share['useful_node_us']} were useful, "
    text += f"{share['rescaling_node_us']} went into rescaling, {share['preempted_node_us']} were preempted, "
    if data.part["repeated_node_us"]:
        text += f"{share['repeated_node_us']} repeated (work lost), "
    text += f"{share['unallocated_node_us']} stayed unallocated"
    if data.part["stalled_node_us"]:
        text += f", {share['stalled_node_us']} stalled ({HELD_NOTHING_MADE})"
    return text


NODE_HOURS: RunFigure[NodeHours] = RunFigure(
    "node-hours", "Where the idle node-hours went", node_hours, draw, page, of_each(_words), table
)
