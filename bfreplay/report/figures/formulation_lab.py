"""Pictures of a comparison of formulations: data functions and drawing functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.report.figures.axes import log_tick, new_figure, no_data, style_axes
from bfreplay.report.figures.figure import Figure
from bfreplay.report.figures.marks import LINES, MARKERS, OKABE_ITO, PALE_GREY, Trace, fill_look
from bfreplay.result_folders.lab import LabResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing


EXACT = "exact"
"""Name of the exact solver among the pairs."""

ONE_PANEL = 8
"""Up to so many lines share one panel; more get a panel for each formulation."""

_OUTCOME_FILL = {
    "proven": ("#009E73", ""),
    "feasible": ("#8FD3C0", "//"),
    "wrong": ("#B00020", "xx"),
    "crashed": ("#D55E00", "\\\\"),
    "timed_out": ("#E69F00", ".."),
    "refused": ("#8C8C8C", ""),
    "error": ("#CC79A7", "++"),
    "no_answer": ("#D5D5D5", "--"),
}
OUTCOMES = tuple(_OUTCOME_FILL)
"""In the order in which a bar stacks them."""


_LEGEND: Trace = {"loc": "outside right center", "fontsize": 9, "frameon": False, "handlelength": 3.6}

OutcomeShares = tuple[list[str], NDArray[np.float64], int]


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """One pair's line: N points ``x``, ``y`` (N,) float64, x ascending."""

    pair: str
    formulation: str
    backend: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]


def profile_curves(lab_result: LabResult, field: str = "milp") -> list[Curve]:
    """Performance profiles as steps: from ``x[i]`` on, ``y[i]`` of the decisions. Best first: largest area over log x.

    Every curve goes on to the largest ratio of the field.
    """
    step_rows = [row for row in lab_result.table("profile").to_pylist() if row["field"] == field]
    last_ratio = max((row["tau"] for row in step_rows), default=1.0)
    curves = []
    for pair_names, rows_of_pair in _by_pair(lab_result, step_rows):
        ratios, shares = np.array([(row["tau"], row["share"]) for row in [*rows_of_pair, rows_of_pair[-1]]]).T
        ratios[-1] = last_ratio
        curves.append(Curve(*pair_names, ratios, shares))
    return sorted(curves, key=lambda curve: (-_area(curve, last_ratio), curve.pair))


def time_by_size_curves(lab_result: LabResult) -> list[Curve]:
    """Median seconds of the proven answers over the geometric middle of each bin of jobs x idle nodes."""
    size_rows = [row for row in lab_result.table("time_by_size").to_pylist() if row["total_median_s"] is not None]
    curves = []
    for pair_names, rows_of_pair in _by_pair(lab_result, size_rows):
        points = [(np.sqrt(row["size_from"] * row["size_to"]), row["total_median_s"]) for row in rows_of_pair]
        curves.append(Curve(*pair_names, *np.array(points, dtype=np.float64).T))
    return curves


def outcome_shares(lab: LabResult) -> OutcomeShares:
    """Pairs (P), most proven first, ``(P, len(OUTCOMES))`` shares of their answers, and the number of decisions."""
    rows = sorted(lab.table("summary").to_pylist(), key=lambda row: (-row["proven"], -row["feasible"], row["sgm_s"]))
    counts = np.array([[row[outcome] for outcome in OUTCOMES] for row in rows], dtype=np.float64)
    return [row["pair"] for row in rows], counts / counts.sum(axis=1, keepdims=True), lab.record.sampling.taken


def draw_profile(curves_and_count: tuple[list[Curve], int]) -> Drawing:
    """Draw ``profile_curves``: the share of decisions within tau times the fastest pair's time, log tau from 1."""
    curves, n_decisions = curves_and_count
    right = max([2.0, *(float(curve.x[-1]) for curve in curves)]) * 1.1

    def draw(axes: Axes, curve: Curve, style: Trace) -> None:
        ratios, markers = np.append(curve.x[:-1], right), (0, max(1, len(curve.x) // 8))
        axes.plot(ratios, curve.y, drawstyle="steps-post", markevery=markers, **style)

    figure, panels = _lines(curves, draw, f"Performance profile, {n_decisions} decisions")
    for axes in panels:
        axes.set_xscale("log")
        axes.set_xlim(1.0, right)
        axes.set_ylim(-0.02, 1.02)
        axes.xaxis.set_major_formatter(log_tick)
        style_axes(axes, y_ticks="{x:.0%}")
    figure.supxlabel("time relative to the fastest proof of that decision (1 = fastest)", fontsize=10)
    figure.supylabel("decisions proven within that", fontsize=10)
    return figure


def draw_time_by_size(curves: list[Curve]) -> Drawing:
    """Draw ``time_by_size_curves``, both axes logarithmic."""

    def draw(axes: Axes, curve: Curve, style: Trace) -> None:
        axes.plot(curve.x, curve.y * 1e3, **style)

    figure, panels = _lines(curves, draw, "Median time of a proven decision, by size")
    for axes in panels:
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.xaxis.set_major_formatter(log_tick)
        style_axes(axes, y_ticks=log_tick)
    figure.supxlabel("jobs x idle nodes (bins of powers of two)", fontsize=10)
    figure.supylabel("build and solve, ms", fontsize=10)
    return figure


def draw_outcomes(outcome_shares_of_pairs: OutcomeShares) -> Drawing:
    """Draw ``outcome_shares``: one stacked bar a pair; only outcomes that occur are in the legend."""
    pairs, shares, n_decisions = outcome_shares_of_pairs
    figure = new_figure(9.0, 1.6 + 0.27 * len(pairs))
    axes = figure.add_subplot()
    bar_places = np.arange(len(pairs))
    left_edges = np.zeros(len(pairs))
    for outcome, outcome_share in zip(OUTCOMES, shares.T, strict=True):
        if outcome_share.any():
            outcome_words = outcome.replace("_", " ").replace("timed out", "killed at the deadline")
            bar_look = fill_look(*_OUTCOME_FILL[outcome], linewidth=0.5)
            axes.barh(bar_places, outcome_share, left=left_edges, height=0.78, label=outcome_words, **bar_look)
            left_edges = left_edges + outcome_share
    axes.set_yticks(bar_places, labels=list(pairs), fontsize=9)
    axes.set_ylim(len(pairs) - 0.4, -0.6)
    axes.set_xlim(0.0, 1.0)
    axes.xaxis.set_major_formatter("{x:.0%}")
    axes.set_xlabel(f"share of {n_decisions} decisions", fontsize=10)
    axes.set_title("What became of the answers", fontsize=11, loc="left")
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    figure.legend(loc="outside right center", fontsize=9, frameon=False)
    return figure


def looks(formulations: Sequence[str], backends: Sequence[str]) -> dict[tuple[str, str], Trace]:
    """Matplotlib's look of every (formulation, back end): the latter gives colour and dashes, the former the marker."""
    return {
        (formulation, backend): {
            "color": OKABE_ITO[style_index % len(OKABE_ITO)],
            "linestyle": LINES[style_index % len(LINES)],
            "linewidth": 1.6,
            "marker": MARKERS[colour_index % len(MARKERS)],
            "markersize": 5,
            "zorder": 2,
        }
        for colour_index, formulation in enumerate(formulations)
        for style_index, backend in enumerate(backends)
    }


def _by_pair(lab_result: LabResult, table_rows: Sequence[Trace]) -> Iterator[tuple[tuple[str, str, str], list[Trace]]]:
    """Pair, formulation and back end, and their rows, where there are some."""
    for pair_names in lab_result.table("summary").select(["pair", "formulation", "backend"]).to_pylist():
        of_pair = [table_row for table_row in table_rows if table_row["pair"] == pair_names["pair"]]
        if of_pair:
            yield (pair_names["pair"], pair_names["formulation"], pair_names["backend"]), of_pair


def _area(curve: Curve, last_ratio: float) -> float:
    """Under the steps, over log x from 1 to a little beyond the last ratio, so that shares there count as well."""
    log_edges = np.log(np.append(curve.x[:-1], last_ratio * 1.1))
    return float((np.diff(log_edges) * curve.y[:-1]).sum())


def _lines(curves: Sequence[Curve], draw_curve: Any, figure_title: str) -> tuple[Drawing, list[Axes]]:
    """One panel with a legend of pairs; with many pairs a panel a formulation, the other pairs in grey behind."""
    from matplotlib.lines import Line2D

    pairs = [curve for curve in curves if curve.pair != EXACT]
    formulations = sorted({curve.formulation for curve in pairs})
    look = looks(formulations, sorted({curve.backend for curve in pairs}))
    if len(pairs) <= ONE_PANEL:
        figure = new_figure(9.0, 4.8)
        axes = figure.add_subplot()
        for curve in curves:
            draw_curve(axes, curve, _style(curve, look) | {"label": curve.pair})
        if curves:
            figure.legend(**_LEGEND)
        else:
            no_data(axes, "no pair proved anything")
        figure.suptitle(figure_title, fontsize=11)
        return figure, [axes]
    n_columns = min(3, len(formulations))
    n_rows = -(-len(formulations) // n_columns)
    figure = new_figure(3.6 * n_columns + 1.6, 2.7 * n_rows + 0.9)
    panels = figure.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False).ravel().tolist()
    for axes, formulation in zip(panels, formulations, strict=False):
        for curve in pairs:
            if curve.formulation != formulation:
                draw_curve(axes, curve, {"color": PALE_GREY, "linewidth": 0.8, "zorder": 1})
        for curve in curves:
            if curve.formulation == formulation or curve.pair == EXACT:
                draw_curve(axes, curve, _style(curve, look) | {"label": curve.backend})
        axes.set_title(formulation, fontsize=10, loc="left")
    for axes in panels[len(formulations) :]:
        axes.set_axis_off()
    for axes in panels[len(formulations) - n_columns : len(formulations)]:
        axes.tick_params(labelbottom=True)
    curve_of_backend = {curve.backend: curve for curve in curves}
    backends = sorted(curve_of_backend, key=lambda backend: (backend != EXACT, backend))
    # without markers, which belong to formulations
    handles = [Line2D([], [], **(_style(curve_of_backend[backend], look) | {"marker": ""})) for backend in backends]
    figure.legend(handles, backends, title="back end", alignment="left", **_LEGEND)
    figure.suptitle(f"{figure_title} (grey: the other formulations)", fontsize=11)
    return figure, panels[: len(formulations)]


def _style(curve: Curve, look_of_pair: dict[tuple[str, str], Trace]) -> Trace:
    if curve.pair == EXACT:
        return {"color": "black", "linestyle": "-", "linewidth": 2.0, "marker": "", "zorder": 3}
    return look_of_pair[curve.formulation, curve.backend]


PROFILE: Figure[tuple[list[Curve], int]] = Figure(
    "performance-profile",
    "Performance profile",
    lambda lab: (profile_curves(lab), lab.record.sampling.taken),
    draw_profile,
)
TIME_BY_SIZE: Figure[list[Curve]] = Figure(
    "time-by-size", "Median time of a proven decision, by size", time_by_size_curves, draw_time_by_size
)
OUTCOME_BARS: Figure[OutcomeShares] = Figure("outcomes", "What became of the answers", outcome_shares, draw_outcomes)
