"""Sections of the page: a figure with its words and tables, or the tables of jobs, models, node types and weights."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bfreplay import __version__
from bfreplay.datasets.idleness.idleness_text import hour_table, when_idle
from bfreplay.datasets.idleness.pool import PoolSeries
from bfreplay.datasets.idleness.week import choose_zone, week_cells, week_of
from bfreplay.errors import InputError
from bfreplay.registry import one_line
from bfreplay.replay.job_outcomes import STATUSES
from bfreplay.report.figures.figure import (
    FIGURES,
    Figure,
    NotForThisRunError,
    NothingToShowError,
    PageFigure,
    RunFigure,
    find_figure,
)
from bfreplay.report.figures.marks import join_text, tag
from bfreplay.report.figures.time_axis import TimeSpan
from bfreplay.report.figures.timeline import idle_parts
from bfreplay.report.page.templates import FIRST_ROWS, figure_parts, page_parts, template
from bfreplay.result_folders.records import JsonObject
from bfreplay.runs.explain.jobs_of_run import job_answers, model_answers
from bfreplay.runs.explain.saved_tables import jobs_frame, microseconds, model_label
from bfreplay.runs.metric import exact
from bfreplay.runs.metrics import HELD_NOTHING_MADE
from bfreplay.runs.run_result import RunResult
from bfreplay.runs.scheduling_metrics import cluster_of, scheduling_tables
from bfreplay.runs.step_functions import StepSeries
from bfreplay.wording import Column, ShownTable, value_text

if TYPE_CHECKING:
    import pandas as pd


F = TypeVar("F")
_WHOLE = (np.uint8, np.uint16, np.uint32)
_US_PER_S = 1_000_000
_UNITS_US = (_US_PER_S, 1_000, 1)


def pack_numbers(values: NDArray[np.float64] | NDArray[np.int64]) -> JsonObject:
    """Pack ``values (N,)`` without nan as the smallest unsigned integers that hold them, else as 64-bit floats."""
    numbers = np.asarray(values)
    kind: type[np.generic] = np.float64
    if not numbers.size or (numbers.min() >= 0 and np.array_equal(numbers, np.floor(numbers))):
        largest = float(numbers.max(initial=0))
        kind = next((int_type for int_type in _WHOLE if largest <= np.iinfo(int_type).max), np.float64)
    as_kind = numbers.astype(np.dtype(kind).newbyteorder("<"))
    return {"type": np.dtype(kind).name, "n": int(numbers.size), "zlib": _text(as_kind.tobytes())}


def pack_steps(series: StepSeries, start_us: int) -> JsonObject:
    """Pack a step function: lengths of its steps in ``unit_s``, its heights, and ``least`` and ``most`` if they differ.

    ``start_us`` is the start of the window, from which the page counts seconds.
    """
    length_us = np.diff(series.edge_us)
    unit_us = next(unit for unit in _UNITS_US if not (length_us % unit).any() and not (series.edge_us[0] % unit))
    document: JsonObject = {
        "start_s": (int(series.edge_us[0]) - start_us) / _US_PER_S,
        "unit_s": unit_us / _US_PER_S,
        "length": pack_numbers(length_us // unit_us),
        "mean": pack_numbers(series.mean),
    }
    if not series.is_exact:
        document |= {"least": pack_numbers(series.least), "most": pack_numbers(series.most)}
    return document


def pack_document(document: Any) -> str:
    """Compress a JSON document; ``ValueError`` for ``nan`` and ``inf``."""
    return _text(json.dumps(document, allow_nan=False, separators=(",", ":")).encode())


def _text(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 9)).decode("ascii")


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: exact value as text, by which the page sorts (empty for none), shown text, and link."""

    value: str
    text: str
    href: str = ""


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table; ``rest`` holds all rows, packed, ``[value, text]`` a cell; ``None`` if ``rows`` are all."""

    caption: str
    columns: tuple[Column, ...]
    rows: list[list[Cell]]
    rest: str | None


def page_table(table: ShownTable, *, is_packed: bool = True) -> PageTable:
    """Return the table with all cells as text.

    Parameters
    ----------
    is_packed
        False for a page without scripts, which could not unpack the rows after the first ones.
    """
    rows = [
        [Cell(exact(value), value_text(value, column.kind)) for value, column in zip(row, table.columns, strict=True)]
        for row in table.rows
    ]
    if len(rows) <= FIRST_ROWS or not is_packed:
        return PageTable(table.caption, table.columns, rows, None)
    rest = pack_document([[[cell.value, cell.text] for cell in row] for row in rows])
    return PageTable(table.caption, table.columns, rows[:FIRST_ROWS], rest)


@dataclass(frozen=True, slots=True)
class Section:
    """One heading of the page.

    Parameters
    ----------
    name
        Anchor; the plot is ``plot-<name>``.
    title
        Heading.
    words
        Text, also the alternative text of the figure.
    figure
        Figure, if any.
    tables
        Tables with the numbers.
    folded
        True if the tables are folded below a figure.
    """

    name: str
    title: str
    words: str
    figure: PageFigure | None = None
    tables: list[PageTable] = field(default_factory=list)
    folded: bool = True

    def pack(self, start_us: int) -> JsonObject | None:
        """Figure as a JSON document, with its series packed; ``start_us`` as for ``pack_steps``."""
        if self.figure is None:
            return None
        series = {name: pack_steps(steps, start_us) for name, steps in self.figure.series.items()}
        entries = {name: getattr(self.figure, name) for name in ("traces", "layout", "height")}
        return {**entries, "series": series}

    @property
    def is_over_time(self) -> bool:
        """True if the figure follows the part of the window that the reader zooms to."""
        return self.figure is not None and any(
            isinstance(axis, dict) and axis.get("time") for axis in self.figure.layout.values()
        )


def figure_sections(runs: Mapping[str, RunResult]) -> Iterator[Section]:
    """Return a section for each figure of the catalogue that applies to the runs; one without data gives the reason."""
    for name in FIGURES.names():
        if name in FIGURES.built_in:
            yield from _figure_section(name, find_figure(name), runs)
            continue
        anchor = "figure-" + re.sub(r"\W+", "-", name)  # distinct from names of the page itself
        try:
            yield from _figure_section(anchor, find_figure(name), runs)
        except Exception as error:  # foreign code may raise anything; other figures must not suffer
            reason = error.problem if isinstance(error, InputError) else one_line(error)
            yield Section(anchor, name, f"This figure of another package cannot be shown: {reason}.")


def _figure_section(anchor: str, figure: RunFigure[Any], runs: Mapping[str, RunResult]) -> list[Section]:
    data_by_label: dict[str, Any] = {}
    labels: dict[str, list[str]] = {}  # of runs with nothing to show, by reason
    for label, run in runs.items():
        try:
            data_by_label[label] = figure.data(run)
        except NotForThisRunError:
            continue
        except NothingToShowError as error:
            labels.setdefault(_sentence(error), []).append(label)
    reasons = [tag(", ".join(of_each), reason) for reason, of_each in labels.items()]
    if not data_by_label:
        return [Section(anchor, figure.title, join_text(runs, reasons))] if reasons else []
    tables = [] if figure.table is None else [figure.table(data_by_label)]
    section = section_of(figure, data_by_label, tables)
    return [replace(section, name=anchor, words=join_text(runs, [section.words, *reasons]))]


def section_of(figure: Figure[F], data_by_label: F, tables: Sequence[ShownTable]) -> Section:
    """Return the section of a figure, its words, and these tables."""
    words = "" if figure.words is None else figure.words(data_by_label)
    page = None if figure.page is None else figure.page(data_by_label)
    return Section(figure.name, figure.title, words, page, [*map(page_table, tables)])


def _sentence(error: InputError) -> str:
    """Sentence with the problem and its fix."""
    parts = [error.problem, *([error.fix] if error.fix else [])]
    return " ".join(f"{part[0].upper()}{part[1:].rstrip('.')}." for part in parts)


def hour_sections(run: RunResult) -> Iterator[Section]:
    """Return the section with idle nodes by hour and weekday; none on a cluster, or without a calendar."""
    record = run.record
    clock = None if cluster_of(record) is not None else choose_zone(None, record.inputs.events.metadata)
    if clock is None or not record.summary.ledger.idle_node_us:
        return
    cells: NDArray[np.int64] = np.zeros((2, 7 * 24), np.int64)
    for edge_us, n_idle in idle_parts(run, TimeSpan.of_record(record)):
        joins = np.diff(n_idle)
        changes = edge_us[1:-1], joins, np.zeros_like(joins)
        part = PoolSeries.of_changes(int(edge_us[0]), int(edge_us[-1]), int(n_idle[0]), *changes)
        cells += week_cells(part, clock[1])
    week = week_of(cells, clock[0], clock[2])
    tables = [page_table(hour_table(week, cells[1].sum() / cells[0].sum()))]
    yield Section("hour-and-weekday", "Idle nodes by hour and weekday", when_idle(week), tables=tables)


def result_page(*, sections: Sequence[Section], **values: Any) -> str:
    """Return the page of a result that is not a run; ``values`` are those of ``result.html.j2``."""
    parts = {**figure_parts({section.name: section.pack(0) for section in sections}), **page_parts()}
    return template("result.html.j2").render(sections=sections, version=__version__, **values, **parts)


def job_sections(run: RunResult) -> Iterator[Section]:
    """Return sections with the tables of node types and weights, models, and jobs."""
    if tables := [page_table(table) for table in scheduling_tables(run)]:
        yield Section("scheduling", "Node types and weights", _WORDS["scheduling"], tables=tables, folded=False)
    for name, title, table in (("models", "Models", models_table(run)), ("job-table", "Jobs", jobs_table(run))):
        if table.rows:
            words = _WORDS[name].format("five" if _has_losses(run) else "four")
            yield Section(name, title, words, tables=[page_table(table)], folded=False)
        else:
            yield Section(name, title, "The run had no job.")


_WORDS = {
    "scheduling": "Node-hours of each node type, and mean completion time by weight.",
    "models": "All jobs of a model together. Node-hours held are the sum of the {} labels after them.",
    "job-table": "One row a job. Node-hours held are the sum of the {} labels after them. Click a header to sort.",
}


_NODE_HOURS = (
    Column("held_node_hours", "node-hours held", "amount"),
    Column("useful_node_hours", "useful", "amount"),
    Column("rescaling_node_hours", "rescaling", "amount"),
    Column("preempted_node_hours", "preempted", "amount"),
    Column("repeated_node_hours", "repeated", "amount"),
    Column("stalled_node_hours", HELD_NOTHING_MADE, "amount"),
)
_JOBS = (
    Column("job", "job"),
    Column("model", "model"),
    Column("status", "at the end"),
    Column("submitted", "submitted (UTC)", "time"),
    Column("queue_s", "submit to first start", "seconds"),
    Column("completion_s", "submit to finish", "seconds"),
    Column("held_s", "time with nodes", "seconds"),
    Column("mean_nodes", "mean nodes then", "amount"),
    *_NODE_HOURS,
    Column("done_samples", "samples", "samples"),
    Column("n_starts", "starts", "count"),
    Column("n_scale_ups", "scale-ups", "count"),
    Column("n_scale_downs", "scale-downs", "count"),
    Column("n_preemptions", "preempted", "count"),
)
_SCORES = (
    Column("best_score", "best score", "number"),
    Column("last_score", "last score", "number"),
)
_DEADLINE = (Column("deadline", "deadline (UTC)", "time"), Column("deadline_met", "met"))
_SINCE_THE_START = {
    "submitted": Column("submitted", "submitted, since the start of the window", "seconds"),
    "deadline": Column("deadline", "deadline, since the start of the window", "seconds"),
}
"""Replacements of columns for a log without a calendar."""
_MODELS = (
    Column("queue_median_s", "submit to first start, median", "seconds"),
    Column("queue_p95_s", "95 % within", "seconds"),
    Column("completion_median_s", "submit to finish, median", "seconds"),
    Column("completion_p95_s", "95 % within", "seconds"),
    Column("samples", "samples", "samples"),
    *_NODE_HOURS,
)


def _has_losses(run: RunResult) -> bool:
    return run.summary.ledger.repeated_node_us > 0


def _of_run(run: RunResult, columns: Iterable[Column]) -> list[Column]:
    """Return the columns without that of lost work, which most runs do not have."""
    return [column for column in columns if _has_losses(run) or column.key != "repeated_node_hours"]


def jobs_table(run: RunResult) -> ShownTable:
    """A row a job, in the order of the set; scores and deadlines where there are any.

    Times are seconds since the start of the window for a log without a calendar.
    """
    import pandas as pd

    answers = job_answers(run)
    answers["model"] = answers["model"].map(model_label)
    answers["status"] = answers["status"].str.replace("_", " ")
    columns = _of_run(run, _JOBS)
    if run.record.inputs.jobs.of_source:
        columns += _SCORES
    frame = jobs_frame(run)
    if frame["deadline"].notna().any():
        answers["deadline"] = frame["deadline"]
        answers["deadline_met"] = frame["deadline_met"].map({True: "yes", False: "no"}, na_action="ignore")
        columns += _DEADLINE
    if run.record.inputs.is_relative:
        columns = [_SINCE_THE_START.get(column.key, column) for column in columns]
        start = pd.Timestamp(run.record.config.window_start_us, unit="us", tz="UTC")
        for name in _SINCE_THE_START:
            if name in answers:
                answers[name] = (answers[name] - start).dt.total_seconds()
    return ShownTable("Jobs", tuple(columns), _rows(answers, columns))


def models_table(run: RunResult) -> ShownTable:
    """A row a model, in order of its first job."""
    models = model_answers(job_answers(run))
    statuses = [status for status in STATUSES if models[status].any()]
    columns = (
        Column("model", "model"),
        Column("n_jobs", "jobs", "count"),
        *(Column(status, status.replace("_", " "), "count") for status in statuses),
        *_of_run(run, _MODELS),
    )
    return ShownTable("Models", columns, _rows(models, columns))


def _rows(frame: pd.DataFrame, columns: tuple[Column, ...] | list[Column]) -> list[list[Any]]:
    """Plain values, ``None`` for missing ones; times in microseconds."""
    cells = [
        [microseconds(value) if column.kind == "time" else _plain(value) for value in frame[column.key].tolist()]
        for column in columns
    ]
    return [list(row) for row in zip(*cells, strict=True)]


def _plain(value: Any) -> Any:
    return None if value is None or value != value else value
