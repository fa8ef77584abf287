"""How many nodes were idle at once, and how many of them jobs held: for which share of the time at least so many."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bfreplay.report.figures.axes import (
    dress,
    legend_below,
    new_figure,
    plain_tick,
    powers_of_two,
    powers_up_to,
    settled,
)
from bfreplay.report.figures.figure import NothingToShowError, PageFigure, RunFigure
from bfreplay.report.figures.marks import Mark, Trace, all_are_alike, line_on_page, named, numbered, said_of, told
from bfreplay.report.figures.over_time import StepSeries
from bfreplay.report.figures.timeline import timeline
from bfreplay.report.shown_values import Column, ShownTable
from bfreplay.wording import amount, count, percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bfreplay.runs.run_result import RunResult

_TICKS = 11


@dataclass(frozen=True, slots=True, eq=False)
class AtLeast:
    """For which share of the time a number of nodes is at least so large: an exact step function.

    Parameters
    ----------
    nodes : (L,) int64
        Every number above 0 that there was, ascending.
    share : (L,) float64
        Of the time with at least so many; so is it for all numbers above the one before.
    """

    nodes: NDArray[np.int64]
    share: NDArray[np.float64]

    @classmethod
    def of(cls, series: StepSeries) -> AtLeast:
        """Of a step function that is exact."""
        nodes, place = np.unique(series.mean.astype(np.int64), return_inverse=True)
        time_us = np.zeros(nodes.size, dtype=np.int64)
        np.add.at(time_us, place, np.diff(series.edge_us))
        share = np.cumsum(time_us[::-1])[::-1] / time_us.sum()
        return cls(nodes[nodes > 0], share[nodes > 0])

    def __call__(self, nodes: int) -> float:
        """Share of the time with at least ``nodes`` > 0."""
        place = int(np.searchsorted(self.nodes, nodes))
        return float(self.share[place]) if place < self.nodes.size else 0.0

    def is_the_same_as(self, other: AtLeast) -> bool:
        """Whether all numbers and shares are."""
        return np.array_equal(self.nodes, other.nodes) and np.array_equal(self.share, other.share)

    def most_for(self, share: float) -> int:
        """The largest number of nodes that there were for at least this share of the time."""
        often = np.flatnonzero(self.share >= share)
        return int(self.nodes[often[-1]]) if often.size else 0

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
    """How many nodes were idle, and held by jobs, for which share of the window.

    Raises
    ------
    NothingToShowError
        The run was made before the number of idle nodes was recorded, or no node was idle at any time.
    """
    if not run.has_table("pool"):
        raise NothingToShowError(
            "the run was made before the number of idle nodes was recorded at all times",
            file=run.folder,
            fix="replay it again with this version of bfreplay",
        )
    nodes = timeline(run)
    if not nodes.idle.most.any():
        raise NothingToShowError("no node was idle at any time of the window")
    return Widths(AtLeast.of(nodes.idle), AtLeast.of(nodes.held), nodes.idle.mean_height, nodes.held.mean_height)


def draw(found: Mapping[str, Widths]) -> Figure:
    """Shares of the time over the number of nodes."""
    figure = new_figure(9.0, 4.2)
    axes = figure.subplots()
    for words, mark, mine in _curves(found):
        x, y = mine.steps()
        look = {**mark.paper_line, **({} if mark.k else {"linewidth": 4.5, "alpha": 0.5})}
        axes.plot(x, y, drawstyle="steps-pre", label=words, **look)
    powers_of_two(axes, _largest(found), _TICKS)
    axes.set_ylim(-2, 102)
    dress(axes, "nodes at once", "% of the time with at least so many", y_ticks=plain_tick)
    legend_below(figure)
    return settled(figure)


def page(found: Mapping[str, Widths]) -> PageFigure:
    """The same for the page."""
    traces = []
    for words, mark, mine in _curves(found):
        x, y = mine.steps()
        line = {**mark.page_line, "shape": "vh", "width": 2 if mark.k else 5}
        hover = f"{words}: %{{y:.3~r}} % of the time at least %{{customdata}}"
        nodes = [count(n, "node") for n in x]
        traces.append(line_on_page(words, x, y, hover, line=line, opacity=1.0 if mark.k else 0.5, customdata=nodes))
    powers = powers_up_to(_largest(found), _TICKS)
    layout: Trace = {
        "xaxis": {
            "type": "log",
            "title": {"text": "nodes at once"},
            "range": [float(np.log10(0.85)), float(np.log10(max(2, _largest(found)) * 1.18))],
            "tickvals": powers,
            "ticktext": [f"{n:,}" for n in powers],
        },
        "yaxis": {"title": {"text": "% of the time with at least so many"}, "range": [-2, 102]},
        "hovermode": "closest",
    }
    return PageFigure(traces, layout, height=380)


def words(found: Mapping[str, Widths]) -> str:
    """How many nodes there were at least half of the time, and whether there was any."""
    is_one_log = _is_one_log(found)
    sentences = []
    for k, (label, mine) in enumerate(found.items()):
        if k == 0 or not is_one_log:
            often = f"{_often(mine.idle)} (mean {amount(mine.mean_idle)})"
            at = "At" if is_one_log else named(label, "at")
            sentences.append(f"{at} least one node was idle {percent(mine.idle(1))} of the time, and {often}.")
        often = f"{_often(mine.held)} (mean {amount(mine.mean_held)})"
        text = f"jobs held a node {percent(mine.held(1))} of the time, and {often}"
        sentences.append(told(label, text))
    return said_of(found, sentences)


def table(found: Mapping[str, Widths]) -> ShownTable:
    """Shares of the time with at least 1, 2, 4, ... nodes, up to the largest number there was."""
    largest = _largest(found)
    numbers = sorted({*(1 << k for k in range(largest.bit_length())), largest})
    curves = list(_curves(found))
    columns = [Column("nodes", "At least so many nodes", "count")]
    columns += [Column(words.replace(": ", "."), words, "percent") for words, *_ in curves]
    rows = [[n, *(mine(n) for *_, mine in curves)] for n in numbers]
    return ShownTable("Share of the time with at least so many nodes at once", tuple(columns), rows)


def _often(mine: AtLeast) -> str:
    nodes = mine.most_for(0.5)
    return f"at least {count(nodes, 'node')} half of the time" if nodes else "none for more than half of the time"


def _curves(found: Mapping[str, Widths]) -> Iterable[tuple[str, Mark, AtLeast]]:
    """Words, mark and numbers: what was idle once where all runs are of one log, then what was held.

    What was idle has no dashes (0) and is drawn broad and pale: what was held often lies upon it.
    """
    if _is_one_log(found):
        yield "idle", Mark("idle"), next(iter(found.values())).idle
    for mark, label, mine in numbered(found):
        if not _is_one_log(found):
            yield named(label, "idle"), Mark(mark.role), mine.idle
        yield named(label, "held by jobs"), Mark(mark.role, mark.k + 1) if label else Mark("useful", 1), mine.held


def _is_one_log(found: Mapping[str, Widths]) -> bool:
    return all_are_alike((mine.idle for mine in found.values()), AtLeast.is_the_same_as)


def _largest(found: Mapping[str, Widths]) -> int:
    return max(int(mine.idle.nodes[-1]) for mine in found.values())


WIDTHS: RunFigure[Widths] = RunFigure("widths", "How many nodes are idle at once", widths, draw, page, words, table)
