"""Puts the page together, with where its runs came from: one file that needs nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from bfreplay import __version__
from bfreplay.errors import InputError, OutputExistsError
from bfreplay.outputs import is_there, written_whole
from bfreplay.report.figures.marks import DARK, LIGHT
from bfreplay.report.page.answer import answer, not_credible
from bfreplay.report.page.cautions import cautions, ledger_check
from bfreplay.report.page.sections import (
    FIRST_ROWS,
    Cell,
    PageTable,
    Section,
    figure_sections,
    job_sections,
    packed_steps,
)
from bfreplay.report.page.templates import HERE, template
from bfreplay.report.shown_values import Column, exact, written
from bfreplay.result_folders.records import JsonObject
from bfreplay.runs.metrics import KeyFigure, key_figures
from bfreplay.runs.run_result import RunResult
from bfreplay.runs.run_warnings import labels_by_text
from bfreplay.runs.scheduling_metrics import cluster_of, window_words

if TYPE_CHECKING:
    from bfreplay.result_folders.comparison import RunComparison

_SCRIPTS = ("unpack", "steps", "tables", "theme", "time_view", "main")
_AFTER_PLOTLY = "figures"
_UNITS = (("days", 86_400), ("hours", 3_600), ("minutes", 60))


@dataclass(frozen=True, slots=True)
class Page:
    """What the template fills in.

    Parameters
    ----------
    title
        Of the page.
    answer
        Sentences at the top.
    figures_table
        Key figures, a column a run.
    cautions
        What to bear in mind; with the label of the run where there are several.
    ledger_checks
        Ledger closes and files unchanged, one sentence a run.
    sections
        In the order of the page.
    runs
        By their labels on the page.
    window
        What the page needs to know of time: see ``time_view.js``.
    """

    title: str
    answer: Sequence[Markup | str]
    figures_table: PageTable
    cautions: Sequence[tuple[str, Markup]]
    ledger_checks: Sequence[tuple[str, Markup]]
    sections: Sequence[Section]
    runs: Mapping[str, RunResult]
    window: JsonObject


def write_report(run: RunResult | Path | str, out: Path | str, *, overwrite: bool = False) -> Path:
    """Write the page about one run.

    Parameters
    ----------
    run
        A run, or its folder.
    out
        The file to write, which ends in ``.html``; it appears when it is complete.
    overwrite
        Replace a file that is there.

    Raises
    ------
    InputError, OutputExistsError
        The folder is no run, or is damaged or half-written; or the file cannot be written.
    """
    file = check_report(out, overwrite=overwrite)
    return _write(one_run_page(_loaded(run)), file, overwrite=overwrite)


def write_comparison_report(
    runs: Sequence[RunResult | Path | str], comparison: RunComparison, out: Path | str, *, overwrite: bool = False
) -> Path:
    """Write the page about several runs; arguments and errors as ``write_report``.

    Parameters
    ----------
    runs
        In the order of the comparison.
    comparison
        What ``bfreplay compare runs --out`` made of the same runs.
    """
    file = check_report(out, overwrite=overwrite)
    return _write(comparison_page([*map(_loaded, runs)], comparison), file, overwrite=overwrite)


def check_report(out: Path | str, *, overwrite: bool) -> Path:
    """Raise what writing a page to ``out`` would, before any work is done."""
    file = Path(out)
    if file.suffix.lower() not in (".html", ".htm"):
        raise InputError("the report is an HTML page", file=file, value=file.name, expected="a name ending in .html")
    taken = is_there(file)
    if file.is_dir():
        raise InputError("there is a folder where the report should be", file=file, fix="choose another name")
    if taken and not overwrite:
        raise OutputExistsError(
            f"{file} is there already; choose another name, or replace it with --force (Python: overwrite=True)"
        )
    return file


def one_run_page(run: RunResult) -> Page:
    """The page about one run."""
    sections = [*figure_sections({"": run}), *job_sections(run)]
    return _page({"": run}, answer(run, key_figures(run)), sections)


def comparison_page(runs: Sequence[RunResult], comparison: RunComparison) -> Page:
    """The page about several runs, the first of which the others are compared with."""
    from bfreplay.report.page.comparison_sections import comparison_answer, comparison_sections

    by_label = dict(zip((each.run for each in comparison.record.runs), runs, strict=True))
    sections = [*comparison_sections(comparison), *figure_sections(by_label)]
    return _page(by_label, [*not_credible(runs), *comparison_answer(comparison)], sections)


def _page(runs: Mapping[str, RunResult], sentences: Sequence[Markup], sections: Sequence[Section]) -> Page:
    facts = {label: key_figures(run) for label, run in runs.items()}
    return Page(
        title=_title([*runs.values()]),
        answer=sentences,
        figures_table=_key_figures(facts),
        cautions=_together((label, each) for label, run in runs.items() for each in cautions(run, facts[label])),
        ledger_checks=_together((label, ledger_check(run)) for label, run in runs.items()),
        sections=sections,
        runs=runs,
        window=_window(next(iter(runs.values()))),
    )


def html_of(page: Page) -> str:
    """The whole file."""
    from plotly.offline import get_plotlyjs

    start_us = page.window["start_us"]
    figures = {
        section.name: {
            "traces": section.figure.traces,
            "layout": section.figure.layout,
            "height": section.figure.height,
            "series": {name: packed_steps(series, start_us) for name, series in section.figure.series.items()},
        }
        for section in page.sections
        if section.figure is not None
    }
    return template("page.html.j2").render(
        page=page,
        first_rows=FIRST_ROWS,
        version=__version__,
        window_text=window_text,
        input_files=_input_files,
        config_text=lambda run: json.dumps(run.record.config.to_json(), indent=2, sort_keys=True),
        plotly=Markup(_inside_script(get_plotlyjs())),
        scripts=[script(name) for name in _SCRIPTS],
        last_script=script(_AFTER_PLOTLY),
        figures=_json(figures),
        window=_json({key: value for key, value in page.window.items() if key != "start_us"}),
        **page_parts(),
    )


def page_parts() -> dict[str, Any]:
    """Values that the templates of all pages need: style sheet and colours."""
    return {
        "light": LIGHT,
        "dark": DARK,
        "style": Markup((HERE / "page.css").read_text(encoding="utf-8")),
        "palettes": _json({"light": LIGHT, "dark": DARK}),
    }


def _loaded(run: RunResult | Path | str) -> RunResult:
    return run if isinstance(run, RunResult) else RunResult.load(run)


def _write(page: Page, file: Path, *, overwrite: bool) -> Path:
    text = html_of(page)
    with written_whole([file], overwrite) as (part,):
        part.write_text(text, encoding="utf-8")
    return file


def _together(said: Iterable[tuple[str, Markup]]) -> list[tuple[str, Markup]]:
    """What is said of several runs alike is said once: ``A, B``."""
    return [(", ".join(labels), each) for each, labels in labels_by_text(said).items()]


def _key_figures(facts: Mapping[str, Mapping[str, KeyFigure]]) -> PageTable:
    """Facts that one of the runs has, a column a run."""
    first = next(iter(facts.values()))
    columns = (
        Column("what", "key figure"),
        *(Column(label or "value", label or "value", "number") for label in facts),
    )
    rows = [
        [
            Cell(fact.key, fact.words),
            *(Cell(exact(each[key].value), written(each[key].value, fact.kind)) for each in facts.values()),
        ]
        for key, fact in first.items()
        # there is a number, and it is not that of a status which no job has
        if any(each[key].value not in ((None, 0) if key.startswith("jobs.") else (None,)) for each in facts.values())
    ]
    return PageTable("Key figures", columns, rows, None)


def _title(runs: Sequence[RunResult]) -> str:
    """Of the page and its tab."""
    own = cluster_of(runs[0].record)
    cluster = runs[0].record.inputs.events.metadata.cluster
    on = "a cluster" if own is not None else "idle nodes"
    where = f" of {own or cluster}" if own or cluster else ""
    return (f"Training on {on}" if len(runs) == 1 else f"{len(runs)} runs of training on {on}, compared") + where


def _window(run: RunResult) -> JsonObject:
    start_us, duration_s = run.record.config.window_start_us, run.summary.duration_s
    unit, unit_s = next((each for each in _UNITS if duration_s >= 2 * each[1]), ("seconds", 1))
    return {
        "start_us": start_us,
        "start_ms": None if run.record.inputs.is_relative else start_us / 1000,
        "duration_s": duration_s,
        "unit": unit,
        "unit_s": unit_s,
    }


def _json(document: Any) -> Markup:
    """JSON for a script element: nothing in it can end the element."""
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))


def script(name: str) -> Markup:
    """A script of the pages, without its ending."""
    return Markup(_inside_script((HERE / f"{name}.js").read_text(encoding="utf-8")))


def _inside_script(text: str) -> str:
    """A script whose texts do not end the element that it stands in."""
    return text.replace("</script", "<\\/script")


def window_text(run: RunResult) -> str:
    """``2021-02-10 00:48:48 to 2021-02-24 22:19:29 UTC``, or ``0 to 2 h after the start of the log``."""
    words = window_words(run.record)
    return words if run.record.inputs.is_relative else f"{words.replace('T', ' ').replace('Z', '')} UTC"


def _input_files(run: RunResult) -> list[tuple[str, str, str]]:
    """What each file was for, its name, and its SHA-256."""
    inputs = run.record.inputs
    known = {each.sha256 for each in (*inputs.events.files, *inputs.jobs.files)}
    sources = [each for each in inputs.events.metadata.source_files if each.sha256 not in known]
    files = {"events": inputs.events.files, "jobs": inputs.jobs.files, "made from": sources}
    return [(what, each.name, each.sha256) for what, those in files.items() for each in those]
