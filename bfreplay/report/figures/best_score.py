"""Best score of a campaign over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from bfreplay.report.figures.axes import legend_below, new_figure, style_axes
from bfreplay.report.figures.figure import NotForThisRunError, NothingToShowError, PageFigure, RunFigure
from bfreplay.report.figures.marks import by_run, of_each, tag
from bfreplay.report.figures.time_axis import TimeSpan, draw_time_axis, outer_part
from bfreplay.runs.explain.campaign import best_so_far
from bfreplay.runs.step_functions import StepSeries, lasting_steps
from bfreplay.wording import count, duration, value_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bfreplay.runs.run_result import RunResult


@dataclass(frozen=True, slots=True, eq=False)
class BestScore:
    """Best score so far of one run, from the first report on, and the job that has the last."""

    span: TimeSpan
    best: StepSeries
    job: str
    higher_is_better: bool

    def between(self, start_us: int, end_us: int) -> BestScore:
        """Return the same for a part of the window; NothingToShowError before the first score."""
        part, first_us = self.span.inside(start_us, end_us), int(self.best.edge_us[0])
        if end_us <= first_us:
            raise NothingToShowError("no trial had reported a score by then")
        return replace(self, span=part, best=self.best.between(max(start_us, first_us), end_us))


def best_score(run: RunResult) -> BestScore:
    """Best score so far; NothingToShowError without scores."""
    if not (run.record.inputs.jobs.of_source and run.has_table("reports")):
        raise NotForThisRunError("the run is not of a campaign")
    higher_is_better = run.record.inputs.jobs.higher_is_better
    time_us, score, job = best_so_far(run, higher_is_better)
    window = TimeSpan.of_record(run.record)
    edge_us, score = lasting_steps(np.append(time_us, window.end_us), score)
    if job is None or not score.size:
        raise NothingToShowError("no trial reported a score")
    return BestScore(window, StepSeries.exact(edge_us, score), job, higher_is_better)


def draw(scores_by_run: Mapping[str, BestScore]) -> Figure:
    """A line a run."""
    figure = new_figure(9.0, 3.6)
    axes = figure.subplots()
    for run_mark, label, scores in by_run(scores_by_run):
        days = scores.span.days(scores.best.edge_us)
        axes.stairs(scores.best.mean, days, baseline=None, label=label or "best score", **run_mark.paper_line)
    draw_time_axis(axes, outer_part([scores.span for scores in scores_by_run.values()]))
    style_axes(axes, y=_title(scores_by_run))
    if len(scores_by_run) > 1:
        legend_below(figure)
    return figure


def page(scores_by_run: Mapping[str, BestScore]) -> PageFigure:
    """The same for the page."""
    traces, series = [], {}
    for mark, run_label, scores in by_run(scores_by_run):
        name = tag(run_label, "best score")
        traces.append(mark.steps(name, f"{name}: %{{y:.6~g}}", name, "most" if scores.higher_is_better else "least"))
        series[name] = scores.best.coarse()
    layout = {"xaxis": {"time": True}, "yaxis": {"title": {"text": _title(scores_by_run)}}}
    return PageFigure(traces, layout, series, height=320)


def _words(scores: BestScore) -> str:
    """Time of the best score, number of improvements, and time left."""
    edge_us, score = scores.best.edge_us, scores.best.mean
    best_after = duration((int(edge_us[-2]) - scores.span.start_us) / 1e6)
    best_text = value_text(float(score[-1]), "number")
    best_words = f"the best score, {best_text}, was reached by {scores.job} after {best_after}"
    return f"{best_words}; it improved {count(len(score) - 1, 'time')} after the first report"


def _title(scores_by_run: Mapping[str, BestScore]) -> str:
    better = {"higher" if scores.higher_is_better else "lower" for scores in scores_by_run.values()}
    return f"best score ({' or '.join(sorted(better))} is better)"


BEST_SCORE: RunFigure[BestScore] = RunFigure(
    "best-score", "Best score over time", best_score, draw, page, of_each(_words)
)
