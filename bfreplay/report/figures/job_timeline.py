"""Nodes of each job over time: a row a job, or jobs one after another where there are many."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.log.node_types import ANY_TYPE
from bfreplay.report.figures.axes import new_figure, panel_title, panels_below, plain_tick
from bfreplay.report.figures.figure import NothingToShowError, PageFigure, RunFigure
from bfreplay.report.figures.marks import LIGHT, ROWS, Trace, axis, layout_axis, of_each, tag
from bfreplay.report.figures.time_axis import TimeSpan, draw_time_axis, outer_part
from bfreplay.runs.explain.saved_tables import NODE_US_PER_HOUR, Allocations, SavedAllocations
from bfreplay.runs.step_functions import StepParts, StepSeries
from bfreplay.wording import amount, count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bfreplay.runs.run_result import RunResult


MOST_ROWS = 100
"""More jobs than that share rows."""
COLUMNS = 480
"""Of a picture."""
MOST_STEPS = 160_000
"""That a page holds of all rows together; beyond, rows with more than their part are given in columns."""
FEWEST_COLUMNS = 400
_LONGEST_LABEL = 30
_Places = tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True, eq=False)
class JobRow:
    """One row.

    Parameters
    ----------
    label
        Name of the job; number of a row that jobs share.
    jobs : (K,)
        Names of its jobs, one after another.
    since_us : (K,) int64
        First time at which each held a node.
    nodes
        Nodes held by the jobs of the row.
    at_once
        Most jobs that may hold nodes in this row at once.
    places
        Start time and words of each change of node type or sharing; empty for nodes that are all alike and not shared,
        and in rows of several jobs at once.
    """

    label: str
    jobs: tuple[str, ...]
    since_us: NDArray[np.int64]
    nodes: StepSeries
    at_once: int = 1
    places: tuple[tuple[int, str], ...] = ()


def rows_of(
    allocations: Allocations | SavedAllocations,
    models: Sequence[tuple[str, str | None]],
    start_us: int,
    end_us: int,
    most_rows: int = MOST_ROWS,
) -> tuple[JobRow, ...]:
    """Rows of the jobs that held nodes.

    Parameters
    ----------
    allocations
        Allocations.
    models
        Jobs and their models in order of admission, which is that of the rows.
    start_us, end_us
        Span of the rows, in microseconds since the epoch.
    most_rows
        Up to this number, each job has its own row. More jobs share rows: each takes the first row that is free from
        its first to its last node. If these rows are too many as well, neighbouring rows are added up.
    """
    first_us, last_us = np.full(len(allocations.names), end_us), np.full(len(allocations.names), start_us)
    for _, _, allocations_of_part in allocations.parts(start_us, end_us):
        np.minimum.at(first_us, allocations_of_part.job, allocations_of_part.from_us)
        np.maximum.at(last_us, allocations_of_part.job, allocations_of_part.to_us)
    number = {name: row_number for row_number, name in enumerate(allocations.names)}
    shown_jobs = [(job, model) for job, model in models if job in number and first_us[number[job]] < end_us]
    numbers = np.array([number[name] for name, _ in shown_jobs], dtype=np.int64)
    shares = len(shown_jobs) > most_rows
    places = _lanes(first_us[numbers], last_us[numbers]) if shares else np.arange(len(shown_jobs))
    n_lanes = int(places.max(initial=-1)) + 1
    at_once = max(1, -(-n_lanes // most_rows))
    places = places // at_once
    row_of_job = np.full(len(allocations.names), -1)
    row_of_job[numbers] = places
    n_rows = -(-n_lanes // at_once)
    nodes, places_of_row = _nodes_of_rows(allocations, row_of_job, n_rows, at_once, start_us, end_us)
    row_labels = [f"row {row_number + 1}" for row_number in range(n_rows)] if shares else labels_of_jobs(shown_jobs)
    rows = []
    for row_number, label in enumerate(row_labels):
        members = numbers[places == row_number]
        members = members[np.argsort(first_us[members], kind="stable")]
        names = tuple(allocations.names[member] for member in members)
        lanes = min(at_once, n_lanes - row_number * at_once)
        rows.append(
            JobRow(label, names, first_us[members], nodes[row_number].series(), lanes, places_of_row[row_number])
        )
    return tuple(rows)


def _nodes_of_rows(
    allocations: Allocations | SavedAllocations,
    row_of_job: NDArray[np.int64],
    n_rows: int,
    at_once: int,
    start_us: int,
    end_us: int,
) -> tuple[list[StepParts], list[_Places]]:
    """Return the nodes of each row, and where they are if it has one job at a time."""
    columns = COLUMNS, max(FEWEST_COLUMNS, MOST_STEPS // max(1, n_rows))
    nodes = [StepParts(start_us, end_us, *columns) for _ in range(n_rows)]
    places: list[_Places] = [()] * n_rows
    with_places = at_once == 1 and has_places(allocations)
    for since_us, until_us, allocations_of_part in allocations.parts(start_us, end_us):
        rows_of_intervals = row_of_job[allocations_of_part.job]
        for row_number in range(n_rows):
            row_allocations = allocations_of_part.where(rows_of_intervals == row_number)
            nodes[row_number].add(*row_allocations.nodes_over_time(since_us, until_us))
            if with_places:
                places[row_number] = _changes((*_places(row_allocations), *places[row_number]))
        if sum(of_row.n_steps for of_row in nodes) > MOST_STEPS:
            for of_row in nodes:
                of_row.shrink()
    return nodes, places


def has_places(allocations: Allocations | SavedAllocations) -> bool:
    """Return whether nodes have types, or are shared."""
    return allocations.type_names not in ((), (ANY_TYPE,)) or allocations.is_shared


def _places(allocations: Allocations) -> _Places:
    """Start of each interval, in order, with type of its nodes, and sharing."""
    place_words: list[tuple[int, str]] = []
    for index in np.argsort(allocations.from_us, kind="stable").tolist():
        type_name = allocations.type_names[allocations.node_type[index]]
        kind = "nodes" if type_name == ANY_TYPE else type_name
        place_words.append((int(allocations.from_us[index]), f"{kind}, shared" if allocations.sharing[index] else kind))
    return tuple(place_words)


def _changes(places: _Places) -> _Places:
    """Return the places whose words differ from those before."""
    words_before = (None, *(place_words for _, place_words in places))
    return tuple(place for place, place_words in zip(places, words_before, strict=False) if place[1] != place_words)


def most_of_a_job(allocations: Allocations) -> int:
    """Most nodes that one job held at once."""
    count_changes = np.concatenate([allocations.count, -allocations.count])
    time_us = np.concatenate([allocations.from_us, allocations.to_us])
    # job by job, what is given back before what is taken; each job ends with none
    time_order = np.lexsort((count_changes, time_us, np.concatenate([allocations.job, allocations.job])))
    return int(np.cumsum(count_changes[time_order]).max(initial=0))


def labels_of_jobs(jobs: Iterable[tuple[str, str | None]]) -> list[str]:
    """``job (model)`` of each, short and unique; without the model if it is part of the job's name."""
    labels: list[str] = []
    n_of_label: dict[str, int] = {}
    for job_name, model in jobs:
        job_label = shorten(job_name if not model or model.lower() in job_name.lower() else f"{job_name} ({model})")
        n_of_label[job_label] = n_of_label.get(job_label, 0) + 1
        labels.append(job_label if n_of_label[job_label] == 1 else f"{job_label} #{n_of_label[job_label]}")
    return labels


def shorten(text: str, longest: int = _LONGEST_LABEL) -> str:
    """Shorten to at most ``longest`` characters in the middle, as names differ at their ends."""
    if len(text) <= longest:
        return text
    n_first = (longest - 1) // 2
    return f"{text[:n_first]}…{text[len(text) - (longest - 1 - n_first) :]}"


def _lanes(first_us: NDArray[np.int64], last_us: NDArray[np.int64]) -> NDArray[np.int64]:
    """Row of each job (J,): the lowest one that is free at its start."""
    lane_of_job = np.zeros(first_us.size, dtype=np.int64)
    free_lanes: list[int] = []
    busy_lanes: list[tuple[int, int]] = []  # until when, lane
    for job_index in np.argsort(first_us, kind="stable").tolist():
        while busy_lanes and busy_lanes[0][0] <= first_us[job_index]:
            heapq.heappush(free_lanes, heapq.heappop(busy_lanes)[1])
        lane_of_job[job_index] = heapq.heappop(free_lanes) if free_lanes else len(busy_lanes)
        heapq.heappush(busy_lanes, (int(last_us[job_index]), int(lane_of_job[job_index])))
    return lane_of_job


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
    def of_part(
        cls, span: TimeSpan, allocations: SavedAllocations, models: tuple[tuple[str, str | None], ...]
    ) -> JobTimeline:
        """Rows of that part; ``NothingToShowError`` where no job holds a node in it."""
        job_rows = rows_of(allocations, models, span.start_us, span.end_us)
        if not job_rows:
            raise NothingToShowError("no job held a node at any time of the window" if models else "there are no jobs")
        return cls(span, allocations, models, job_rows)

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
        return sum(len(job_row.jobs) for job_row in self.rows)

    @property
    def is_shared(self) -> bool:
        """True if rows show several jobs, one after another or at once."""
        return any(len(job_row.jobs) > 1 for job_row in self.rows)

    @property
    def most(self) -> int:
        """Most nodes of a row at once."""
        return int(max(job_row.nodes.most.max() for job_row in self.rows))


def job_timeline(run: RunResult) -> JobTimeline:
    """Nodes of each job over the window.

    Raises
    ------
    NothingToShowError
        No job held a node.
    """
    job_table = run.table("jobs").select(["job", "model", "admitted"])
    admission_us = np.asarray(job_table["admitted"].cast("int64").fill_null(np.iinfo(np.int64).max), dtype=np.int64)
    names, models = job_table["job"].to_pylist(), job_table["model"].to_pylist()
    admission_order = np.argsort(admission_us, kind="stable").tolist()
    jobs_in_order = tuple((names[job_index], models[job_index]) for job_index in admission_order)
    return JobTimeline.of_part(TimeSpan.of_record(run.record), SavedAllocations.of(run), jobs_in_order)


def draw(timelines: Mapping[str, JobTimeline]) -> Figure:
    """A panel a run: mean nodes in each of 480 columns, a row a job."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    most_inches = 8.0 if len(timelines) == 1 else 4.5
    heights = [min(0.7 + 0.15 * len(timeline.rows), most_inches) for timeline in timelines.values()]
    figure = new_figure(9.0, sum(heights) + 0.9)
    span = outer_part([timeline.span for timeline in timelines.values()])
    colours = LinearSegmentedColormap.from_list("held", [(share, LIGHT[role]) for share, role in _HEAT])
    scale = Normalize(0.0, max(timeline.most for timeline in timelines.values()))
    panels = panels_below(figure, heights)
    for axes, height, (run_label, timeline) in zip(panels, heights, timelines.items(), strict=True):
        column_edges_us = timeline.span.columns(COLUMNS)
        start_day, end_day = (float(edge_day) for edge_day in span.days(column_edges_us[[0, -1]]))
        mean_nodes = np.array([job_row.nodes.in_columns(column_edges_us).mean for job_row in timeline.rows])
        extent = (start_day, end_day, len(timeline.rows) - 0.5, -0.5)
        axes.imshow(mean_nodes, cmap=colours, norm=scale, aspect="auto", interpolation="nearest", extent=extent)
        _name_rows(axes, timeline, height)
        style_rows(axes, run_label)
    draw_time_axis(panels[-1], span)
    colour_bar = figure.colorbar(ScalarMappable(scale, colours), ax=panels, fraction=0.03, pad=0.01, aspect=30)
    colour_bar.set_label("nodes", fontsize=10)
    colour_bar.ax.tick_params(labelsize=9)
    colour_bar.ax.yaxis.set_major_formatter(plain_tick)
    colour_bar.outline.set_visible(False)
    return figure


def page(timelines: Mapping[str, JobTimeline]) -> PageFigure:
    """A heat map a run, one below the other, with the same colours and the same time."""
    most_nodes = max(timeline.most for timeline in timelines.values())
    colour_scale: Trace = {
        "zmin": 0,
        "zmax": most_nodes,
        "colorscale": [[share, f"@{role}"] for share, role in _HEAT],
        "colorbar": {"title": {"text": "nodes"}, "thickness": 14, "outlinewidth": 0},
        "hovertemplate": "%{y}<br>nodes held: %{z:,.4~g}<extra></extra>",
    }
    panels = []
    for run_index, (run_label, timeline) in enumerate(timelines.items()):
        job_rows, start_us = timeline.rows, timeline.span.start_us
        hover_data: Trace = {}
        if timeline.is_shared:
            hover_data["row_jobs"] = [_of_row(job_row, start_us) for job_row in job_rows]
        if any(job_row.places for job_row in job_rows):
            most_places = _MOST_PLACES // (len(timelines) * len(job_rows))
            hover_data["row_places"] = [_places_of_row(job_row, start_us, most_places) for job_row in job_rows]
        series = _thin([job_row.nodes for job_row in job_rows], MOST_STEPS // len(timelines))
        heat_map = colour_scale | {"showscale": run_index == 0} | ({"meta": hover_data} if hover_data else {})
        panels.append((run_label, dict(zip((job_row.label for job_row in job_rows), series, strict=True)), heat_map))
    return rows_page(panels, 18, 900, {"fixedrange": True})


def rows_page(
    panels: Sequence[tuple[str, Mapping[str, StepSeries], Trace]], row_pixels: int, most_pixels: int, rows_axis: Trace
) -> PageFigure:
    """Return heat maps one below the other: label of each run, its rows by name, and more of its trace.

    A single one has at most ``most_pixels``; axes of rows are ``rows_axis``.
    """
    most_height = most_pixels if len(panels) == 1 else 420
    pixels = [min(max(row_pixels * len(rows), 120), most_height) for _, rows, _ in panels]
    layout: Trace = {"xaxis": {"time": True, "anchor": axis(len(panels) - 1)}}
    traces: list[Trace] = []
    series: dict[str, StepSeries] = {}
    for panel_index, ((run_label, rows, panel_trace), domain) in enumerate(zip(panels, domains(pixels), strict=True)):
        row_series = {tag(run_label, row_name): row_of_page for row_name, row_of_page in rows.items()}
        series |= row_series
        row_names = {"rows": list(row_series), "y": [escape(row_name, quote=False) for row_name in row_series]}
        own_axis = {"yaxis": axis(panel_index), "name": run_label}
        traces.append({"type": "heatmap", "hoverongaps": False, **row_names, **own_axis, **panel_trace})
        title = {"title": {"text": run_label}} if run_label else {}
        layout[layout_axis(panel_index)] = {**ROWS, **rows_axis, "domain": domain, "tickfont": {"size": 11}, **title}
    return PageFigure(traces, layout, series, height=sum(pixels) + 110)


def domains(pixels: Sequence[int], gap: float = 0.04) -> list[list[float]]:
    """Return parts of the height of a page's figure, from the top down."""
    share = (1 - gap * (len(pixels) - 1)) / sum(pixels)
    domains_of_panels, upper_end = [], 1.0
    for height in pixels:
        domains_of_panels.append([max(0.0, round(upper_end - height * share, 6)), round(upper_end, 6)])
        upper_end -= height * share + gap
    return domains_of_panels


def style_rows(axes: Axes, title: str) -> None:
    """Title of a panel of rows over time, and neither frame at top and right nor grid."""
    panel_title(axes, title)
    axes.tick_params(axis="x", labelsize=9)
    axes.spines[["top", "right"]].set_visible(False)


def rows_to_label(n_rows: int, inches: float) -> range:
    """Return the rows whose names fit into a panel of this height."""
    return range(0, n_rows, max(1, -(-n_rows * 10 // int(inches * 100))))


def _words(timeline: JobTimeline) -> str:
    """Number of jobs that held nodes, and the job with the most."""
    text = f"{count(timeline.n_jobs, 'job')} held nodes"
    n_without = len(timeline.models) - timeline.n_jobs
    if n_without:
        text += f", {n_without:,} never did and {'is' if n_without == 1 else 'are'} omitted"
    if timeline.is_shared:
        at_once = timeline.rows[0].at_once
        text += f", at most {sum(job_row.at_once for job_row in timeline.rows):,} at once: a row shows "
        text += "one job after another" if at_once == 1 else f"up to {at_once:,} jobs at once"
    allocations, has_sharing, most_of_jobs = timeline.held, False, 0
    node_us = np.zeros((len(allocations.names), len(allocations.type_names)), dtype=np.int64)
    for _, _, part in allocations.parts(timeline.span.start_us, timeline.span.end_us):
        np.add.at(node_us, (part.job, part.node_type), part.count * part.charged_duration_us)
        most_of_jobs, has_sharing = max(most_of_jobs, most_of_a_job(part)), has_sharing or part.is_shared
    of_job, of_type = node_us.sum(axis=1), node_us.sum(axis=0)
    busiest = int(of_job.argmax())
    text += f"; the most node-hours went to {allocations.names[busiest]} ({amount(of_job[busiest] / NODE_US_PER_HOUR)})"
    text += f", and no job held more than {count(most_of_jobs, 'node')} at once"
    if len(allocations.type_names) > 1:
        types = zip(allocations.type_names, of_type / NODE_US_PER_HOUR, strict=True)
        text += f"; node-hours by type: {', '.join(f'{amount(hours)} of {type_name}' for type_name, hours in types)}"
    if has_sharing:
        text += "; nodes that two jobs share are shown with both, and their node-hours are half of each"
    return text


def _name_rows(axes: Axes, timeline: JobTimeline, inches: float) -> None:
    """Set as many names as there is room for."""
    job_rows = timeline.rows
    ticks = rows_to_label(len(job_rows), inches)
    size = min(9.0, max(6.0, 72 * inches / len(job_rows) * ticks.step * 0.75))
    if timeline.is_shared:
        axes.set_yticks(ticks, labels=[f"{number * job_rows[0].at_once + 1}" for number in ticks], fontsize=size)
        axes.set_ylabel("jobs at once", fontsize=10)
    else:
        axes.set_yticks(ticks, labels=[job_rows[number].label for number in ticks], fontsize=size, parse_math=False)
    axes.tick_params(axis="y", length=0)


def _thin(series: Sequence[StepSeries], most_steps: int) -> list[StepSeries]:
    """The same where all have at most ``most_steps`` together; else those with more than their part in columns."""
    if all(steps.is_exact for steps in series) and sum(len(steps.mean) for steps in series) <= most_steps:
        return [steps.coarse() for steps in series]
    coarse_series = [steps.coarse(max(FEWEST_COLUMNS, most_steps // len(series))) for steps in series]
    # seven digits do for a colour, and what is zero after them is next to nothing once compressed
    return [
        steps if steps.is_exact else replace(steps, mean=steps.mean.astype(np.float32).astype(np.float64))
        for steps in coarse_series
    ]


def _of_row(job_row: JobRow, start_us: int) -> Trace:
    """Jobs of a row, and the second of the window at which each first held a node."""
    since_s = np.round((job_row.since_us - start_us) / 1e6, 1)
    return {"job": [escape(job_name, quote=False) for job_name in job_row.jobs], "since_s": since_s.tolist()}


def _places_of_row(job_row: JobRow, start_us: int, most_places: int) -> Trace:
    """Words about the nodes of a row by second of the window; all at once for too many changes."""
    places = job_row.places
    if len(places) > max(1, most_places):
        places = ((places[0][0], " or ".join(dict.fromkeys(place_words for _, place_words in places))),)
    since_s = [round((since_us - start_us) / 1e6, 1) for since_us, _ in places]
    return {"place": [escape(place_words, quote=False) for _, place_words in places], "since_s": since_s}


JOBS: RunFigure[JobTimeline] = RunFigure(
    "jobs", "Which job held how many nodes when", job_timeline, draw, page, of_each(_words)
)
