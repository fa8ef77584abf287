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
from bfreplay.runs.comparison_tables import option_text
from bfreplay.runs.headline_metrics import COLUMNS, cell_text, column_heading, split_constants
from bfreplay.runs.shown_values import exact, number
from bfreplay.wording import Column, count

if TYPE_CHECKING:
    from bfreplay.experiments.sweep import SweepResult

_MOST_CARDS, _MOST_ERRORS = 3, 5


def write_sweep_report(sweep: SweepResult, out: Path | str, *, overwrite: bool = False) -> Path:
    """Write the page of a complete sweep; arguments and errors as ``write_report``."""
    file = check_report(out, overwrite=overwrite)
    metrics, same = split_constants(sweep.headline())
    shown = [name for name in metrics if COLUMNS[name].kind != "text"]
    cautions = [*sweep.warnings, *_errors(sweep)]
    inputs = sorted({digest for run in sweep.record.runs.values() for digest in (*run.events, *run.jobs)})
    table = _table(sweep, list(metrics), file.resolve().parent)
    text = result_page(
        command="sweep",
        title=f"{count(len(sweep.ids), 'run')} of the sweep {sweep.folder.resolve().name}",
        answer=_answer(sweep, shown),
        cards=[*_cards(sweep, shown), warnings_card(len(cautions))],
        cautions=cautions,
        sections=[_picture(sweep, shown), Section("runs", "Runs", same or "", tables=[table])],
        files=[],
        config=json.dumps({"spec": sweep.record.spec, "sha256_of_inputs": inputs}, indent=2),
        versions=sweep.record.versions,
    )
    return write_page(text, file, overwrite=overwrite)


def _answer(sweep: SweepResult, metrics: Sequence[str]) -> str:
    """Return numbers of runs, what varies, and where the first metric is highest and lowest."""
    table, options = sweep.table, list(sweep.record.columns)
    of_option = table[options].astype(str).nunique().items()
    varied = " and ".join(f"{name} ({count(n_values, 'value')})" for name, n_values in of_option if n_values > 1)
    failed = f"{sweep.n_failed:,} failed" if sweep.n_failed else "none failed"
    text = f"{count(len(sweep.ids), 'run')}{f' over {varied}' if varied else ''}, {failed}."
    for name in metrics[:1]:
        values, ends = table[name].dropna(), []
        for word, position in (("highest", int(values.argmax())), ("lowest", int(values.argmin()))):
            point = table[options].loc[values.index[position]].items()
            options_text = " and ".join(f"{option} {option_text(value)}" for option, value in point)
            ends.append(f"{word}, {cell_text(name, values.iloc[position])}, with {options_text}")
        text += f" The metric {column_heading(name)!r} is {'; '.join(ends)}."
    return text


def _cards(sweep: SweepResult, metrics: Sequence[str]) -> list[Card]:
    """Return a card for each of the first metrics: lowest and highest value."""
    cards = []
    for name in metrics[:_MOST_CARDS]:
        values = sweep.table[name].dropna()
        ends = [number(f"{name}.{end}", getattr(values, end)(), COLUMNS[name].kind) for end in ("min", "max")]
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
