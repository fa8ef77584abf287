"""Rescales and preemptions by cause, and their cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.report.figures.axes import (
    legend_below,
    new_figure,
    page_panels,
    page_title,
    panels_below,
    plain_tick,
    style_axes,
)
from bfreplay.report.figures.figure import NothingToShowError, PageFigure, RunFigure
from bfreplay.report.figures.marks import Mark, Trace, axis, by_run, in_lines, of_each, tag
from bfreplay.wording import Column, ShownTable, amount, count, percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bfreplay.runs.run_result import RunResult

CAUSES = (
    "nodes became idle",
    "nodes were reclaimed",
    "nodes joined and were reclaimed at once",
    "a job arrived",
    "a job ended",
    "a round ended",
    "several of these at once",
    "the window began",
)
"""What a decision followed, of which every decision has one."""
MEASURES = ("scaled_up", "scaled_down", "preempted", "rescale_cost", "preemption_cost")
"""Jobs scaled up and down by decisions, jobs that lost nodes to a reclaim, and samples charged for either."""

_WORDS = {"scaled_up": "rescales up", "scaled_down": "rescales down", "preempted": "preemptions"}
_NOUNS = {"scaled_up": ("rescale", " up"), "scaled_down": ("rescale", " down"), "preempted": ("preemption", "")}
_COSTS = {"rescale_cost": "for rescaling", "preemption_cost": "for preemption"}
_COLUMNS = {name: f"n_jobs_{name}" for name in _WORDS} | {name: f"{name}_samples" for name in _COSTS}
_RESCALING, _LOST = Mark("rescaling", 1), Mark("lost", 3)
_MARKS = dict(zip(MEASURES, (Mark("useful"), _RESCALING, _LOST, _RESCALING, _LOST), strict=True))
_COST_TITLE = "charged, % of the samples made"


@dataclass(frozen=True, slots=True, eq=False)
class Rescales:
    """Rescales and preemptions of one run by cause.

    Parameters
    ----------
    by_cause
        Array by ``CAUSES`` (8,) of each of ``MEASURES``: int64 for counts of jobs, float64 for samples.
    gross_samples
        Samples that the allocated nodes could have made: progress, rescale cost and preemption cost.
    worked_off_rescale, worked_off_preempt
        Samples of the ledger: in continuous time, charges worked off by the end of the job or of the window; under the
        published clock, all charges.
    """

    by_cause: Mapping[str, NDArray[np.int64] | NDArray[np.float64]]
    gross_samples: float
    worked_off_rescale: float
    worked_off_preempt: float

    def total(self, measure: str) -> Any:
        """Sum over all causes: number of jobs, or samples."""
        return self.by_cause[measure].sum().item()

    def share(self, measure: str) -> NDArray[np.float64]:
        """Share of the gross samples by cause; 0 without any."""
        samples = np.asarray(self.by_cause[measure], dtype=np.float64)
        return samples / self.gross_samples if self.gross_samples else np.zeros(len(CAUSES))


def rescales(run: RunResult) -> Rescales:
    """Sum the table ``decisions`` by cause.

    Causes of node events: nodes became idle, were reclaimed, or both at one instant.

    Raises
    ------
    NothingToShowError
        No job was ever given or deprived of a node.
    """
    by_cause: dict[str, Any] = {
        measure: np.zeros(len(CAUSES), dtype=np.float64 if measure in _COSTS else np.int64) for measure in MEASURES
    }
    for rows in run.batches("decisions", ("trigger", "n_joined", "n_reclaimed", *_COLUMNS.values())):
        n_joined, n_reclaimed = (np.asarray(rows[name], dtype=np.int64) for name in ("n_joined", "n_reclaimed"))
        decision_causes = _cause_of(rows["trigger"].cast("string").to_pylist(), n_joined, n_reclaimed)
        for measure, sums in by_cause.items():
            np.add.at(sums, decision_causes, np.asarray(rows[_COLUMNS[measure]]))
    if not any(by_cause[measure].any() for measure in _WORDS):
        raise NothingToShowError("no job was given a node at any time, so there were no rescales and no preemptions")
    ledger = run.summary.ledger
    return Rescales(by_cause, ledger.gross_samples, ledger.rescale_samples, ledger.preemption_samples)


def draw(by_label: Mapping[str, Rescales]) -> Figure:
    """Numbers of jobs by cause, and costs below; several runs side by side, a panel a measure."""
    causes = _causes(by_label)
    cause_names = [in_lines(CAUSES[cause], 15, "\n") for cause in causes]
    panels, is_alone = _panels(by_label), len(by_label) == 1
    figure = new_figure(9.0, 0.9 + (2.6 if is_alone else 1.75) * len(panels))
    for row, (axes, (title, bars)) in enumerate(zip(panels_below(figure, [1.0] * len(panels)), panels, strict=True)):
        for bar in bars:
            below = 0.0 if bar.below is None else bar.below[causes]
            label = bar.words if is_alone or row == 0 else None
            bar_places = np.arange(len(causes)) + bar.place
            axes.bar(bar_places, bar.heights[causes], bottom=below, width=bar.width, label=label, **bar.mark.paper_fill)
        axes.set_ylim(bottom=0.0)
        title = title.replace(", ", ",\n") if len(panels) > 2 else title
        style_axes(axes, y=title, y_ticks=plain_tick, categories="x")
        if is_alone:
            axes.legend(fontsize=9, frameon=False, loc="best")
        axes.set_xticks(range(len(causes)), labels=cause_names)
    if not is_alone:
        legend_below(figure)
    return figure


def page(by_label: Mapping[str, Rescales]) -> PageFigure:
    """The same for the page, with a row for each cause, so that their names have room on a narrow screen too."""
    causes, panels = _causes(by_label), _panels(by_label)
    labels = {"tickvals": [*range(len(causes))], "ticktext": [in_lines(CAUSES[cause], 21) for cause in causes]}
    look = {"tickfont": {"size": 12}, "showgrid": False, "zeroline": False, "range": [len(causes) - 0.45, -0.55]}
    axes: list[tuple[Trace, Trace]] = []
    traces: list[Trace] = []
    for panel_index, (panel_words, panel_bars) in enumerate(panels):
        axes.append((page_title(panel_words) | {"rangemode": "tozero", "tickformat": ","}, labels | look))
        for bar in panel_bars:
            bar_look: Trace = {"orientation": "h", "width": bar.width}
            bar_look |= {"xaxis": axis(panel_index, "x"), "yaxis": axis(panel_index)}
            if bar.below is not None:
                bar_look["base"] = bar.below[causes].tolist()
            bar_look["customdata"] = [[CAUSES[cause], bar.texts[cause]] for cause in causes]
            bar_look |= {"legendgroup": bar.words, "showlegend": len(by_label) == 1 or panel_index == 0}
            places, hover = [cause + bar.place for cause in range(len(causes))], "%{customdata[0]}<br>%{customdata[1]}"
            traces.append(bar.mark.bars(bar.words, bar.heights[causes].tolist(), places, hover, **bar_look))
    layout, height = page_panels(axes, 46 * len(causes) + 10)
    return PageFigure(traces, {"barmode": "overlay", **layout}, height=height)


def table(by_label: Mapping[str, Rescales]) -> ShownTable:
    """A row a cause that occurred, and one for all of them."""
    with_samples = len(by_label) == 1  # of several runs there are columns enough
    run_columns = [Column(measure, measure_words, "count") for measure, measure_words in _WORDS.items()]
    for measure, measure_words in _COSTS.items():
        if with_samples:
            run_columns.append(Column(f"{measure}_samples", f"charged {measure_words}, samples", "samples"))
        run_columns.append(Column(f"{measure}_share", f"charged {measure_words}, share of the samples made", "percent"))
    columns = [Column("cause", "A decision followed because")]
    columns += [column.of_run(run_label) for run_label in by_label for column in run_columns]
    rows: list[list[Any]] = []
    for cause in [*_causes(by_label), None]:
        run_cells = (cell for data in by_label.values() for cell in _cells(data, cause, with_samples=with_samples))
        rows.append(["all" if cause is None else CAUSES[cause], *run_cells])
    return ShownTable("Rescales and preemptions by cause", tuple(columns), rows)


@dataclass(frozen=True, slots=True, eq=False)
class _Bar:
    """Bars of one colour in a panel: heights and hover texts by cause; ``place`` is relative to that of the cause."""

    words: str
    heights: NDArray[Any]
    below: NDArray[Any] | None
    texts: list[str]
    place: float
    width: float
    mark: Mark


_Panel = tuple[str, list[_Bar]]
"""Its title, and its bars."""


def _cause_of(trigger: list[str], n_joined: NDArray[np.int64], n_reclaimed: NDArray[np.int64]) -> NDArray[np.int64]:
    """Position in ``CAUSES`` of the cause of each decision."""
    of_trigger = {"pool": 0, "arrival": 3, "completion": 4, "round": 5, "window_begin": 7}
    decision_causes = np.array([of_trigger.get(trigger_name, 6) for trigger_name in trigger], dtype=np.int64)
    is_pool = decision_causes == 0
    decision_causes[is_pool & (n_reclaimed > 0)] = 1
    decision_causes[is_pool & (n_reclaimed > 0) & (n_joined > 0)] = 2
    return decision_causes


def _causes(by_label: Mapping[str, Rescales]) -> list[int]:
    """Positions of causes with a rescale or preemption in some run."""
    has_any = np.any([data.by_cause[measure] != 0 for data in by_label.values() for measure in MEASURES], axis=0)
    return np.flatnonzero(has_any).tolist()


def _panels(by_label: Mapping[str, Rescales]) -> list[_Panel]:
    if len(by_label) == 1:
        (data,) = by_label.values()
        counts = [
            _Bar(words, data.by_cause[name], None, _texts("", data, name), 0.27 * (position - 1), 0.25, _MARKS[name])
            for position, (name, words) in enumerate(_WORDS.items())
        ]
        return [("jobs", counts), (_COST_TITLE, list(_cost_bars(data)))]
    bar_width = 0.8 / len(by_label)
    panels: list[_Panel] = []
    for name in (*_WORDS, None):
        panel_bars = []
        for run_index, (run_mark, run_label, data) in enumerate(by_run(by_label)):
            if name is None:
                heights: NDArray[Any] = 100 * (data.share("rescale_cost") + data.share("preemption_cost"))
                texts_of_costs = zip(*(_texts(run_label, data, cost_measure) for cost_measure in _COSTS), strict=True)
                texts = ["<br>".join(pair) for pair in texts_of_costs]
            else:
                heights, texts = data.by_cause[name], _texts(run_label, data, name)
            position = bar_width * (run_index - (len(by_label) - 1) / 2)
            panel_bars.append(_Bar(run_label, heights, None, texts, position, 0.92 * bar_width, run_mark))
        panels.append((_COST_TITLE if name is None else _WORDS[name], panel_bars))
    return panels


def _cost_bars(run_rescales: Rescales) -> Iterable[_Bar]:
    below = np.zeros(len(CAUSES))
    for measure, word in _COSTS.items():
        heights = 100 * run_rescales.share(measure)
        yield _Bar(f"charged {word}", heights, below, _texts("", run_rescales, measure), 0.0, 0.5, _MARKS[measure])
        below = below + heights


def _texts(run_label: str, run_rescales: Rescales, measure: str) -> list[str]:
    """Hover texts by cause."""
    values = run_rescales.by_cause[measure].tolist()
    if measure in _WORDS:
        event_noun, direction = _NOUNS[measure]
        return [tag(run_label, f"{count(value, event_noun)}{direction}") for value in values]
    return [
        tag(run_label, f"{amount(value)} samples charged {_COSTS[measure]} ({percent(share)} of the samples made)")
        for value, share in zip(values, run_rescales.share(measure).tolist(), strict=True)
    ]


def _cells(run_rescales: Rescales, cause: int | None, *, with_samples: bool) -> Iterator[Any]:
    """Cells of one run, at a cause or over all causes."""
    for measure in MEASURES:
        value = run_rescales.total(measure) if cause is None else run_rescales.by_cause[measure][cause].item()
        if measure in _WORDS or with_samples:
            yield value
        if measure in _COSTS:
            yield value / run_rescales.gross_samples if run_rescales.gross_samples else None


def _words(data: Rescales) -> str:
    """Numbers of rescales and preemptions, their cost, and the costliest cause."""
    preemptions = count(data.total("preempted"), "preemption")
    text = f"{count(data.total('scaled_up'), 'rescale')} up, {data.total('scaled_down'):,} down, {preemptions}"
    rescale, preempt = data.total("rescale_cost"), data.total("preemption_cost")
    total_cost = rescale + preempt
    if data.gross_samples and total_cost:
        shares = [percent(cost / data.gross_samples) for cost in (rescale, preempt)]
        text += f"; jobs were charged {shares[0]} of the samples made for rescaling and {shares[1]} for preemption"
        cost_by_cause = data.by_cause["rescale_cost"] + data.by_cause["preemption_cost"]
        main_cause = int(cost_by_cause.argmax())
        text += f", {percent(float(cost_by_cause[main_cause] / total_cost))} of that when {CAUSES[main_cause]}"
        open_share = 1 - (data.worked_off_rescale + data.worked_off_preempt) / total_cost
        if open_share > 1e-9:
            end_words = "when the job left or the window ended"
            text += f"; {percent(open_share)} of the charges had not been worked off {end_words}"
    return text


RESCALES: RunFigure[Rescales] = RunFigure(
    "rescales", "Rescales and preemptions, and what they cost", rescales, draw, page, of_each(_words), table
)
