"""The page of a sweep: its answer, its picture, and a table of its runs with links to them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from bfreplay.errors import InputError
from bfreplay.options import field_name
from bfreplay.report.figures.sweep_picture import SATURATED_ABOVE, SWEEP, suitable_axes, swept_lines
from bfreplay.report.page.headline import Card, warnings_card
from bfreplay.report.page.run_list_page import href, kind_of, report_of
from bfreplay.report.page.sections import Cell, PageTable, Section, result_page, section_of
from bfreplay.report.page.templates import check_report, write_page
from bfreplay.result_folders.tuning import InputFile
from bfreplay.runs.comparison_tables import option_text
from bfreplay.runs.headline_metrics import COLUMNS, cell_text, column_heading, split_constants
from bfreplay.runs.shown_values import exact, number
from bfreplay.wording import Column, count

if TYPE_CHECKING:
    from bfreplay.experiments.sweep import SweepResult

_MOST_ERRORS = 5


def write_sweep_report(sweep: SweepResult, out: Path | str, *, overwrite: bool = False) -> Path:
    """Write the page of a complete sweep; arguments and errors as ``write_report``."""
    file = check_report(out, overwrite=overwrite)
    metrics, same = split_constants(sweep.headline())
    shown = [name for name in metrics if COLUMNS[name].kind != "text"]
    cautions = [*sweep.warnings, *_errors(sweep)]
    table = _table(sweep, list(metrics), file.resolve().parent)
    text = result_page(
        command="sweep",
        title=f"{count(len(sweep.ids), 'run')} of the sweep {sweep.folder.resolve().name}",
        answer=_answer(sweep, shown),
        cards=[*_cards(sweep, shown), warnings_card(len(cautions))],
        cautions=cautions,
        sections=[_picture(sweep, shown), Section("runs", "Runs", same or "", tables=[table])],
        files=_files(sweep),
        config=json.dumps(sweep.record.spec, indent=2, sort_keys=True),
        versions=sweep.record.versions,
    )
    return write_page(text, file, overwrite=overwrite)


def _answer(sweep: SweepResult, metrics: Sequence[str]) -> str:
    """Return numbers of runs, what varies, and where the first metric is highest and lowest."""
    options = {name: sweep.table[name].astype(str).nunique() for name in sweep.record.columns}
    varied = [f"{name} ({count(n_values, 'value')})" for name, n_values in options.items() if n_values > 1]
    text = count(len(sweep.ids), "run") + (f" over {' and '.join(varied)}" if varied else "")
    text += f": {sweep.n_failed:,} failed." if sweep.n_failed else ", none failed."
    for name in metrics[:1]:
        values = sweep.table[name].dropna()
        ends = []
        for words, position in (("highest", int(values.argmax())), ("lowest", int(values.argmin()))):
            point = sweep.table[[*sweep.record.columns]].loc[values.index[position]]
            options_text = " and ".join(f"{option} {option_text(value)}" for option, value in point.items())
            ends.append(f"{words}, {cell_text(name, values.iloc[position])}, with {options_text}")
        text += f" The metric {column_heading(name)!r} is {' and '.join(ends)}."
    return text


def _cards(sweep: SweepResult, metrics: Sequence[str]) -> list[Card]:
    failed = f"{sweep.n_failed:,} failed" if sweep.n_failed else "none failed"
    cards = [Card("Runs", number("runs", len(sweep.ids), "count"), escape(failed))]
    for name in metrics[:3]:
        values, kind = sweep.table[name].dropna(), COLUMNS[name].kind
        ends = [number(f"{name}.{end}", getattr(values, end)(), kind) for end in ("min", "max")]
        cards.append(Card(column_heading(name), Markup(" to ").join(ends), escape("lowest to highest")))
    return cards


def _picture(sweep: SweepResult, metrics: Sequence[str]) -> Section:
    """Return the picture that the spec asks for, or one of the options that vary."""
    asked = sweep.record.spec.get("picture")
    if asked is None:
        x, y, by = suitable_axes(sweep.table, sweep.record.columns, metrics)
    else:
        y, by = ([names] if isinstance(names, str) else names for names in (asked["y"], asked.get("by", [])))
        x, by = field_name(asked["x"]), [*map(field_name, by)]
    try:
        lines = swept_lines(sweep.table, x, y, by, saturated_above=SATURATED_ABOVE if sweep.ends_with_jobs else None)
    except InputError as error:  # all runs failed, or are alike
        return Section(SWEEP.name, SWEEP.title, f"{error.problem[0].upper()}{error.problem[1:]}.")
    return section_of(SWEEP, lines, [])


def _files(sweep: SweepResult) -> list[InputFile]:
    """Logs and jobs of the runs; of one in several files the digests of all."""
    digests = {
        (Path(run.paths[kind]).name, " ".join(getattr(run, kind)))
        for run in sweep.record.runs.values()
        for kind in ("events", "jobs")
        if kind in run.paths
    }
    return [InputFile(name=name, sha256=sha256) for name, sha256 in sorted(digests)]


def _errors(sweep: SweepResult) -> list[str]:
    """Distinct errors of failed runs, with their numbers."""
    errors = sweep.table["error"].dropna().value_counts()
    return [f"Error of {count(n_rows, 'row')}: {error}" for error, n_rows in errors.head(_MOST_ERRORS).items()]


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
