"""Measured durations of decisions, by kind of decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.errors import InputError
from bfreplay.replay.decision_log import kind_of
from bfreplay.report.figures.axes import legend_below, new_figure, page_axis, paper_axis, plain_tick, style_axes
from bfreplay.report.figures.figure import NothingToShowError, PageFigure, RunFigure
from bfreplay.report.figures.marks import Trace, by_run, join_text, point_look, tag
from bfreplay.runs.summary_text import DECISION_WORDS
from bfreplay.wording import Column, ShownTable, amount, count

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

    from bfreplay.runs.run_result import RunResult

POINTS = 400
"""Of a curve on the page, evenly spaced on a logarithmic axis; the curve is exact at each."""
QUANTILES = (0.5, 0.95, 0.99, 1.0)
"""In words: half of the decisions, 95 % and 99 % of them, and all."""

_STATUS_COLUMNS = ("process_status", "solver_status", "quality", "fell_back_from")
_QUANTILE_WORDS = ("median", "95 % within", "99 % within", "slowest")
_QUANTILE_PERCENTS = [100 * share for share in QUANTILES]
_X_TITLE = "time of one decision, as measured"
_Y_TITLE = "% of the decisions within"


@dataclass(frozen=True, slots=True, eq=False)
class DecisionTimes:
    """Durations of the decisions of one run.

    Parameters
    ----------
    decide_s : (N,) float64
        Seconds of each decision for which the policy was asked, ascending; > 0.
    by_kind
        Durations by kind of decision (keys of ``summary.decisions``), and the number of decisions of the kind for which
        the policy was not asked.
    fallbacks
        Number of decisions answered by the fallback, by reason; included in ``by_kind``.
    """

    decide_s: NDArray[np.float64]
    by_kind: Mapping[str, tuple[NDArray[np.float64], int]]
    fallbacks: Mapping[str, int]

    @property
    def n_not_asked(self) -> int:
        """Number of decisions for which the policy was not asked: no job, no node, or no trigger of it."""
        return sum(n_trivial for _, n_trivial in self.by_kind.values())

    def within(self, seconds: NDArray[np.float64]) -> NDArray[np.float64]:
        """Share of the decisions that took at most so long."""
        return np.searchsorted(self.decide_s, seconds, side="right") / self.decide_s.size


def decision_times(run: RunResult) -> DecisionTimes:
    """Return the durations from the tables ``timings`` and ``decisions``.

    Raises
    ------
    NothingToShowError
        The policy was never asked.
    InputError
        The two tables do not have the same decisions.
    """
    decide_s = np.concatenate([[], *(np.asarray(rows["decide_s"]) for rows in run.batches("timings", ["decide_s"]))])
    kind_numbers = np.concatenate([np.zeros(0, np.int8), *map(_kinds, run.batches("decisions", _STATUS_COLUMNS))])
    if decide_s.size != kind_numbers.size:
        raise InputError(
            "the tables decisions and timings do not have the same decisions",
            file=run.folder,
            value=f"{kind_numbers.size:,} and {decide_s.size:,} rows",
            fix="make the run again",
        )
    has_solver_time = decide_s > 0.0
    if not has_solver_time.any():
        raise NothingToShowError("there never was a job and an idle node at one time, so nothing was decided")
    of_kind = {kind_name: kind_numbers == kind_index for kind_index, kind_name in enumerate(DECISION_WORDS)}
    by_kind = {
        kind_name: (np.sort(decide_s[has_solver_time & is_kind]), int((~has_solver_time & is_kind).sum()))
        for kind_name, is_kind in of_kind.items()
        if is_kind.any()
    }
    return DecisionTimes(np.sort(decide_s[has_solver_time]), by_kind, run.summary.fallbacks)


def _kinds(rows: pa.Table) -> NDArray[np.int8]:
    """Return what stands behind each decision, as a place in ``DECISION_WORDS``."""
    columns = [rows[column_name].unify_dictionaries().combine_chunks() for column_name in _STATUS_COLUMNS]
    codes = np.zeros(rows.num_rows, np.int64)
    for column in columns:
        codes = codes * (len(column.dictionary) + 1) + np.asarray(column.indices.fill_null(len(column.dictionary)))
    _, first, code_places = np.unique(codes, return_index=True, return_inverse=True)
    words = [*DECISION_WORDS]
    kinds = [words.index(kind_of(*(column[row_number].as_py() for column in columns))) for row_number in first.tolist()]
    return np.array(kinds, np.int8)[code_places]


def draw(times_by_run: Mapping[str, DecisionTimes]) -> Figure:
    """Share of the decisions that took at most so long, exactly; points at the median, 95 %, 99 % and the slowest."""
    figure = new_figure(9.0, 4.0)
    axes = figure.subplots()
    for run_mark, run_label, times in by_run(times_by_run):
        line_look = run_mark.paper_line
        percents = 100 * np.arange(1, times.decide_s.size + 1) / times.decide_s.size
        decide_s, share_above = np.append(times.decide_s[:1], times.decide_s), np.append(0.0, percents)
        axes.plot(decide_s, share_above, drawstyle="steps-post", label=run_label or None, **line_look)
        point_style = point_look(line_look["color"]) | {"markeredgecolor": "white", "zorder": 3}
        axes.plot(_quantiles(times.decide_s), _QUANTILE_PERCENTS, **point_style)
    paper_axis(axes, *_range(times_by_run))
    axes.set_ylim(-2, 104)
    style_axes(axes, _X_TITLE, _Y_TITLE, y_ticks=plain_tick)
    if any(times_by_run):
        legend_below(figure)
    return figure


def page(times_by_run: Mapping[str, DecisionTimes]) -> PageFigure:
    """The same for the page, at ``POINTS`` lengths of time."""
    low_s, high_s = _range(times_by_run)
    traces: list[Trace] = []
    for run_mark, label, times_of_run in by_run(times_by_run):
        seconds = np.geomspace(times_of_run.decide_s[0], times_of_run.decide_s[-1], POINTS)
        seconds[[0, -1]] = times_of_run.decide_s[[0, -1]]  # not a rounding error below
        x_seconds, percent_within = seconds.tolist(), 100 * times_of_run.within(seconds)
        hover = f"{tag(label, '%{y:.3~r} %')} within %{{customdata}}"
        times = [*map(_milliseconds, x_seconds)]
        curve = run_mark.curve(tag(label, "decisions"), hover, x=x_seconds, y=percent_within.tolist(), customdata=times)
        quantiles = _quantiles(times_of_run.decide_s)
        texts = [f"{word} {_milliseconds(time_s)}" for word, time_s in zip(_QUANTILE_WORDS, quantiles, strict=True)]
        points: Trace = {"mode": "markers", "customdata": texts, "showlegend": False}
        points |= {"x": quantiles, "y": _QUANTILE_PERCENTS}
        points["marker"] = {"color": f"@{run_mark.role}", "size": 8, "line": {"color": "@paper", "width": 1}}
        markers = run_mark.curve(tag(label, "quantiles"), tag(label, "%{customdata}"), **points)
        traces += [curve | {"showlegend": bool(label)}, markers]
    layout = {
        "xaxis": {"title": {"text": _X_TITLE}, **page_axis(low_s, high_s)},
        "yaxis": {"title": {"text": _Y_TITLE}, "range": [-2, 104]},
        "hovermode": "closest",
    }
    return PageFigure(traces, layout, height=360)


def words(times_by_run: Mapping[str, DecisionTimes]) -> str:
    """Median, 95 %, 99 % and slowest of each run; that they were measured."""
    sentences = []
    for run_label, times_of_run in times_by_run.items():
        times = [_milliseconds(quantile) for quantile in _quantiles(times_of_run.decide_s)]
        quantiles = f"median {times[0]}, 95 % within {times[1]}, 99 % within {times[2]}, the slowest {times[3]}"
        run_words = f"{count(times_of_run.decide_s.size, 'decision')}: {quantiles}"
        if times_of_run.n_not_asked:
            run_words += f"; {count(times_of_run.n_not_asked, 'more time')} the policy was not asked"
        sentences.append(f"{tag(run_label, run_words)}.")
    sentences.append("Times are measurements: they differ from run to run and from machine to machine.")
    return join_text(times_by_run, sentences)


def table(times_by_run: Mapping[str, DecisionTimes]) -> ShownTable:
    """A row for each kind of decision, one for all, and one for each reason for a fallback."""
    quantiles = zip(QUANTILES, _QUANTILE_WORDS, strict=True)
    columns = [
        Column("kind", "Decisions"),
        *([Column("run", "run")] if any(times_by_run) else []),
        Column("n", "how many", "count"),
        Column("share", "share", "percent"),
        Column("n_not_asked", "policy not asked", "count"),
        *(Column(f"q{share:g}_ms", f"{quantile_word}, ms", "amount") for share, quantile_word in quantiles),
    ]
    rows: list[list[Any]] = []
    for run_label, run_times in times_by_run.items():
        n_all = run_times.decide_s.size + run_times.n_not_asked
        of_run = [run_label] if any(times_by_run) else []
        for kind, (decide_s, n_trivial) in run_times.by_kind.items():
            n_decisions = decide_s.size + n_trivial
            rows.append([DECISION_WORDS[kind], *of_run, n_decisions, n_decisions / n_all, n_trivial, *_cells(decide_s)])
        rows.append(["all", *of_run, n_all, 1.0, run_times.n_not_asked, *_cells(run_times.decide_s)])
        for reason, n_decisions in run_times.fallbacks.items():
            reason_words = f"of them fell back: {reason.replace('_', ' ')}"
            rows.append([reason_words, *of_run, n_decisions, n_decisions / n_all, None, *[None] * len(QUANTILES)])
    return ShownTable("Decisions by what stands behind them, and measured times", tuple(columns), rows)


def _quantiles(decide_s: NDArray[np.float64]) -> list[float]:
    """Return quantiles of ascending durations, each a measured one: at least this share took no longer."""
    n_decisions = decide_s.size
    return [float(decide_s[max(0, int(np.ceil(share * n_decisions - 1e-9)) - 1)]) for share in QUANTILES]


def _cells(decide_s: NDArray[np.float64]) -> list[float | None]:
    return [1e3 * quantile for quantile in _quantiles(decide_s)] if decide_s.size else [None] * len(QUANTILES)


def _range(times_by_run: Mapping[str, DecisionTimes]) -> tuple[float, float]:
    times = [times_of_run.decide_s for times_of_run in times_by_run.values()]
    return min(float(decide_s[0]) for decide_s in times) / 1.2, max(float(decide_s[-1]) for decide_s in times) * 1.2


def _milliseconds(seconds: float) -> str:
    return f"{amount(1e3 * seconds)} ms" if seconds < 1 else f"{amount(seconds)} s"


DECISION_TIMES: RunFigure[DecisionTimes] = RunFigure(
    "decision-times", "How long decisions took", decision_times, draw, page, words, table
)
