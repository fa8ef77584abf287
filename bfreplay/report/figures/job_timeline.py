"""Nodes of each job over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from bfreplay.report.figures.axes import new_figure, panels_below, plain_tick, settle
from bfreplay.report.figures.figure import NothingToShowError, PageFigure, RunFigure
from bfreplay.report.figures.job_rows import COLUMNS, FEWEST_COLUMNS, MOST_STEPS, JobRow, most_of_a_job, rows_of
from bfreplay.report.figures.marks import LIGHT, ROWS, Trace, axis, layout_axis, of_each, tag
from bfreplay.report.figures.time_axis import TimeSpan, draw_time_axis, outer_part
from bfreplay.runs.explain.saved_tables import NODE_US_PER_HOUR, SavedAllocations
from bfreplay.runs.step_functions import StepSeries
from bfreplay.wording import amount, count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bfreplay.runs.run_result import RunResult

_HEAT = tuple(((k / 4) ** 2, f"heat-{k}") for k in range(5))
"""Colours by share of the most nodes, closer where there are few: one node is to be told from none."""
_MOST_PLACES = 40_000
"""That a page holds of all rows together: changes of the type of a job's nodes, and of whether it shares them."""


@dataclass(frozen=True, slots=True, eq=False)
class JobTimeline:
    """Nodes of the jobs of one run over time.

    Parameters
    ----------
    span
        The window, or a part of it.
    held
        Allocations of the run.
    models
        Jobs and their models in order of admission, those never admitted last.
    rows
        Rows of the picture; none is empty.
    """

    span: TimeSpan
    held: SavedAllocations
    models: tuple[tuple[str, str | None], ...]
    rows: tuple[JobRow, ...]

    @classmethod
    def of_part(cls, span: TimeSpan, held: SavedAllocations, models: tuple[tuple[str, str | None], ...]) -> JobTimeline:
        """Rows of that part; ``NothingToShowError`` where no job holds a node in it."""
        rows = rows_of(held, models, span.start_us, span.end_us)
        if not rows:
            raise NothingToShowError("no job held a node at any time of the window" if models else "there are no jobs")
        return cls(span, held, models, rows)

    def between(self, start_us: int, end_us: int) -> JobTimeline:
        """The same for a part of the window, with rows of its own.

        Raises
        ------
        InputError
            The part is empty, or reaches outside the window.
        NothingToShowError
            No job held a node in it.
        """
        return self.of_part(self.span.inside(start_us, end_us), self.held, self.models)

    @property
    def n_jobs(self) -> int:
        """Jobs that held nodes."""
        return sum(len(row.jobs) for row in self.rows)

    @property
    def is_shared(self) -> bool:
        """True if rows show several jobs, one after another or at once."""
        return any(len(row.jobs) > 1 for row in self.rows)

    @property
    def most(self) -> int:
        """Most nodes of a row at once."""
        return int(max(row.nodes.most.max() for row in self.rows))


def job_timeline(run: RunResult) -> JobTimeline:
    """Nodes of each job over the window.

    Raises
    ------
    NothingToShowError
        No job held a node.
    """
    jobs = run.table("jobs").select(["job", "model", "admitted"])
    admitted = np.asarray(jobs["admitted"].cast("int64").fill_null(np.iinfo(np.int64).max), dtype=np.int64)
    names, models = jobs["job"].to_pylist(), jobs["model"].to_pylist()
    order = np.argsort(admitted, kind="stable").tolist()
    return JobTimeline.of_part(
        TimeSpan.of_record(run.record), SavedAllocations.of(run), tuple((names[k], models[k]) for k in order)
    )


def draw(found: Mapping[str, JobTimeline]) -> Figure:
    """A panel a run: mean nodes in each of 480 columns, a row a job."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    most = 8.0 if len(found) == 1 else 4.5
    heights = [min(0.7 + 0.15 * len(data.rows), most) for data in found.values()]
    figure = new_figure(9.0, sum(heights) + 0.9)
    span = outer_part([data.span for data in found.values()])
    colours = LinearSegmentedColormap.from_list("held", [(share, LIGHT[role]) for share, role in _HEAT])
    scale = Normalize(0.0, max(data.most for data in found.values()))
    panels = panels_below(figure, heights)
    for axes, height, (label, data) in zip(panels, heights, found.items(), strict=True):
        edges = data.span.columns(COLUMNS)
        start, end = (float(day) for day in span.days(edges[[0, -1]]))
        heat = np.array([row.nodes.in_columns(edges).mean for row in data.rows])
        axes.imshow(
            heat,
            cmap=colours,
            norm=scale,
            aspect="auto",
            interpolation="nearest",
            extent=(start, end, len(data.rows) - 0.5, -0.5),
        )
        _name_rows(axes, data, height)
        axes.set_title(label, fontsize=10.5, loc="left", parse_math=False)
        axes.tick_params(axis="x", labelsize=9)
        axes.spines[["top", "right"]].set_visible(False)
    draw_time_axis(panels[-1], span)
    bar = figure.colorbar(ScalarMappable(scale, colours), ax=panels, fraction=0.03, pad=0.01, aspect=30)
    bar.set_label("nodes", fontsize=10)
    bar.ax.tick_params(labelsize=9)
    bar.ax.yaxis.set_major_formatter(plain_tick)
    bar.outline.set_visible(False)
    return settle(figure)


def page(found: Mapping[str, JobTimeline]) -> PageFigure:
    """A heat map a run, one below the other, with the same colours and the same time."""
    top = max(data.most for data in found.values())
    scale: Trace = {
        "zmin": 0,
        "zmax": top,
        "colorscale": [[share, f"@{role}"] for share, role in _HEAT],
        "colorbar": {"title": {"text": "nodes"}, "thickness": 14, "outlinewidth": 0},
        "hovertemplate": "%{y}<br>nodes held: %{z:,.4~g}<extra></extra>",
    }
    panels = []
    for k, (label, data) in enumerate(found.items()):
        rows, start_us = data.rows, data.span.start_us
        meta: Trace = {}
        if data.is_shared:
            meta["row_jobs"] = [_of_row(row, start_us) for row in rows]
        if any(row.places for row in rows):
            meta["row_places"] = [
                _places_of_row(row, start_us, _MOST_PLACES // (len(found) * len(rows))) for row in rows
            ]
        series = _thin([row.nodes for row in rows], MOST_STEPS // len(found))
        more = scale | {"showscale": k == 0} | ({"meta": meta} if meta else {})
        panels.append((label, dict(zip((row.label for row in rows), series, strict=True)), more))
    return rows_page(panels, 18, 900, {"fixedrange": True})


def rows_page(
    panels: Sequence[tuple[str, Mapping[str, StepSeries], Trace]], row_pixels: int, most_pixels: int, rows_axis: Trace
) -> PageFigure:
    """Return heat maps one below the other: label of each run, its rows by name, and more of its trace.

    A single one has at most ``most_pixels``; axes of rows are ``rows_axis``.
    """
    most = most_pixels if len(panels) == 1 else 420
    pixels = [min(max(row_pixels * len(rows), 120), most) for _, rows, _ in panels]
    layout: Trace = {"xaxis": {"time": True, "anchor": axis(len(panels) - 1)}}
    traces: list[Trace] = []
    series: dict[str, StepSeries] = {}
    for k, ((label, rows, more), domain) in enumerate(zip(panels, domains(pixels), strict=True)):
        of_run = {tag(label, name): row for name, row in rows.items()}
        series |= of_run
        own = {
            "rows": list(of_run),
            "y": [escape(name, quote=False) for name in of_run],
            "yaxis": axis(k),
            "name": label,
        }
        traces.append({"type": "heatmap", "hoverongaps": False, **own, **more})
        title = {"title": {"text": label}} if label else {}
        layout[layout_axis(k)] = {**ROWS, **rows_axis, "domain": domain, "tickfont": {"size": 11}, **title}
    return PageFigure(traces, layout, series, height=sum(pixels) + 110)


def domains(pixels: Sequence[int], gap: float = 0.04) -> list[list[float]]:
    """Return parts of the height of a page's figure, from the top down."""
    share = (1 - gap * (len(pixels) - 1)) / sum(pixels)
    found, top = [], 1.0
    for height in pixels:
        found.append([max(0.0, round(top - height * share, 6)), round(top, 6)])
        top -= height * share + gap
    return found


def named_rows(n_rows: int, inches: float) -> range:
    """Return the rows whose names fit into a panel of this height."""
    return range(0, n_rows, max(1, -(-n_rows * 10 // int(inches * 100))))


def _words(data: JobTimeline) -> str:
    """Number of jobs that held nodes, and the job with the most."""
    text = f"{count(data.n_jobs, 'job')} held nodes"
    without = len(data.models) - data.n_jobs
    if without:
        text += f", {without:,} never did and {'is' if without == 1 else 'are'} omitted"
    if data.is_shared:
        at_once = data.rows[0].at_once
        text += f", at most {sum(row.at_once for row in data.rows):,} at once: a row shows "
        text += "one job after another" if at_once == 1 else f"up to {at_once:,} jobs at once"
    held, is_shared, most = data.held, False, 0
    held_us = np.zeros((len(held.names), len(held.type_names)), dtype=np.int64)
    for _, _, part in held.parts(data.span.start_us, data.span.end_us):
        np.add.at(held_us, (part.job, part.node_type), part.count * part.charged_us)
        most, is_shared = max(most, most_of_a_job(part)), is_shared or part.is_shared
    of_job, of_type = held_us.sum(axis=1), held_us.sum(axis=0)
    busiest = int(of_job.argmax())
    text += f"; the most node-hours went to {held.names[busiest]} ({amount(of_job[busiest] / NODE_US_PER_HOUR)})"
    text += f", and no job held more than {count(most, 'node')} at once"
    if len(held.type_names) > 1:
        each = (f"{amount(of_type[k] / NODE_US_PER_HOUR)} of {name}" for k, name in enumerate(held.type_names))
        text += f"; node-hours by type: {', '.join(each)}"
    if is_shared:
        text += "; nodes that two jobs share are shown with both, and their node-hours are half of each"
    return text


def _name_rows(axes: Axes, data: JobTimeline, inches: float) -> None:
    """Set as many names as there is room for."""
    rows = data.rows
    shown = named_rows(len(rows), inches)
    size = min(9.0, max(6.0, 72 * inches / len(rows) * shown.step * 0.75))
    if data.is_shared:
        axes.set_yticks(shown, labels=[f"{k * rows[0].at_once + 1}" for k in shown], fontsize=size)
        axes.set_ylabel("jobs at once", fontsize=10)
    else:
        axes.set_yticks(shown, labels=[rows[k].label for k in shown], fontsize=size, parse_math=False)
    axes.tick_params(axis="y", length=0)


def _thin(series: Sequence[StepSeries], most_steps: int) -> list[StepSeries]:
    """The same where all have at most ``most_steps`` together; else those with more than their part in columns."""
    if all(each.is_exact for each in series) and sum(len(each.mean) for each in series) <= most_steps:
        return [each.coarse() for each in series]
    coarse = [each.coarse(max(FEWEST_COLUMNS, most_steps // len(series))) for each in series]
    # seven digits do for a colour, and what is zero after them is next to nothing once compressed
    return [
        replace(each, mean=each.mean.astype(np.float32).astype(np.float64)) if not each.is_exact else each
        for each in coarse
    ]


def _of_row(row: JobRow, start_us: int) -> Trace:
    """Jobs of a row, and the second of the window at which each first held a node."""
    since_s = np.round((row.since_us - start_us) / 1e6, 1)
    return {"job": [escape(name, quote=False) for name in row.jobs], "since_s": since_s.tolist()}


def _places_of_row(row: JobRow, start_us: int, most: int) -> Trace:
    """Words about the nodes of a row by second of the window; all at once for too many changes."""
    places = row.places
    if len(places) > max(1, most):
        places = ((places[0][0], " or ".join(dict.fromkeys(words for _, words in places))),)
    since_s = [round((since_us - start_us) / 1e6, 1) for since_us, _ in places]
    return {"place": [escape(words, quote=False) for _, words in places], "since_s": since_s}


JOBS: RunFigure[JobTimeline] = RunFigure(
    "jobs", "Which job held how many nodes when", job_timeline, draw, page, of_each(_words)
)
