"""The page of a sweep: its answer, its picture, and a table of its runs with links to them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bfreplay.errors import InputError
from bfreplay.report.figures.sweep_picture import SWEEP, lines_of, values_words, varied_options
from bfreplay.report.page.run_list_page import href, kind_of, report_of
from bfreplay.report.page.sections import Cell, PageTable, Section, result_page, section_of
from bfreplay.report.page.templates import check_report, write_page
from bfreplay.runs.comparison_tables import option_text
from bfreplay.runs.headline_metrics import COLUMNS, cell_text, column_heading, split_constants
from bfreplay.runs.metric import exact
from bfreplay.wording import Column, count

if TYPE_CHECKING:
    import pandas as pd

    from bfreplay.experiments.sweep import SweepResult

_MOST_PANELS, _MOST_LINES = 3, 8


def write_sweep_report(sweep: SweepResult, out: Path | str, *, overwrite: bool = False) -> Path:
    """Write the page of a complete sweep; arguments and errors as ``write_report``."""
    file = check_report(out, overwrite=overwrite)
    differing, same = split_constants(sweep.headline())
    metrics = list(differing)
    inputs = sorted({digest for run in sweep.record.runs.values() for digest in (*run.events, *run.jobs)})
    table = _table(sweep, metrics, file.resolve().parent)
    text = result_page(
        command="sweep",
        title=f"{count(len(sweep.ids), 'run')} of the sweep {sweep.folder.resolve().name}",
        answer=_answer(sweep, metrics),
        cards=[],
        cautions=[*sweep.warnings, *sweep.errors],
        sections=[_picture(sweep, metrics), Section("runs", "Runs", same or "", tables=[table])],
        files=[],
        config=json.dumps({"spec": sweep.record.spec, "sha256_of_inputs": inputs}, indent=2),
        versions=sweep.record.versions,
    )
    return write_page(text, file, overwrite=overwrite)


def _answer(sweep: SweepResult, metrics: Sequence[str]) -> str:
    """Return the numbers of runs and of values, and where the first metric is highest and lowest."""
    varied = varied_options(sweep.table)
    over = f" over {values_words(varied)}" if varied else ""
    text = f"{count(len(sweep.ids), 'run')}{over}; {f'{sweep.n_failed:,}' if sweep.n_failed else 'none'} failed."
    if not metrics or not varied:
        return text
    name, ends = metrics[0], []
    rows = [row for row in sweep.results.to_pylist() if row[name] is not None]
    for word, choose in (("highest", max), ("lowest", min)):
        chosen = choose(rows, key=lambda row: row[name])
        options = " and ".join(f"{option} {option_text(chosen[option])}" for option in varied)
        ends.append(f"{word}, {cell_text(name, chosen[name])}, with {options}")
    return f"{text} The metric {column_heading(name)!r} is {'; '.join(ends)}."


def _picture(sweep: SweepResult, metrics: Sequence[str]) -> Section:
    """Return the picture that the spec asks for, else a default one; the reason where there is nothing to draw."""
    try:
        return section_of(SWEEP, lines_of(sweep, *(sweep.picture or axes_of(sweep.table, metrics))), [])
    except InputError as error:  # all runs failed, or are alike
        return Section(SWEEP.name, SWEEP.title, f"No picture: {error.problem}.")


def axes_of(table: pd.DataFrame, metrics: Sequence[str]) -> tuple[str, Sequence[str], Sequence[str]]:
    """Return the option with the most values (numbers rather than text), the first metrics, and few other options."""
    varied = varied_options(table)
    x = max(varied, key=lambda name: (varied[name], table[name].dtype.kind in "iuf"), default="id")
    others = [name for name in varied if name != x]
    n_lines = math.prod(varied[name] for name in others)
    return x, metrics[:_MOST_PANELS], others if n_lines <= _MOST_LINES else []


def _table(sweep: SweepResult, metrics: Sequence[str], beside: Path) -> PageTable:
    """Return a row for each point, with a link to the page of its run, or to the folder of the run."""
    options, rows = sweep.record.columns, sweep.results.to_pylist()
    columns = (
        *(Column(name, name, kind_of([row[name] for row in rows])) for name in options),
        *(Column(name, column_heading(name), COLUMNS[name].kind) for name in metrics),
        Column("status", "status"),
        Column("id", "run"),
    )
    cells = [
        [
            *(Cell(exact(row[name]), option_text(row[name])) for name in options),
            *(Cell(exact(row[name]), cell_text(name, row[name])) for name in metrics),
            Cell(row["status"], row["status"]),
            Cell(row["id"], row["id"], _link(sweep.folder, row["id"], beside)),
        ]
        for row in rows
    ]
    caption = "Options that vary, metrics that differ, and each run: its page where there is one, else its folder."
    return PageTable(caption, columns, cells, None)


def _link(folder: Path, run_id: str, beside: Path) -> str:
    run, failure = folder / "runs" / run_id, folder / "failures" / f"{run_id}.json"
    return href(failure if failure.is_file() else report_of(run) or run, beside)
