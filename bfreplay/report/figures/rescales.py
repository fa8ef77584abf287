"""Rescales and preemptions by cause, and their cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.report.figures.axes import fix_layout, legend_below, new_figure, panels_below, plain_tick, style_axes
from bfreplay.report.figures.figure import NothingToShowError, PageFigure, RunFigure
from bfreplay.report.figures.marks import Mark, Trace, axis, by_run, in_lines, layout_axis, of_each, tag
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

_COLUMNS = {
    "scaled_up": "n_jobs_scaled_up",
    "scaled_down": "n_jobs_scaled_down",
    "preempted": "n_jobs_preempted",
    "rescale_cost": "rescale_cost_samples",
    "preemption_cost": "preemption_cost_samples",
}
_WORDS = {"scaled_up": "rescales up", "scaled_down": "rescales down", "preempted": "preemptions"}
_NOUNS = {"scaled_up": ("rescale", " up"), "scaled_down": ("rescale", " down"), "preempted": ("preemption", "")}
_COSTS = {"rescale_cost": "for rescaling", "preemption_cost": "for preemption"}
_MARKS = {
    "scaled_up": Mark("useful"),
    "scaled_down": Mark("rescaling", 1),
    "preempted": Mark("lost", 3),
    "rescale_cost": Mark("rescaling", 1),
    "preemption_cost": Mark("lost", 3),
}
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
        cause = _cause_of(
            rows["trigger"].cast("string").to_pylist(),
            np.asarray(rows["n_joined"], dtype=np.int64),
            np.asarray(rows["n_reclaimed"], dtype=np.int64),
        )
        for measure, sums in by_cause.items():
            np.add.at(sums, cause, np.asarray(rows[_COLUMNS[measure]]))
    if not any(by_cause[measure].any() for measure in _WORDS):
        raise NothingToShowError("no job was given a node at any time, so there were no rescales and no preemptions")
    ledger = run.summary.ledger
    return Rescales(by_cause, ledger.gross_samples, ledger.rescale_samples, ledger.preemption_samples)


def draw(by_label: Mapping[str, Rescales]) -> Figure:
    """Numbers of jobs by cause, and costs below; several runs side by side, a panel a measure."""
    causes = _causes(by_label)
    names = [in_lines(CAUSES[cause], 15, "\n") for cause in causes]
    panels = _panels(by_label)
    figure = new_figure(9.0, 0.9 + (2.6 if len(by_label) == 1 else 1.75) * len(panels))
    for row, (axes, (title, bars)) in enumerate(zip(panels_below(figure, [1.0] * len(panels)), panels, strict=True)):
        for bar in bars:
            below = 0.0 if bar.below is None else bar.below[causes]
            label = bar.words if len(by_label) == 1 or row == 0 else None
            places = np.arange(len(causes)) + bar.place
            axes.bar(places, bar.heights[causes], bottom=below, width=bar.width, label=label, **bar.mark.paper_fill)
        axes.set_ylim(bottom=0.0)
        style_axes(axes, y=title.replace(", ", ",\n") if len(panels) > 2 else title, y_ticks=plain_tick)
        axes.grid(visible=False, axis="x")
        axes.tick_params(axis="x", length=0)
        if len(by_label) == 1:
            axes.legend(fontsize=9, frameon=False, loc="best")
        axes.set_xticks(range(len(causes)), labels=names)
    if len(by_label) > 1:
        legend_below(figure)
    return fix_layout(figure)


def page(by_label: Mapping[str, Rescales]) -> PageFigure:
    """The same for the page."""
    causes = _causes(by_label)
    names = [in_lines(CAUSES[cause], 9) for cause in causes]
    panels = _panels(by_label)
    height, gap_height = 1 / len(panels), 0.05
    layout: Trace = {
        "barmode": "overlay",
        "xaxis": {
            "tickvals": list(range(len(causes))),
            "ticktext": names,
            "tickangle": 0,
            "tickfont": {"size": 12},
            "range": [-0.55, len(causes) - 0.45],
            "showgrid": False,
            "anchor": axis(len(panels) - 1),
            "zeroline": False,
        },
    }
    traces: list[Trace] = []
    for row, (title, bars) in enumerate(panels):
        upper_end = 1 - row * height
        domain = [max(0.0, upper_end - height + gap_height * (row < len(panels) - 1)), upper_end]
        layout[layout_axis(row)] = {
            "title": {"text": in_lines(title, 16)},
            "domain": domain,
            "rangemode": "tozero",
            "tickformat": ",",
        }
        for bar in bars:
            base = {} if bar.below is None else {"base": bar.below[causes].tolist()}
            traces.append(
                bar.mark.bars(
                    bar.words,
                    [cause + bar.place for cause in range(len(causes))],
                    bar.heights[causes].tolist(),
                    "%{customdata[0]}<br>%{customdata[1]}",
                    width=bar.width,
                    yaxis=axis(row),
                    **base,
                    customdata=[[CAUSES[cause], bar.texts[cause]] for cause in causes],
                    legendgroup=bar.words,
                    showlegend=len(by_label) == 1 or row == 0,
                )
            )
    return PageFigure(traces, layout, height=520 if len(panels) == 2 else 720)


def table(by_label: Mapping[str, Rescales]) -> ShownTable:
    """A row a cause that occurred, and one for all of them."""
    with_samples = len(by_label) == 1  # of several runs there are columns enough
    of_run = [Column(name, word, "count") for name, word in _WORDS.items()]
    for name, word in _COSTS.items():
        if with_samples:
            of_run.append(Column(f"{name}_samples", f"charged {word}, samples", "samples"))
        of_run.append(Column(f"{name}_share", f"charged {word}, share of the samples made", "percent"))
    columns = [Column("cause", "A decision followed because")]
    columns += [column.of_run(label) for label in by_label for column in of_run]
    rows: list[list[Any]] = []
    for cause in [*_causes(by_label), None]:
        cells = (cell for data in by_label.values() for cell in _cells(data, cause, with_samples=with_samples))
        rows.append(["all" if cause is None else CAUSES[cause], *cells])
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
    cause = np.array([of_trigger.get(word, 6) for word in trigger], dtype=np.int64)
    is_pool = cause == 0
    cause[is_pool & (n_reclaimed > 0)] = 1
    cause[is_pool & (n_reclaimed > 0) & (n_joined > 0)] = 2
    return cause


def _causes(by_label: Mapping[str, Rescales]) -> list[int]:
    """Positions of causes with a rescale or preemption in some run."""
    return [
        number
        for number in range(len(CAUSES))
        if any(data.by_cause[name][number] for data in by_label.values() for name in MEASURES)
    ]


def _panels(by_label: Mapping[str, Rescales]) -> list[_Panel]:
    if len(by_label) == 1:
        (data,) = by_label.values()
        counts = [
            _Bar(
                _WORDS[name],
                data.by_cause[name],
                None,
                _texts("", data, name),
                0.27 * (run_index - 1),
                0.25,
                _MARKS[name],
            )
            for run_index, name in enumerate(_WORDS)
        ]
        return [("jobs", counts), (_COST_TITLE, list(_cost_bars(data)))]
    width = 0.8 / len(by_label)
    panels: list[_Panel] = []
    for name in (*_WORDS, None):
        bars = []
        for run_index, (mark, label, data) in enumerate(by_run(by_label)):
            if name is None:
                heights: NDArray[Any] = 100 * (data.share("rescale_cost") + data.share("preemption_cost"))
                texts_of_costs = zip(*(_texts(label, data, cost) for cost in _COSTS), strict=True)
                texts = ["<br>".join(pair) for pair in texts_of_costs]
            else:
                heights, texts = data.by_cause[name], _texts(label, data, name)
            place = width * (run_index - (len(by_label) - 1) / 2)
            bars.append(_Bar(label, heights, None, texts, place, 0.92 * width, mark))
        panels.append((_COST_TITLE if name is None else _WORDS[name], bars))
    return panels


def _cost_bars(data: Rescales) -> Iterable[_Bar]:
    below = np.zeros(len(CAUSES))
    for name, word in _COSTS.items():
        heights = 100 * data.share(name)
        yield _Bar(f"charged {word}", heights, below, _texts("", data, name), 0.0, 0.5, _MARKS[name])
        below = below + heights


def _texts(label: str, data: Rescales, measure: str) -> list[str]:
    """Hover texts by cause."""
    values = data.by_cause[measure].tolist()
    if measure in _WORDS:
        noun, direction = _NOUNS[measure]
        return [tag(label, f"{count(value, noun)}{direction}") for value in values]
    return [
        tag(label, f"{amount(value)} samples charged {_COSTS[measure]} ({percent(share)} of the samples made)")
        for value, share in zip(values, data.share(measure).tolist(), strict=True)
    ]


def _cells(data: Rescales, cause: int | None, *, with_samples: bool) -> Iterator[Any]:
    """Cells of one run, at a cause or over all causes."""
    for name in MEASURES:
        value = data.total(name) if cause is None else data.by_cause[name][cause].item()
        if name in _WORDS or with_samples:
            yield value
        if name in _COSTS:
            yield value / data.gross_samples if data.gross_samples else None


def _words(data: Rescales) -> str:
    """Numbers of rescales and preemptions, their cost, and the costliest cause."""
    preemptions = count(data.total("preempted"), "preemption")
    text = f"{count(data.total('scaled_up'), 'rescale')} up, {data.total('scaled_down'):,} down, {preemptions}"
    rescale, preempt = data.total("rescale_cost"), data.total("preemption_cost")
    total_cost = rescale + preempt
    if data.gross_samples and total_cost:
        shares = [percent(cost / data.gross_samples) for cost in (rescale, preempt)]
        text += f"; jobs were charged {shares[0]} of the samples made for rescaling and {shares[1]} for preemption"
        cost = data.by_cause["rescale_cost"] + data.by_cause["preemption_cost"]
        main_cause = int(cost.argmax())
        text += f", {percent(float(cost[main_cause] / total_cost))} of that when {CAUSES[main_cause]}"
        open_share = 1 - (data.worked_off_rescale + data.worked_off_preempt) / total_cost
        if open_share > 1e-9:
            when = "when the job left or the window ended"
            text += f"; {percent(open_share)} of the charges had not been worked off {when}"
    return text


RESCALES: RunFigure[Rescales] = RunFigure(
    "rescales", "Rescales and preemptions, and what they cost", rescales, draw, page, of_each(_words), table
)
