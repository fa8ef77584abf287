"""A run beside its baselines: the same jobs on as many dedicated nodes, and the upper bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from bfreplay.report.figures.axes import fix_layout, new_figure, style_axes
from bfreplay.report.figures.figure import NothingToShowError, PageFigure, RunFigure
from bfreplay.report.figures.marks import ROWS, Mark, amount_of, by_run, in_lines, join_text, sentence
from bfreplay.runs.metric import BOUND_WORDS
from bfreplay.wording import Column, ShownTable, amount, duration, value_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bfreplay.runs.run_result import RunResult

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Efficiency:
    """One run beside its baselines; ``None`` for what is not known.

    Parameters
    ----------
    samples, dedicated_samples, bound_samples
        Processed by the run, by the same jobs on dedicated nodes, and the upper bound. The last two are ``None`` for a
        job source, which may make other jobs there.
    u, share
        ``samples`` over the second, and over the third.
    done_s, dedicated_done_s, earliest_s
        Seconds from the start of the window until all jobs were done, in the run and on dedicated nodes; no policy can
        finish before ``earliest_s``.
    equivalent_nodes
        Number of dedicated nodes: the mean number of idle nodes.
    bound_kind
        A key of ``BOUND_WORDS``.
    is_source
        True if the jobs come from a source.
    """

    samples: float
    dedicated_samples: float | None
    bound_samples: float | None
    u: float | None
    share: float | None
    done_s: float | None
    dedicated_done_s: float | None
    earliest_s: float | None
    equivalent_nodes: float
    bound_kind: str | None
    is_source: bool = False

    @property
    def is_done(self) -> bool:
        """True if all jobs are done in the run and its baselines, so that times are compared.

        As many samples are then processed in both, so that U is 1 by construction.
        """
        baselines = ((self.dedicated_samples, self.dedicated_done_s), (self.bound_samples, self.earliest_s))
        times_s = [time_s for samples, time_s in baselines if samples is not None or time_s is not None]
        return self.done_s is not None and bool(times_s) and all(time_s is not None for time_s in times_s)


def efficiency(run: RunResult) -> Efficiency:
    """Return U, the upper bound and the finish times from the summary.

    Raises
    ------
    NothingToShowError
        The run has neither baseline, or its job source did not finish in both.
    """
    summary, seconds = run.summary, run.record.config.after_s
    on_dedicated_nodes, bound = summary.efficiency, summary.bound
    is_source = run.record.inputs.jobs.of_source
    result = Efficiency(
        samples=summary.ledger.samples,
        dedicated_samples=None if is_source or on_dedicated_nodes is None else on_dedicated_nodes.dedicated_samples,
        bound_samples=None if bound is None else bound.samples,
        u=run.u,
        share=None if bound is None else bound.share,
        done_s=seconds(summary.last_finish_us),
        dedicated_done_s=None if on_dedicated_nodes is None else seconds(on_dedicated_nodes.dedicated_last_finish_us),
        earliest_s=None if bound is None else seconds(bound.earliest_finish_us),
        equivalent_nodes=summary.equivalent_nodes,
        bound_kind=None if bound is None else bound.kind,
        is_source=is_source,
    )
    if on_dedicated_nodes is None and bound is None:
        problem = "the run was compared neither with dedicated nodes nor with an upper bound"
        reason = summary.reason_without_baselines
        if reason is not None:
            raise NothingToShowError(f"{problem}: {reason}")
        advice = "replay it again without --no-efficiency and without --no-bound"
        raise NothingToShowError(problem, file=run.folder, fix=advice)
    if is_source and not result.is_done:
        raise NothingToShowError(
            "a job source may make other jobs on dedicated nodes, so that samples do not compare, and it did not "
            "finish in both"
        )
    if not result.samples and not result.dedicated_samples and not result.bound_samples and not result.is_done:
        raise NothingToShowError("no sample could be processed: there was no job that the idle nodes could run")
    return result


def draw(efficiencies: Mapping[str, Efficiency]) -> Figure:
    """A bar a run, and below them those of the baselines."""
    bars, title = _bars(efficiencies)
    figure = new_figure(9.0, 0.9 + 0.5 * len(bars))
    axes = figure.subplots()
    for row_number, entry in enumerate(bars):
        axes.barh(row_number, entry.value, height=0.62, **entry.mark.paper_fill)
        axes.annotate(
            entry.text + entry.more,
            (entry.value, row_number),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
        )
    axes.set_yticks(range(len(bars)), labels=[in_lines(entry.words, 34, "\n") for entry in bars])
    axes.invert_yaxis()
    axes.set_xlim(0, 1.3 * max(entry.value for entry in bars) or 1.0)
    style_axes(axes, title)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    return fix_layout(figure)


def page(efficiencies: Mapping[str, Efficiency]) -> PageFigure:
    """The same for the page."""
    bars, title = _bars(efficiencies)
    traces = [
        bar.mark.bars(
            "",
            [bar.value],
            [in_lines(bar.words, 18)],
            f"{bar.words}: {bar.text}{bar.more}",
            orientation="h",
            text=[bar.text],
            textposition="outside",
            cliponaxis=False,
            showlegend=False,
        )
        for bar in bars
    ]
    right = 1.5 * max(bar.value for bar in bars) or 1.0  # room for the numbers on a narrow page
    x = {"title": {"text": title}, "range": [0, right], "exponentformat": "power", "nticks": 4, "tickangle": 0}
    layout = {"barmode": "overlay", "xaxis": x, "yaxis": ROWS, "showlegend": False}
    return PageFigure(traces, layout, height=120 + 44 * len(bars))


def words(efficiencies: Mapping[str, Efficiency]) -> str:
    """U and the share of the bound, or the finish times; and the meaning of U."""
    sentences = [_sentence(label, result) for label, result in efficiencies.items()]
    if any(result.u is not None and not result.is_done for result in efficiencies.values()):
        sentences.append(
            "U is the samples of a run over those of the same jobs on the dedicated nodes in the same window."
        )
    return join_text(efficiencies, sentences)


def table(efficiencies: Mapping[str, Efficiency]) -> ShownTable:
    """A row a run, with its baselines."""
    columns = (
        Column("run", "Run"),
        Column("samples", "samples", "samples"),
        Column("equivalent_nodes", "dedicated nodes", "amount"),
        Column("dedicated_samples", "samples on them", "samples"),
        Column("u", "U", "number"),
        Column("bound_samples", "upper bound, samples", "samples"),
        Column("share", "share of the bound", "at-least"),
        Column("bound_kind", "kind of bound"),
        Column("done_s", "all done after", "seconds"),
        Column("dedicated_done_s", "on the dedicated nodes after", "seconds"),
        Column("earliest_s", "lower bound on that", "seconds"),
    )
    rows: list[list[object]] = []
    for label, result in efficiencies.items():
        values = asdict(result) | {"bound_kind": BOUND_WORDS.get(result.bound_kind or "", result.bound_kind)}
        rows.append([label or "this run", *(values[column.key] for column in columns[1:])])
    return ShownTable("Samples and times beside the baselines", columns, rows)


@dataclass(frozen=True, slots=True)
class _Bar:
    words: str
    value: float
    text: str
    mark: Mark
    more: str = ""


def _bars(efficiencies: Mapping[str, Efficiency]) -> tuple[list[_Bar], str]:
    """Bars, and the title of their axis: hours until all jobs were done if all were, else samples."""
    by_time = all(result.is_done for result in efficiencies.values())

    def bar(words: str, value: float, mark: Mark, addition: str = "") -> _Bar:
        if by_time:
            return _Bar(words, value / 3_600, duration(value), mark)
        return _Bar(words, value, amount(value), mark, addition)

    bars = []
    for mark, label, result in by_run(efficiencies):
        value = (result.done_s or 0.0) if by_time else result.samples
        bars.append(bar(label or "this run", value, mark if label else Mark("useful"), _shares(result)))
    baselines = (
        (Mark("dedicated", 4), "dedicated_done_s", "dedicated_samples"),
        (Mark("bound", 5), "earliest_s", "bound_samples"),
    )
    of_bound = "lower bound" if by_time else "upper bound"
    for mark, of_time, of_samples in baselines:
        values = {
            label: (getattr(result, of_time if by_time else of_samples), result.equivalent_nodes)
            for label, result in efficiencies.items()
        }
        for labels, value, nodes in _merge_equal(values):
            letters = ", ".join(label.partition(" ")[0] for label in labels)
            label_words = "" if len(labels) == len(efficiencies) else f" ({letters})"
            baseline_words = amount_of(nodes, "dedicated node") if mark.role == "dedicated" else of_bound
            bars.append(bar(f"{baseline_words}{label_words}", value, mark))
    return bars, "hours until all jobs were done" if by_time else "samples in the window"


def _merge_equal(values: Mapping[str, tuple[float | None, float]]) -> list[tuple[list[str], float, float]]:
    """Return equal baselines once: labels of their runs, value, and number of dedicated nodes."""
    merged_entries: list[tuple[list[str], float, float]] = []
    for label, (value, nodes) in values.items():
        if value is None:
            continue
        for labels, other_value, of_nodes in merged_entries:
            if abs(value - other_value) <= _ROUNDING * abs(other_value) and nodes == of_nodes:
                labels.append(label)
                break
        else:
            merged_entries.append(([label], value, nodes))
    return merged_entries


def _shares(data: Efficiency) -> str:
    u = None if data.u is None else f"U {amount(data.u)}"
    of_bound = None if data.share is None else f"{value_text(data.share, 'at-least')} of the bound"
    parts = ", ".join(filter(None, (u, of_bound)))
    return f" ({parts})" if parts else ""


def _sentence(label: str, data: Efficiency) -> str:
    nodes = amount_of(data.equivalent_nodes, "dedicated node")
    parts = []
    if data.is_done:
        parts.append(f"all jobs were done after {duration(data.done_s or 0.0)}")
        if data.dedicated_done_s is not None:
            parts.append(f"on {nodes} after {duration(data.dedicated_done_s)}")
        if data.earliest_s is not None:
            parts.append(f"no policy can finish before {duration(data.earliest_s)}")
        if data.is_source:
            parts.append("where other trials may be pruned")
        if data.u is not None:
            parts.append("U is 1 by construction, so compare the times")
    else:
        parts.append(f"{amount(data.samples)} samples")
        if data.u is not None:
            parts.append(f"U {amount(data.u)} against {nodes}")
        elif data.dedicated_samples is not None:
            parts.append(f"U is undefined, because the same jobs process nothing on {nodes}")
        if data.share is not None and data.bound_kind is not None:
            parts.append(f"at least {value_text(data.share, 'at-least')} of {BOUND_WORDS[data.bound_kind]}")
    return sentence(label, ", ".join(parts))


EFFICIENCY: RunFigure[Efficiency] = RunFigure(
    "efficiency", "Beside dedicated nodes and the upper bound", efficiency, draw, page, words, table
)
