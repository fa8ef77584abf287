"""Gantt chart: the job that held each node over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from bfreplay.report.figures.axes import new_figure, panels_below
from bfreplay.report.figures.figure import NotForThisRunError, NothingToShowError, PageFigure, RunFigure
from bfreplay.report.figures.job_timeline import rows_page, rows_to_label, style_rows
from bfreplay.report.figures.marks import LIGHT, OKABE_ITO, Trace, of_each
from bfreplay.report.figures.time_axis import TimeSpan, draw_time_axis, outer_part
from bfreplay.runs.step_functions import StepSeries, lasting_steps
from bfreplay.wording import count

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

    from bfreplay.runs.run_result import RunResult

MOST_NODES = 256
_MOST_INTERVALS = 200_000
"""That a page holds of all nodes together."""
_ROLES = [f"run-{k}" for k in range(len(OKABE_ITO))]
_COLOURS = len(_ROLES)


@dataclass(frozen=True, slots=True, eq=False)
class NodeGantt:
    """Intervals in which a job held a node, of the nodes that are shown.

    Parameters
    ----------
    span
        The window, or a part of it.
    nodes
        Names of the shown nodes, in order.
    jobs
        Names of jobs, in order of their first interval.
    node, job : (B,) int64
        Positions in ``nodes`` and ``jobs``; intervals are in order of time.
    from_us, to_us : (B,) int64
        Microseconds since the epoch.
    n_nodes
        Nodes that jobs held; the others held less node time than those shown.
    """

    span: TimeSpan
    nodes: tuple[str, ...]
    jobs: tuple[str, ...]
    node: NDArray[np.int64]
    job: NDArray[np.int64]
    from_us: NDArray[np.int64]
    to_us: NDArray[np.int64]
    n_nodes: int

    def between(self, start_us: int, end_us: int) -> NodeGantt:
        """Return the same nodes in a part of the window; NothingToShowError where no job held one of them."""
        part = self.span.inside(start_us, end_us)
        inside = (self.from_us < end_us) & (self.to_us > start_us)
        if not inside.any():
            raise NothingToShowError("no job held a node in this part of the window")
        from_us, to_us = np.maximum(self.from_us[inside], start_us), np.minimum(self.to_us[inside], end_us)
        return NodeGantt(part, self.nodes, self.jobs, self.node[inside], self.job[inside], from_us, to_us, self.n_nodes)

    def series_of(self, node: int) -> StepSeries:
        """Number of the job that held the node, from 1 on, at any time of the window; 0 for none."""
        is_node = self.node == node
        intervals = np.column_stack([self.from_us[is_node], self.to_us[is_node]])
        edges = np.concatenate([[self.span.start_us], intervals.ravel(), [self.span.end_us]])
        heights = np.zeros(edges.size - 1, dtype=np.int64)
        heights[1::2] = self.job[is_node] + 1
        return StepSeries.exact(*lasting_steps(edges, heights))


def node_gantt(run: RunResult) -> NodeGantt:
    """Intervals of the nodes that jobs held longest, at most 256 nodes and 200,000 intervals.

    Raises
    ------
    NotForThisRunError
        The run did not record nodes.
    NothingToShowError
        No job held a node.
    """
    if not run.has_table("nodes"):
        raise NotForThisRunError("the run did not record nodes; 'bfreplay replay --record-nodes' does")
    node_table = run.table("nodes")
    if not node_table.num_rows:
        raise NothingToShowError("no job held a node at any time of the window")
    node_table = node_table.take(np.argsort(np.asarray(node_table["from"].cast("int64")), kind="stable"))
    from_us, to_us = (np.asarray(node_table[name].cast("int64"), dtype=np.int64) for name in ("from", "to"))
    (nodes, node), (jobs, job) = (_positions(node_table[name]) for name in ("node", "job"))
    node_us = np.bincount(node, to_us - from_us, len(nodes))
    busiest = np.argsort(-node_us, kind="stable")
    fits_on_page = np.cumsum(np.bincount(node, minlength=len(nodes))[busiest]) <= _MOST_INTERVALS
    shown_nodes = busiest[:MOST_NODES][fits_on_page[:MOST_NODES]]
    shown_nodes = shown_nodes[np.argsort([nodes[node_index] for node_index in shown_nodes], kind="stable")]
    row_of_node = np.full(len(nodes), -1)
    row_of_node[shown_nodes] = np.arange(len(shown_nodes))
    is_shown = row_of_node[node] >= 0
    shown_names = tuple(nodes[node_index] for node_index in shown_nodes)
    return NodeGantt(
        TimeSpan.of_record(run.record),
        shown_names,
        jobs,
        row_of_node[node[is_shown]],
        job[is_shown],
        from_us[is_shown],
        to_us[is_shown],
        len(nodes),
    )


def draw(gantts: Mapping[str, NodeGantt]) -> Figure:
    """A panel a run, a row a node, a bar an interval, in eight colours by job."""
    heights = [min(1.0 + 0.12 * len(gantt.nodes), 8.0 if len(gantts) == 1 else 4.5) for gantt in gantts.values()]
    figure = new_figure(9.0, sum(heights) + 0.8)
    span = outer_part([gantt.span for gantt in gantts.values()])
    panels = panels_below(figure, heights)
    colours = np.array([LIGHT[colour_role] for colour_role in _ROLES])
    for axes, height, (run_label, gantt) in zip(panels, heights, gantts.items(), strict=True):
        line_width = max(0.8, 0.7 * 72 * height / (len(gantt.nodes) + 1))
        edges = span.days(gantt.from_us), span.days(gantt.to_us)
        axes.hlines(gantt.node, *edges, colors=[*colours[gantt.job % _COLOURS]], linewidth=line_width, capstyle="butt")
        ticks = rows_to_label(len(gantt.nodes), height)
        axes.set_yticks(ticks, labels=[gantt.nodes[number] for number in ticks], fontsize=7, parse_math=False)
        axes.set_ylim(len(gantt.nodes) - 0.4, -0.6)
        style_rows(axes, run_label)
    draw_time_axis(panels[-1], span)
    return figure


def page(gantts: Mapping[str, NodeGantt]) -> PageFigure:
    """The same for the page, where a drag enlarges nodes and time; in each column the job of the longest time shows."""
    colours = [[(index + side) / _COLOURS, f"@{role}"] for index, role in enumerate(_ROLES) for side in (0, 1)]
    scale: Trace = {"zmin": -0.5, "zmax": _COLOURS - 0.5, "colorscale": colours, "showscale": False}
    scale |= {"hovertemplate": "%{y}<br>%{text}<extra></extra>", "meta": {"colours": _COLOURS}}
    panels = []
    for label, gantt in gantts.items():
        rows = {node_name: gantt.series_of(row_number) for row_number, node_name in enumerate(gantt.nodes)}
        panels.append((label, rows, {**scale, "holders": [escape(job_name, quote=False) for job_name in gantt.jobs]}))
    return rows_page(panels, 14, 720, {"fixedrange": False, "uirevision": "rows"})


def _words(gantt: NodeGantt) -> str:
    """Numbers of nodes and jobs, and the limit of the picture."""
    job_words = f"{count(len(gantt.jobs), 'job')} held {count(gantt.n_nodes, 'node')}"
    if len(gantt.nodes) < gantt.n_nodes:
        limit_words = f"the page holds at most {MOST_NODES} nodes and {_MOST_INTERVALS:,} intervals"
        job_words += f", of which the {len(gantt.nodes):,} with the most node time are shown ({limit_words})"
    return f"{job_words}; colours repeat after eight jobs, and pointing at a bar names its job"


def _positions(column: pa.ChunkedArray) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Distinct words in order of appearance, and the position of each row's among them."""
    words_of = pc.dictionary_encode(column.cast("string").combine_chunks())
    return tuple(words_of.dictionary.to_pylist()), np.asarray(words_of.indices, dtype=np.int64)


NODES: RunFigure[NodeGantt] = RunFigure("nodes", "Nodes by job over time", node_gantt, draw, page, of_each(_words))
