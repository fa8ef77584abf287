"""Sections of the page: a figure with its words and its numbers, or tables alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bfreplay.replay.result import RunResult
from bfreplay.report.page.cells import PageTable, page_table
from bfreplay.report.page.job_tables import jobs_table, models_table
from bfreplay.report.run_figures.catalogue import FIGURES, figure_named
from bfreplay.report.run_figures.figure import NothingToShowError, PageFigure
from bfreplay.report.tables import ShownTable


@dataclass(frozen=True, slots=True)
class Section:
    """One heading of the page.

    Parameters
    ----------
    name
        Its anchor; the plot is ``plot-<name>``.
    title
        The heading.
    words
        What there is to see, also the alternative text of the figure.
    figure
        What is drawn, if anything.
    tables
        The numbers.
    folded
        Whether the tables are shown only when asked for, below a figure.
    """

    name: str
    title: str
    words: str
    figure: PageFigure | None = None
    tables: list[PageTable] = field(default_factory=list)
    folded: bool = True

    @property
    def is_over_time(self) -> bool:
        """Whether its figure shows the part of the window that the reader zooms to."""
        return self.figure is not None and any(
            isinstance(axis, dict) and axis.get("time") for axis in self.figure.layout.values()
        )


def figure_sections(runs: Mapping[str, RunResult]) -> Iterator[Section]:
    """One for each figure of the catalogue; where there is nothing to show, it says why."""
    for name in FIGURES.names():
        figure = figure_named(name)
        found: dict[str, Any] = {}
        reasons = []
        for label, run in runs.items():
            try:
                found[label] = figure.data(run)
            except NothingToShowError as error:
                reason = f"{error.problem[0].upper()}{error.problem[1:].rstrip('.')}."
                reasons.append(f"{label}: {reason}" if label else reason)
        words = " ".join([figure.words(found)] if found else [])
        if not found:
            yield Section(name, figure.title, " ".join(reasons))
            continue
        tables = [] if figure.table is None else [page_table(figure.table(found))]
        yield Section(name, figure.title, " ".join([words, *reasons]), figure.page(found), tables)


def job_sections(run: RunResult) -> Iterator[Section]:
    """Tables of models and of jobs."""
    for name, title, table in (
        ("models", "Models", models_table(run)),
        ("job-table", "Jobs", jobs_table(run)),
    ):
        if table.rows:
            yield Section(name, title, _WORDS[name], tables=[page_table(table)], folded=False)
        else:
            yield Section(name, title, "The run had no job.")


def table_section(name: str, title: str, words: str, tables: Sequence[ShownTable]) -> Section:
    """A section of tables alone."""
    return Section(name, title, words, tables=[page_table(table) for table in tables], folded=False)


_WORDS = {
    "models": "All jobs of a model together. Node-hours are those held; the four labels after them add up to them.",
    "job-table": "One row a job. Node-hours are those held; the four labels after them add up to them. A header sorts.",
}
