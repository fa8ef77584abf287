"""Share of the time with at least a number of nodes idle, or held by jobs, at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bfreplay.report.figures.axes import legend_below, new_figure, page_powers, plain_tick, powers_of_two, style_axes
from bfreplay.report.figures.figure import NothingToShowError, PageFigure, RunFigure
from bfreplay.report.figures.marks import Mark, all_are_alike, by_run, join_text, sentence, tag
from bfreplay.report.figures.time_axis import TimeSpan
from bfreplay.report.figures.timeline import nodes_between
from bfreplay.runs.step_functions import StepParts
from bfreplay.wording import Column, ShownTable, amount, count, percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bfreplay.runs.run_result import RunResult

_TICKS = 11
_X_TITLE = "at least this many nodes at once"
_Y_TITLE = "% of the time"


@dataclass(frozen=True, slots=True, eq=False)
class AtLeast:
    """Share of the time with at least a number of nodes: an exact step function.

    Parameters
    ----------
    nodes : (L,) int64
        Every number above 0 that occurred, ascending.
    share : (L,) float64
        Share of the time with at least that many nodes; it holds for all numbers above the previous one.
    """

    nodes: NDArray[np.int64]
    share: NDArray[np.float64]

    @classmethod
    def of(cls, steps: StepParts) -> AtLeast:
        """Return the shares of a step function."""
        nodes, time_us = steps.time_at()
        share = np.cumsum(time_us[::-1])[::-1] / time_us.sum()
        return cls(nodes[nodes > 0], share[nodes > 0])

    def __call__(self, nodes: int) -> float:
        """Share of the time with at least ``nodes`` > 0."""
        place = int(np.searchsorted(self.nodes, nodes))
        return float(self.share[place]) if place < self.nodes.size else 0.0

    def is_the_same_as(self, other: AtLeast) -> bool:
        """Return whether all numbers and shares are equal."""
        return np.array_equal(self.nodes, other.nodes) and np.array_equal(self.share, other.share)

    def most_for(self, share: float) -> int:
        """Largest number of nodes for at least this share of the time."""
        lasting = np.flatnonzero(self.share >= share)
        return int(self.nodes[lasting[-1]]) if lasting.size else 0

    def steps(self) -> tuple[list[int], list[float]]:
        """Points of the curve from one node on, in percent: each holds back to the point before it."""
        nodes, share = self.nodes.tolist(), (100 * self.share).tolist()
        first = share[0] if share else 0.0
        return [1, *nodes, nodes[-1] if nodes else 1], [first, *share, 0.0]


@dataclass(frozen=True, slots=True, eq=False)
class Widths:
    """Idle and held nodes of one run, and the mean numbers of both."""

    idle: AtLeast
    held: AtLeast
    mean_idle: float
    mean_held: float


def widths(run: RunResult) -> Widths:
    """Return the shares of the window by number of idle nodes, and of nodes held by jobs.

    Raises
    ------
    NothingToShowError
        No node was idle at any time.
    """
    idle, in_use = nodes_between(run, TimeSpan.of_record(run.record))
    shares = Widths(AtLeast.of(idle), AtLeast.of(in_use), idle.series().mean_height, in_use.series().mean_height)
    if not shares.idle.nodes.size:
        raise NothingToShowError("no node was idle at any time of the window")
    return shares


def draw(widths_by_run: Mapping[str, Widths]) -> Figure:
    """Shares of the time over the number of nodes."""
    figure = new_figure(9.0, 4.2)
    axes = figure.subplots()
    for curve_words, curve_mark, shares in _curves(widths_by_run):
        counts, percents = shares.steps()
        line_look = {**curve_mark.paper_line, **({} if curve_mark.k else {"linewidth": 4.5, "alpha": 0.5})}
        axes.plot(counts, percents, drawstyle="steps-pre", label=curve_words, **line_look)
    powers_of_two(axes, _largest(widths_by_run), _TICKS)
    axes.set_ylim(-2, 102)
    style_axes(axes, _X_TITLE, _Y_TITLE, y_ticks=plain_tick)
    legend_below(figure)
    return figure


def page(widths_by_run: Mapping[str, Widths]) -> PageFigure:
    """The same for the page."""
    traces = []
    for curve_words, curve_mark, shares in _curves(widths_by_run):
        counts, percents = shares.steps()
        line_shape = {"shape": "vh", "width": 2 if curve_mark.k else 5}
        hover_text = f"{curve_words}: %{{y:.3~r}} % of the time at least %{{customdata}}"
        points = {"x": counts, "y": percents, "opacity": 1.0 if curve_mark.k else 0.5}
        node_words = [count(n_nodes, "node") for n_nodes in counts]
        traces.append(curve_mark.curve(curve_words, hover_text, line_shape, **points, customdata=node_words))
    layout = {
        "xaxis": {"title": {"text": _X_TITLE}, **page_powers(_largest(widths_by_run), _TICKS)},
        "yaxis": {"title": {"text": _Y_TITLE}, "range": [-2, 102]},
        "hovermode": "closest",
    }
    return PageFigure(traces, layout, height=380)


def words(widths_by_run: Mapping[str, Widths]) -> str:
    """Number of nodes for at least half of the time, and the share of the time with any."""
    is_one_log = _is_one_log(widths_by_run)
    sentences = []
    for run_index, (run_label, data) in enumerate(widths_by_run.items()):
        if run_index == 0 or not is_one_log:
            often = f"{_often(data.idle)} (mean {amount(data.mean_idle)})"
            opening = "At" if is_one_log else tag(run_label, "at")
            sentences.append(f"{opening} least one node was idle {percent(data.idle(1))} of the time, and {often}.")
        often = f"{_often(data.held)} (mean {amount(data.mean_held)})"
        held_words = f"jobs held a node {percent(data.held(1))} of the time, and {often}"
        sentences.append(sentence(run_label, held_words))
    return join_text(widths_by_run, sentences)


def table(widths_by_run: Mapping[str, Widths]) -> ShownTable:
    """Shares of the time with at least 1, 2, 4, ... nodes, up to the largest number."""
    largest = _largest(widths_by_run)
    numbers = sorted({*(1 << power for power in range(largest.bit_length())), largest})
    curves = list(_curves(widths_by_run))
    columns = [Column("nodes", "Nodes, at least", "count")]
    columns += [Column(curve_words.replace(": ", "."), curve_words, "percent") for curve_words, *_ in curves]
    table_rows = [[n_nodes, *(shares(n_nodes) for *_, shares in curves)] for n_nodes in numbers]
    return ShownTable("Share of the time by number of nodes at once", tuple(columns), table_rows)


def _often(shares: AtLeast) -> str:
    nodes = shares.most_for(0.5)
    return f"at least {count(nodes, 'node')} half of the time" if nodes else "none for more than half of the time"


def _curves(widths_by_run: Mapping[str, Widths]) -> Iterable[tuple[str, Mark, AtLeast]]:
    """Words, mark and numbers: idle nodes, once if all runs are on one log, then nodes held by jobs.

    Idle nodes have no dashes (0) and are drawn broad and pale, as held nodes often lie upon them.
    """
    if _is_one_log(widths_by_run):
        yield "idle", Mark("idle"), next(iter(widths_by_run.values())).idle
    for mark, label, run_widths in by_run(widths_by_run):
        if not _is_one_log(widths_by_run):
            yield tag(label, "idle"), Mark(mark.role), run_widths.idle
        yield tag(label, "held by jobs"), Mark(mark.role, mark.k + 1) if label else Mark("useful", 1), run_widths.held


def _is_one_log(widths_by_run: Mapping[str, Widths]) -> bool:
    return all_are_alike((run_widths.idle for run_widths in widths_by_run.values()), AtLeast.is_the_same_as)


def _largest(widths_by_run: Mapping[str, Widths]) -> int:
    return max(int(run_widths.idle.nodes[-1]) for run_widths in widths_by_run.values())


WIDTHS: RunFigure[Widths] = RunFigure("widths", "How many nodes are idle at once", widths, draw, page, words, table)
