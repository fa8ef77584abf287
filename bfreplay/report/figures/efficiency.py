"""A run beside its baselines: the same jobs on as many dedicated nodes, and the upper bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, NamedTuple

from bfreplay.report.figures.axes import new_figure, style_axes
from bfreplay.report.figures.figure import NothingToShowError, PageFigure, RunFigure
from bfreplay.report.figures.marks import ROWS, Mark, Trace, amount_of, by_run, in_lines, join_text, sentence
from bfreplay.runs.metric import BOUND_WORDS, why_u_is_undefined
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
    may_differ
        True if other trials may be pruned on dedicated nodes.
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
    may_differ: bool = False

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
        may_differ=is_source and not run.record.inputs.jobs.is_recorded,
    )
    if on_dedicated_nodes is None and bound is None:
        problem = "the run was compared neither with dedicated nodes nor with an upper bound"
        if summary.reason_without_baselines is not None:
            raise NothingToShowError(f"{problem}: {summary.reason_without_baselines}")
        advice = "replay it again without --no-efficiency and without --no-bound"
        raise NothingToShowError(problem, file=run.folder, fix=advice)
    if is_source and not result.is_done:
        problem = "a job source may make other jobs on dedicated nodes, so that samples do not compare"
        raise NothingToShowError(f"{problem}, and it did not finish in both")
    if not result.samples and not result.dedicated_samples and not result.bound_samples and not result.is_done:
        raise NothingToShowError("no sample could be processed: there was no job that the idle nodes could run")
    return result


def draw(efficiencies: Mapping[str, Efficiency]) -> Figure:
    """A bar a run, and below them those of the baselines."""
    bars, axis_title = _bars(efficiencies)
    figure = new_figure(9.0, 0.9 + 0.5 * len(bars))
    axes = figure.subplots()
    text_look: Trace = {"xytext": (5, 0), "textcoords": "offset points", "va": "center", "fontsize": 9}
    for row_number, entry in enumerate(bars):
        axes.barh(row_number, entry.value, height=0.62, **entry.mark.paper_fill)
        axes.annotate(entry.text + entry.more, (entry.value, row_number), **text_look)
    axes.set_yticks(range(len(bars)), labels=[in_lines(entry.words, 34, "\n") for entry in bars])
    axes.invert_yaxis()
    axes.set_xlim(0, 1.3 * max(entry.value for entry in bars) or 1.0)
    style_axes(axes, axis_title, categories="y")
    return figure


def page(efficiencies: Mapping[str, Efficiency]) -> PageFigure:
    """The same for the page."""
    bars, axis_title = _bars(efficiencies)
    traces = []
    for bar in bars:
        hover = f"{bar.words}: {bar.text}{bar.more}"
        bar_look: Trace = {"orientation": "h", "text": [bar.text], "textposition": "outside"}
        bar_look |= {"cliponaxis": False, "showlegend": False}
        traces.append(bar.mark.bars("", [bar.value], [in_lines(bar.words, 18)], hover, **bar_look))
    right_end = 1.5 * max(bar.value for bar in bars) or 1.0  # room for the numbers on a narrow page
    x = {"title": {"text": axis_title}, "range": [0, right_end], "exponentformat": "power", "nticks": 4, "tickangle": 0}
    layout = {"barmode": "overlay", "xaxis": x, "yaxis": ROWS, "showlegend": False}
    return PageFigure(traces, layout, height=120 + 44 * len(bars))


def words(efficiencies: Mapping[str, Efficiency]) -> str:
    """U and the share of the bound, or the finish times; and the meaning of U."""
    sentences = [_sentence(label, result) for label, result in efficiencies.items()]
    if any(result.u is not None and not result.is_done for result in efficiencies.values()):
        meaning = "the samples of a run over those of the same jobs on the dedicated nodes in the same window"
        sentences.append(f"U is {meaning}.")
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
    for run_label, result in efficiencies.items():
        run_values = asdict(result) | {"bound_kind": BOUND_WORDS.get(result.bound_kind or "", result.bound_kind)}
        rows.append([run_label or "this run", *(run_values[column.key] for column in columns[1:])])
    return ShownTable("Samples and times beside the baselines", columns, rows)


class _Bar(NamedTuple):
    words: str
    value: float
    text: str
    mark: Mark
    more: str = ""


def _bars(efficiencies: Mapping[str, Efficiency]) -> tuple[list[_Bar], str]:
    """Bars, and the title of their axis: hours until all jobs were done if all were, else samples."""
    by_time = all(result.is_done for result in efficiencies.values())

    def bar(words: str, bar_value: float, bar_mark: Mark, addition: str = "") -> _Bar:
        if by_time:
            return _Bar(words, bar_value / 3_600, duration(bar_value), bar_mark)
        return _Bar(words, bar_value, amount(bar_value), bar_mark, addition)

    bars = []
    for bar_mark, run_label, result in by_run(efficiencies):
        bar_value = (result.done_s or 0.0) if by_time else result.samples
        bars.append(bar(run_label or "this run", bar_value, bar_mark if run_label else Mark("useful"), _shares(result)))
    columns = ("dedicated_done_s", "earliest_s") if by_time else ("dedicated_samples", "bound_samples")
    of_bound = "lower bound" if by_time else "upper bound"
    for bar_mark, column in zip((Mark("dedicated", 4), Mark("bound", 5)), columns, strict=True):
        for labels, bar_value, nodes in _merge_equal(efficiencies, column):
            letters = ", ".join(run_label.partition(" ")[0] for run_label in labels)
            label_words = "" if len(labels) == len(efficiencies) else f" ({letters})"
            baseline_words = amount_of(nodes, "dedicated node") if bar_mark.role == "dedicated" else of_bound
            bars.append(bar(f"{baseline_words}{label_words}", bar_value, bar_mark))
    return bars, "hours until all jobs were done" if by_time else "samples in the window"


def _merge_equal(efficiencies: Mapping[str, Efficiency], column: str) -> list[tuple[list[str], float, float]]:
    """Return equal baselines once: labels of their runs, value, and number of dedicated nodes."""
    baselines: list[tuple[list[str], float, float]] = []
    for run_label, result in efficiencies.items():
        baseline = getattr(result, column)
        if baseline is None:
            continue
        for labels, other_baseline, nodes in baselines:
            if abs(baseline - other_baseline) <= _ROUNDING * abs(other_baseline) and nodes == result.equivalent_nodes:
                labels.append(run_label)
                break
        else:
            baselines.append(([run_label], baseline, result.equivalent_nodes))
    return baselines


def _shares(result: Efficiency) -> str:
    parts = [] if result.u is None else [f"U {amount(result.u)}"]
    if result.share is not None:
        parts.append(f"{value_text(result.share, 'at-least')} of the bound")
    return f" ({', '.join(parts)})" if parts else ""


def _sentence(run_label: str, result: Efficiency) -> str:
    node_words = amount_of(result.equivalent_nodes, "dedicated node")
    parts = []
    if result.is_done:
        parts.append(f"all jobs were done after {duration(result.done_s or 0.0)}")
        if result.dedicated_done_s is not None:
            parts.append(f"on {node_words} after {duration(result.dedicated_done_s)}")
        if result.earliest_s is not None:
            parts.append(f"no policy can finish before {duration(result.earliest_s)}")
        if result.may_differ:
            parts.append("where other trials may be pruned")
        if result.u is not None:
            parts.append("U is 1 by construction, so compare the times")
    else:
        parts.append(f"{amount(result.samples)} samples")
        if result.u is not None:
            parts.append(f"U {amount(result.u)} against {node_words}")
        elif result.dedicated_samples is not None:
            why = why_u_is_undefined(result.dedicated_samples, result.equivalent_nodes)
            parts.append(f"U is undefined, because {why}")
        if result.share is not None and result.bound_kind is not None:
            parts.append(f"at least {value_text(result.share, 'at-least')} of {BOUND_WORDS[result.bound_kind]}")
    return sentence(run_label, ", ".join(parts))


EFFICIENCY: RunFigure[Efficiency] = RunFigure(
    "efficiency", "Beside dedicated nodes and the upper bound", efficiency, draw, page, words, table
)
