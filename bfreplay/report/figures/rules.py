"""The picture of ``bfreplay compare rules``: shares of the bound, and where the idle node-hours went."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bfreplay.report.figures.axes import fix_layout, new_figure, style_axes
from bfreplay.report.figures.figure import Figure, PageFigure
from bfreplay.report.figures.marks import ROWS, Mark, in_lines
from bfreplay.report.figures.node_hours import NodeHours, draw_bars
from bfreplay.result_folders.rules import RuleRun, RulesRecord, best_of
from bfreplay.wording import percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_DEFAULTS, _BEST, _OTHERS = "at its defaults", "best setting tried", "knows curves and costs"
_MARKS = {_DEFAULTS: Mark("idle-range"), _BEST: Mark("useful"), _OTHERS: Mark("bound")}
_AXIS = "% of the upper bound with free rescaling"
ShownRuns = Mapping[str, tuple[str, RuleRun]]
"""Label of a row to what it is, a key of ``_MARKS``, and its run."""


def shown_runs(record: RulesRecord) -> ShownRuns:
    """Return the rows from the top: every rule at its defaults and at its best, then the policies to compare with."""
    rows: dict[str, tuple[str, RuleRun]] = {}
    for runs in record.by_rule.values():
        for kind, run in ((_DEFAULTS, runs[0]), (_BEST, best_of(runs))):
            rows.setdefault(run.policy.removeprefix("products."), (kind, run))
    return rows | {run.policy: (_OTHERS, run) for run in record.yardsticks}


def hours_by_label(runs: ShownRuns, width: int = 22, separator: str = "<br>") -> dict[str, NodeHours]:
    """Return the idle node-hours of each row by label of the ledger; with its own label broken as by ``in_lines``."""
    return {
        in_lines(label, width, separator): NodeHours(run.node_us["idle_node_us"], run.node_us)
        for label, (_, run) in runs.items()
    }


def draw(runs: ShownRuns) -> Drawing:
    """One row a run: its share of the bound at left, its idle node-hours at right."""
    figure = new_figure(12.5, 1.8 + 0.4 * len(runs))
    left, right = figure.subplots(1, 2, width_ratios=[1.0, 1.25], sharey=True)
    draw_bars(right, hours_by_label(runs, 34, "\n"))
    for kind, mark in _MARKS.items():
        rows = [(row, 100 * run.share) for row, (of_kind, run) in enumerate(runs.values()) if of_kind == kind]
        if rows:
            bars = left.barh(*zip(*rows, strict=True), height=0.62, label=kind, **mark.paper_fill)
            left.bar_label(bars, [percent(share / 100) for _, share in rows], padding=3, fontsize=9)
    left.set_xlim(0, 100)
    style_axes(left, _AXIS, categories="y")
    for axes, n_columns in ((left, 1), (right, 2)):
        axes.legend(fontsize=8.5, frameon=False, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=n_columns)
    return fix_layout(figure)


def page(runs: ShownRuns) -> PageFigure:
    """The shares for the page."""
    traces = []
    for kind, mark in _MARKS.items():
        rows = {in_lines(label, 22): 100 * run.share for label, (of_kind, run) in runs.items() if of_kind == kind}
        hover = "%{y}: %{x:.3~r} % of the bound"
        traces.append(mark.bars(kind, [*rows.values()], [*rows], hover, orientation="h"))
    rows_axis = {**ROWS, "categoryorder": "array", "categoryarray": [*hours_by_label(runs)]}
    layout = {"barmode": "overlay", "xaxis": {"title": {"text": _AXIS}, "range": [0, 100]}, "yaxis": rows_axis}
    return PageFigure(traces, layout, height=190 + 34 * len(runs))


RULES = Figure("rules", "Shares of the upper bound", shown_runs, draw, page)
