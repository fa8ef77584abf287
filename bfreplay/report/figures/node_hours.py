"""Idle node-hours by label of the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bfreplay.report.figures.axes import dress, new_figure, settle
from bfreplay.report.figures.figure import NothingToShowError, PageFigure, RunFigure
from bfreplay.report.figures.marks import LIGHT, ROWS, Mark, of_each, tag
from bfreplay.runs.explain.saved_tables import NODE_US_PER_HOUR
from bfreplay.runs.metrics import HELD_NOTHING_MADE, idle_until_done_us
from bfreplay.runs.shown_values import Column, ShownTable
from bfreplay.wording import amount, percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bfreplay.runs.run_result import RunResult


@dataclass(frozen=True, slots=True)
class _Part:
    """A label of the ledger: ``key`` of its node time there, words, and its mark."""

    key: str
    words: str
    mark: Mark


PARTS = (
    _Part("useful_node_us", "useful", Mark("useful")),
    _Part("rescaling_node_us", "rescaling", Mark("rescaling", 1)),
    _Part("preempted_node_us", "preempted", Mark("lost", 3)),
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

    def hours(self, key: str) -> float:
        """Node-hours of a part."""
        return self.part[key] / NODE_US_PER_HOUR

    def share(self, key: str) -> float:
        """Share of the idle node time, by part."""
        return self.part[key] / self.idle


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
    parts = {part.key: ledger[part.key] for part in PARTS}
    idle_us = idle_until_done_us(run) if run.record.inputs.jobs.of_source else None
    if not idle_us:
        return NodeHours(ledger.idle_node_us, parts)
    parts["unallocated_node_us"] -= ledger.idle_node_us - idle_us
    return NodeHours(idle_us, parts, is_search=True)


def draw(found: Mapping[str, NodeHours]) -> Figure:
    """One bar a run, from 0 to 100 % of its idle node-hours."""
    figure = new_figure(9.0, 1.5 + 0.5 * len(found))
    axes = figure.subplots()
    for part in _parts(found):
        shares = [data.share(part.key) for data in found.values()]
        lefts = [_left_edge(data, part) for data in found.values()]
        axes.barh(
            range(len(found)),
            [100 * share for share in shares],
            left=lefts,
            height=0.62,
            label=part.words,
            **part.mark.paper_fill,
        )
        for row, (share, left) in enumerate(zip(shares, lefts, strict=True)):
            if share >= _ROOM_FOR_TEXT:
                axes.text(
                    left + 50 * share,
                    row,
                    percent(share),
                    ha="center",
                    va="center",
                    fontsize=9,
                    color="black" if part.mark.role in _PALE else "white",
                    bbox={"facecolor": LIGHT[part.mark.role], "edgecolor": "none", "pad": 1.5},
                )
    axes.set_yticks(range(len(found)), labels=list(found))
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    dress(axes, "% of the idle node-hours")
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    figure.legend(loc="outside upper left", ncols=4, fontsize=9, frameon=False)
    return settle(figure)


def page(found: Mapping[str, NodeHours]) -> PageFigure:
    """The same for the page, with node-hours in the hover texts."""
    traces = []
    for part in _parts(found):
        shares = [data.share(part.key) for data in found.values()]
        texts = [
            [tag(label, part.words), f"{amount(data.hours(part.key))} node-hours", percent(share)]
            for (label, data), share in zip(found.items(), shares, strict=True)
        ]
        inside = [percent(share) if share >= _ROOM_FOR_TEXT and not part.mark.k else "" for share in shares]
        traces.append(
            part.mark.bars(
                part.words,
                [100 * share for share in shares],
                list(found),
                "%{customdata[0]}<br>%{customdata[1]} (%{customdata[2]})",
                customdata=texts,
                orientation="h",
                text=inside,
                textposition="inside",
                insidetextanchor="middle",
                textangle=0,
            )
        )
    layout = {
        "barmode": "stack",
        "bargap": 0.35,
        "xaxis": {"title": {"text": "% of the idle node-hours"}, "range": [0, 100]},
        "yaxis": ROWS,
        "legend": {"traceorder": "normal"},
    }
    return PageFigure(traces, layout, height=190 + 42 * len(found))


def table(found: Mapping[str, NodeHours]) -> ShownTable:
    """A row a label, node-hours and share of each run; then what was idle."""
    columns = [Column("part", "Idle node-hours")]
    for label in found:
        columns += [
            Column("node_hours", "node-hours", "amount").of_run(label),
            Column("share", "share", "percent").of_run(label),
        ]
    rows: list[list[Any]] = []
    for part in PARTS:
        cells = [cell for data in found.values() for cell in (data.hours(part.key), data.share(part.key))]
        rows.append([part.words, *cells])
    rows.append(["all", *(cell for data in found.values() for cell in (data.idle / NODE_US_PER_HOUR, 1.0))])
    return ShownTable("Where the idle node-hours went", tuple(columns), rows)


def _parts(found: Mapping[str, NodeHours]) -> list[_Part]:
    """Labels that some run has."""
    return [part for part in PARTS if any(data.part[part.key] for data in found.values())]


def _left_edge(data: NodeHours, part: _Part) -> float:
    return 100 * sum(data.share(before.key) for before in PARTS[: PARTS.index(part)])


def _words(data: NodeHours) -> str:
    """Shares of the labels."""
    share = {part.key: percent(data.share(part.key)) for part in PARTS}
    when = " during the search," if data.is_search else ""
    text = (
        f"Of {amount(data.idle / NODE_US_PER_HOUR)} idle node-hours{when} {share['useful_node_us']} were useful, "
        f"{share['rescaling_node_us']} went into rescaling, {share['preempted_node_us']} were preempted, "
        f"{share['unallocated_node_us']} stayed unallocated"
    )
    if data.part["stalled_node_us"]:
        text += f", {share['stalled_node_us']} stalled ({HELD_NOTHING_MADE})"
    return text


NODE_HOURS: RunFigure[NodeHours] = RunFigure(
    "node-hours", "Where the idle node-hours went", node_hours, draw, page, of_each(_words), table
)
