"""The page of a list of runs: one sortable table with links to the run folders and their reports."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from bfreplay import __version__
from bfreplay.report.page.sections import Cell, PageTable
from bfreplay.report.page.templates import check_report, page_parts, script, template, write_page
from bfreplay.runs.comparison_tables import option_text
from bfreplay.runs.headline_metrics import COLUMNS, cell_text, column_heading, split_constants
from bfreplay.runs.metric import exact
from bfreplay.wording import Column, Kind, count

if TYPE_CHECKING:
    from bfreplay.experiments.run_list import ListedRun, RunList


def write_run_list(runs: RunList, out: Path | str, *, overwrite: bool = False) -> Path:
    """Write the list as an HTML page; arguments and errors as ``write_report``."""
    file = check_report(out, overwrite=overwrite)
    metrics, same = split_constants(runs.headline)
    text = template("run_list.html.j2").render(
        title=f"{count(len(runs), 'run')} in {runs.folder.resolve().name}",
        same=same,
        table=_table(runs, list(metrics), file.resolve().parent),
        version=__version__,
        scripts=[script("tables"), script("theme")],
        **page_parts(),
    )
    return write_page(text, file, overwrite=overwrite)


def _table(runs: RunList, metrics: list[str], beside: Path) -> PageTable:
    reports = [_report(run, beside) for run in runs]
    has_reports = any(report_cell.text for report_cell in reports)
    columns = (
        Column("run", "run"),
        *([Column("report", "report")] if has_reports else []),
        Column("made", "made (UTC)", "time"),
        *(Column(name, name, kind_of(values)) for name, values in runs.options.items()),
        *(Column(name, column_heading(name), COLUMNS[name].kind) for name in metrics),
        *([Column("error", "error")] if runs.n_damaged else []),
    )
    rows = [
        [
            Cell(listed_run.name, listed_run.name, href(listed_run.folder, beside)),
            *([report_cell] if has_reports else []),
            Cell(listed_run.start_time or "", (listed_run.start_time or "")[:16].replace("T", " ")),
            *(Cell(exact(options.get(name)), option_text(options.get(name))) for name in runs.options),
            *(Cell(exact(metrics_of_run.get(name)), cell_text(name, metrics_of_run.get(name))) for name in metrics),
            *([Cell(listed_run.error, listed_run.error)] if runs.n_damaged else []),
        ]
        for report_cell, (listed_run, options, metrics_of_run) in zip(reports, runs.rows(), strict=True)
    ]
    return PageTable("Options that differ, and metrics. A click on a heading sorts.", columns, rows, None)


def _report(listed_run: ListedRun, beside: Path) -> Cell:
    file = report_of(listed_run.folder)
    return Cell("", "") if file is None else Cell("report", "report", href(file, beside))


def report_of(folder: Path) -> Path | None:
    """Return the page of a run that lies beside its folder, or in it; ``None`` without one."""
    files = (folder.with_name(f"{folder.name}.html"), folder / "report.html") if folder.name else ()
    return next((file for file in files if file.is_file()), None)


def href(path: Path, beside: Path) -> str:
    """Return the link to a path from a page in the folder ``beside``."""
    return quote(Path(os.path.relpath(path.resolve(), beside)).as_posix())


def kind_of(values: Sequence[Any]) -> Kind:
    """Format of the values of an option: numbers if all values are."""
    value_types = {type(value) for value in values if value is not None}
    return "number" if value_types <= {int, float} else "text"
