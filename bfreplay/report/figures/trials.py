"""Hyper-parameters and scores of the trials of a campaign, in parallel coordinates."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.report.figures.axes import legend_below, new_figure, panel_title
from bfreplay.report.figures.figure import NotForThisRunError, PageFigure, RunFigure
from bfreplay.report.figures.job_timeline import domains
from bfreplay.report.figures.marks import LIGHT, Trace, axis, layout_axis, of_each, tag
from bfreplay.runs.explain.saved_tables import jobs_frame
from bfreplay.wording import amount, count, value_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bfreplay.runs.run_result import RunResult

_CLASSES = ("heat-1", "heat-2", "heat-3", "heat-4")
"""Colours of quarters of the trials, from the worst scores to the best."""
_MOST_TRIALS = 1_000
_MOST_TICKS = 6
_FACTOR = 20.0
"""Positive values over more than that are on a logarithmic axis."""
_HEIGHT = 380


@dataclass(frozen=True, slots=True, eq=False)
class Coordinate:
    """One axis: a hyper-parameter or the score, the height of each trial (N,) from 0 to 1, and labelled ticks."""

    name: str
    height: NDArray[np.float64]
    ticks: tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Trials:
    """Trials with a score, from the worst to the best.

    Parameters
    ----------
    coordinates
        Hyper-parameters that have at least two values, by name; the score is the last.
    texts : (N,)
        Name, score and hyper-parameters of each trial.
    score : (N,)
        Best score of each.
    n_trials
        Of the run, those without a score included.
    """

    coordinates: tuple[Coordinate, ...]
    texts: tuple[str, ...]
    score: NDArray[np.float64]
    n_trials: int

    @property
    def classes(self) -> list[tuple[str, str, NDArray[np.int64]]]:
        """Colour, words and trials of each quarter of the scores."""
        classes = []
        for colour, part in zip(_CLASSES, np.array_split(np.arange(len(self.score)), len(_CLASSES)), strict=True):
            if part.size:
                end_scores = [value_text(float(self.score[trial_index]), "number") for trial_index in part[[0, -1]]]
                classes.append((colour, " to ".join(dict.fromkeys(end_scores)), part))
        return classes


def trials(run: RunResult) -> Trials:
    """Trials of a campaign with their hyper-parameters; at most the 1,000 best.

    Raises
    ------
    NotForThisRunError
        No trial has both hyper-parameters and a score.
    """
    job_table = jobs_frame(run)
    if not run.record.inputs.jobs.of_source:
        raise NotForThisRunError("the run is not of a campaign with hyper-parameters")
    scored_trials = job_table.dropna(subset=["params", "best_score"])
    higher = run.record.inputs.jobs.higher_is_better
    scored_trials = scored_trials.sort_values("best_score", ascending=higher, kind="stable").tail(_MOST_TRIALS)
    params = [json.loads(params_text) for params_text in scored_trials["params"]]
    param_names = sorted({name for trial_params_of_job in params for name in trial_params_of_job})
    if not param_names:
        raise NotForThisRunError("no trial has both hyper-parameters and a score")
    score = scored_trials["best_score"].to_numpy(dtype=np.float64)
    columns = {name: [trial_params_of_job.get(name) for trial_params_of_job in params] for name in param_names}
    coordinates = []
    for name, param_values in columns.items():
        if len({str(param_value) for param_value in param_values if param_value is not None}) > 1:
            coordinates.append(_coordinate(name, param_values))
    coordinates.append(_coordinate("score", score.tolist()))
    texts = []
    for job_name, best, trial_params in zip(scored_trials["job"].map(escape), score.tolist(), params, strict=True):
        param_lines = [f"{name} {_text(trial_params.get(name))}" for name in param_names]
        texts.append("<br>".join([f"{job_name}: score {value_text(best, 'number')}", *param_lines]))
    return Trials(tuple(coordinates), tuple(texts), score, len(job_table))


def _text(value: Any) -> str:
    return value_text(value, "number") if value is None or isinstance(value, float) else escape(str(value))


def _coordinate(name: str, values: list[Any]) -> Coordinate:
    """Heights by value for numbers, logarithmic over a large factor; else by the order of their texts.

    A trial without the hyper-parameter has none.
    """
    present_values = [value for value in values if value is not None]
    is_number = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in present_values)
    distinct = sorted(set(present_values)) if is_number else sorted({*map(_text, present_values)})
    if is_number:
        numbers, tick_places = np.array(values, dtype=np.float64), np.array(distinct, dtype=np.float64)
        if tick_places[0] > 0 and tick_places[-1] > _FACTOR * tick_places[0]:
            numbers, tick_places = np.log(numbers), np.log(tick_places)
    else:
        rank_of_text = {text: float(number) for number, text in enumerate(distinct)}
        numbers = np.array([np.nan if value is None else rank_of_text[_text(value)] for value in values])
        tick_places = np.arange(len(distinct), dtype=np.float64)
    lowest, length = tick_places[0], (tick_places[-1] - tick_places[0]) or 1.0
    ticks = [
        ((tick_place - lowest) / length, str(value) if isinstance(value, str) else amount(value))
        for tick_place, value in zip(tick_places.tolist(), distinct, strict=True)
    ]
    if len(ticks) > _MOST_TICKS or any(right[0] - tick_before[0] < 0.06 for tick_before, right in pairwise(ticks)):
        ticks = [ticks[0], ticks[-1]]
    return Coordinate(name, (numbers - lowest) / length, tuple((float(tick_place), text) for tick_place, text in ticks))


def draw(trials_by_run: Mapping[str, Trials]) -> Figure:
    """A panel a run: an axis a hyper-parameter, the score as the last, a line a trial."""
    from matplotlib.collections import LineCollection

    figure = new_figure(9.0, 4.0 * len(trials_by_run))
    panels = figure.subplots(len(trials_by_run), 1, squeeze=False)[:, 0]
    text_look: Trace = {"xytext": (3, 0), "textcoords": "offset points", "fontsize": 8, "va": "center"}
    for axes, (label, trials_of_run) in zip(panels, trials_by_run.items(), strict=True):
        heights = np.array([coordinate.height for coordinate in trials_of_run.coordinates]).T
        axis_places = np.arange(len(trials_of_run.coordinates))
        for colour, words_, trial_numbers in trials_of_run.classes:
            lines = [np.column_stack([axis_places, heights[axis_index]]) for axis_index in trial_numbers]
            axes.add_collection(LineCollection(lines, colors=LIGHT[colour], linewidths=1.0, label=tag(label, words_)))
        for axis_index, coordinate in enumerate(trials_of_run.coordinates):
            axes.axvline(axis_index, color=LIGHT["rule"], linewidth=0.8, zorder=0)
            for tick_height, tick_text in coordinate.ticks:
                axes.annotate(tick_text, (axis_index, tick_height), parse_math=False, **text_look)
        axes.set_xlim(-0.1, len(axis_places) - 0.8)
        coordinate_names = [coordinate.name for coordinate in trials_of_run.coordinates]
        axes.set_xticks(axis_places, labels=coordinate_names, fontsize=9, parse_math=False)
        axes.set_yticks([])
        panel_title(axes, label)
        axes.set_frame_on(False)
    legend_below(figure)
    return figure


def page(trials_by_run: Mapping[str, Trials]) -> PageFigure:
    """The same for the page: a click in the legend hides a quarter of the trials."""
    panel_domains = domains([_HEIGHT] * len(trials_by_run), gap=0.12)
    traces: list[Trace] = []
    layout: Trace = {"annotations": [], "shapes": []}
    for run_index, (run_label, trials_of_run) in enumerate(trials_by_run.items()):
        n_coordinates = len(trials_of_run.coordinates)
        columns = [coordinate.height.tolist() for coordinate in trials_of_run.coordinates]
        heights = [[None if place != place else place for place in trial] for trial in zip(*columns, strict=True)]
        axis_places = [*range(n_coordinates), None]
        for colour, words_, trial_numbers in trials_of_run.classes:
            trace: Trace = {"type": "scatter", "mode": "lines", "name": tag(run_label, f"score {words_}")}
            trace |= {"xaxis": axis(run_index, "x"), "yaxis": axis(run_index), "x": axis_places * len(trial_numbers)}
            trace["y"] = [place for trial in trial_numbers for place in (*heights[trial], None)]
            trace["text"] = [trials_of_run.texts[trial] for trial in trial_numbers for _ in axis_places]
            trace["line"] = {"color": f"@{colour}", "width": 1.5}
            traces.append({**trace, "hovertemplate": "%{text}<extra></extra>"})
        own_axes = {"xref": axis(run_index, "x"), "yref": axis(run_index)}
        for place, coordinate in enumerate(trials_of_run.coordinates):
            axis_line = {"type": "line", "x0": place, "x1": place, "y0": 0, "y1": 1}
            layout["shapes"].append({**axis_line, "line": {"color": "@muted", "width": 1}, **own_axes})
            ground = {"xanchor": "left" if place < n_coordinates - 1 else "right", "bgcolor": "@panel", "opacity": 0.85}
            for tick_height, tick_text in coordinate.ticks:
                tick_words = {"x": place, "y": tick_height, "text": tick_text, "showarrow": False, "font": {"size": 11}}
                layout["annotations"].append({**tick_words, **own_axes, **ground})
        names = [escape(coordinate.name) for coordinate in trials_of_run.coordinates]
        x_axis: Trace = {"tickvals": [*range(n_coordinates)], "ticktext": names, "range": [-0.1, n_coordinates - 0.9]}
        x_axis |= {"showgrid": False, "zeroline": False, "anchor": axis(run_index), "fixedrange": True}
        layout[layout_axis(run_index, "x")] = x_axis
        y_axis = {"domain": panel_domains[run_index], "range": [-0.05, 1.05], "visible": False}
        layout[layout_axis(run_index)] = {**y_axis, "anchor": axis(run_index, "x"), "fixedrange": True}
    return PageFigure(traces, layout, height=_HEIGHT * len(trials_by_run) + 60)


def _words(trials_of_run: Trials) -> str:
    """Number of trials, and meaning of their colours."""
    n_trials = len(trials_of_run.score)
    trial_count = f"{count(n_trials, 'trial')} of {trials_of_run.n_trials:,}"
    trial_words = f"{trial_count} as lines through hyper-parameters to the best score"
    limit_words = " (the best are shown)" if n_trials == _MOST_TRIALS else ""
    return f"{trial_words}{limit_words}, darkest for the best quarter of the scores"


TRIALS: RunFigure[Trials] = RunFigure(
    "trials", "Trials: hyper-parameters and scores", trials, draw, page, of_each(_words)
)
"""Drawn as lines, since Plotly's own parallel coordinates need WebGL and scripts that the page's policy forbids."""
