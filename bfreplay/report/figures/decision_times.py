"""Measured durations of decisions, by kind of decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.errors import InputError
from bfreplay.replay.decision_log import kind_of
from bfreplay.report.figures.axes import dress, legend_below, new_figure, page_axis, paper_axis, plain_tick, settle
from bfreplay.report.figures.figure import NothingToShowError, PageFigure, RunFigure
from bfreplay.report.figures.marks import Trace, by_run, join_text, tag
from bfreplay.runs.shown_values import Column, ShownTable
from bfreplay.runs.summary_text import DECISION_WORDS
from bfreplay.wording import amount, count

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
        return sum(n for _, n in self.by_kind.values())

    def within(self, seconds: NDArray[np.float64]) -> NDArray[np.float64]:
        """Share of the decisions that took at most so long."""
        found: NDArray[np.float64] = np.searchsorted(self.decide_s, seconds, side="right") / self.decide_s.size
        return found


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
    kind = np.concatenate([np.zeros(0, np.int8), *map(_kinds, run.batches("decisions", _STATUS_COLUMNS))])
    if decide_s.size != kind.size:
        raise InputError(
            "the tables decisions and timings do not have the same decisions",
            file=run.folder,
            value=f"{kind.size:,} and {decide_s.size:,} rows",
            fix="make the run again",
        )
    asked = decide_s > 0.0
    if not asked.any():
        raise NothingToShowError("there never was a job and an idle node at one time, so nothing was decided")
    of_kind = {word: kind == k for k, word in enumerate(DECISION_WORDS)}
    by_kind = {
        word: (np.sort(decide_s[asked & is_kind]), int((~asked & is_kind).sum()))
        for word, is_kind in of_kind.items()
        if is_kind.any()
    }
    return DecisionTimes(np.sort(decide_s[asked]), by_kind, run.summary.fallbacks)


def _kinds(rows: pa.Table) -> NDArray[np.int8]:
    """Return what stands behind each decision, as a place in ``DECISION_WORDS``."""
    columns = [rows[name].unify_dictionaries().combine_chunks() for name in _STATUS_COLUMNS]
    key = np.zeros(rows.num_rows, np.int64)
    for column in columns:
        key = key * (len(column.dictionary) + 1) + np.asarray(column.indices.fill_null(len(column.dictionary)))
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    words = [*DECISION_WORDS]
    kinds = [words.index(kind_of(*(column[k].as_py() for column in columns))) for k in first.tolist()]
    return np.array(kinds, np.int8)[place]


def draw(found: Mapping[str, DecisionTimes]) -> Figure:
    """Share of the decisions that took at most so long, exactly; points at the median, 95 %, 99 % and the slowest."""
    figure = new_figure(9.0, 4.0)
    axes = figure.subplots()
    for mark, label, data in by_run(found):
        line = mark.paper_line
        share = 100 * np.arange(1, data.decide_s.size + 1) / data.decide_s.size
        x, y = np.append(data.decide_s[:1], data.decide_s), np.append(0.0, share)
        axes.plot(x, y, drawstyle="steps-post", label=label or None, **line)
        axes.plot(
            _quantiles(data.decide_s),
            [100 * q for q in QUANTILES],
            marker="o",
            linestyle="",
            markersize=5,
            color=line["color"],
            markeredgecolor="white",
            zorder=3,
        )
    paper_axis(axes, *_range(found))
    axes.set_ylim(-2, 104)
    dress(axes, _X_TITLE, _Y_TITLE, y_ticks=plain_tick)
    if any(found):
        legend_below(figure)
    return settle(figure)


def page(found: Mapping[str, DecisionTimes]) -> PageFigure:
    """The same for the page, at ``POINTS`` lengths of time."""
    low_s, high_s = _range(found)
    traces: list[Trace] = []
    for mark, label, data in by_run(found):
        seconds = np.geomspace(data.decide_s[0], data.decide_s[-1], POINTS)
        seconds[[0, -1]] = data.decide_s[[0, -1]]  # not a rounding error below
        x, y = seconds.tolist(), 100 * data.within(seconds)
        hover = f"{tag(label, '%{y:.3~r} %')} within %{{customdata}}"
        times = [*map(_milliseconds, x)]
        curve = mark.curve(tag(label, "decisions"), hover, x=x, y=y.tolist(), customdata=times)
        quantiles = _quantiles(data.decide_s)
        texts = [f"{word} {_milliseconds(each)}" for word, each in zip(_QUANTILE_WORDS, quantiles, strict=True)]
        points = mark.curve(
            tag(label, "quantiles"),
            tag(label, "%{customdata}"),
            mode="markers",
            customdata=texts,
            showlegend=False,
            x=quantiles,
            y=[100 * share for share in QUANTILES],
            marker={"color": f"@{mark.role}", "size": 8, "line": {"color": "@paper", "width": 1}},
        )
        traces += [curve | {"showlegend": bool(label)}, points]
    layout = {
        "xaxis": {"title": {"text": _X_TITLE}, **page_axis(low_s, high_s)},
        "yaxis": {"title": {"text": _Y_TITLE}, "range": [-2, 104]},
        "hovermode": "closest",
    }
    return PageFigure(traces, layout, height=360)


def words(found: Mapping[str, DecisionTimes]) -> str:
    """Median, 95 %, 99 % and slowest of each run; that they were measured."""
    lines = []
    for label, data in found.items():
        times = [_milliseconds(quantile) for quantile in _quantiles(data.decide_s)]
        quantiles = f"median {times[0]}, 95 % within {times[1]}, 99 % within {times[2]}, the slowest {times[3]}"
        text = f"{count(data.decide_s.size, 'decision')}: {quantiles}"
        if data.n_not_asked:
            text += f"; {count(data.n_not_asked, 'more time')} the policy was not asked"
        lines.append(f"{tag(label, text)}.")
    lines.append("Times are measurements: they differ from run to run and from machine to machine.")
    return join_text(found, lines)


def table(found: Mapping[str, DecisionTimes]) -> ShownTable:
    """A row for each kind of decision, one for all, and one for each reason for a fallback."""
    columns = [Column("kind", "Decisions")]
    if any(found):
        columns.append(Column("run", "run"))
    columns += [
        Column("n", "how many", "count"),
        Column("share", "share", "percent"),
        Column("n_not_asked", "policy not asked", "count"),
        *(
            Column(f"q{share:g}_ms", f"{word}, ms", "amount")
            for share, word in zip(QUANTILES, _QUANTILE_WORDS, strict=True)
        ),
    ]
    rows: list[list[Any]] = []
    for label, data in found.items():
        n_all = data.decide_s.size + data.n_not_asked
        of_run = [label] if any(found) else []
        for kind, (decide_s, n_not_asked) in data.by_kind.items():
            n = decide_s.size + n_not_asked
            rows.append([DECISION_WORDS[kind], *of_run, n, n / n_all, n_not_asked, *_cells(decide_s)])
        rows.append(["all", *of_run, n_all, 1.0, data.n_not_asked, *_cells(data.decide_s)])
        for reason, n in data.fallbacks.items():
            text = f"of them fell back: {reason.replace('_', ' ')}"
            rows.append([text, *of_run, n, n / n_all, None, *[None] * len(QUANTILES)])
    return ShownTable("Decisions by what stands behind them, and measured times", tuple(columns), rows)


def _quantiles(decide_s: NDArray[np.float64]) -> list[float]:
    """Return quantiles of ascending durations, each a measured one: at least this share took no longer."""
    n = decide_s.size
    return [float(decide_s[max(0, int(np.ceil(share * n - 1e-9)) - 1)]) for share in QUANTILES]


def _cells(decide_s: NDArray[np.float64]) -> list[float | None]:
    return [1e3 * quantile for quantile in _quantiles(decide_s)] if decide_s.size else [None] * len(QUANTILES)


def _range(found: Mapping[str, DecisionTimes]) -> tuple[float, float]:
    least, most = (pick(float(data.decide_s[end]) for data in found.values()) for pick, end in ((min, 0), (max, -1)))
    return least / 1.2, most * 1.2


def _milliseconds(seconds: float) -> str:
    return f"{amount(1e3 * seconds)} ms" if seconds < 1 else f"{amount(seconds)} s"


DECISION_TIMES: RunFigure[DecisionTimes] = RunFigure(
    "decision-times", "How long decisions took", decision_times, draw, page, words, table
)
