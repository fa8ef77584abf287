"""Assembles the page with the provenance of its runs: one self-contained file."""

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
from bfreplay.report.page.cards import Card, comparison_cards, have_same_jobs, run_cards, shown_until_s, warnings_card
from bfreplay.report.page.cautions import cautions, ledger_check
from bfreplay.report.page.sections import FIRST_ROWS, Cell, PageTable, Section, figure_sections, job_sections
from bfreplay.report.page.templates import HERE, template
from bfreplay.result_folders.records import JsonObject
from bfreplay.runs.metrics import KeyFigure, key_figures, value_text
from bfreplay.runs.run_result import RunResult
from bfreplay.runs.run_warnings import labels_by_text
from bfreplay.runs.scheduling_metrics import cluster_of, window_words
from bfreplay.runs.shown_values import Column, exact

if TYPE_CHECKING:
    from bfreplay.result_folders.comparison import RunComparison

_SCRIPTS = ("unpack", "steps", "tables", "theme", "time_view", "main")
_AFTER_PLOTLY = "figures"
_UNITS = (("days", 86_400), ("hours", 3_600), ("minutes", 60))


@dataclass(frozen=True, slots=True)
class Page:
    """Values for the template of the page.

    Parameters
    ----------
    title
        Title of the page.
    verdicts
        Verdicts on logs whose idle nodes are not credible.
    cards
        Headline figures.
    answer
        Sentences below them.
    figures_tables
        Key figures, a column a run: the most important or differing dozen, and the rest.
    cautions
        Warnings and notes, with the label of the run if there are several.
    ledger_checks
        Ledger closes and files unchanged, one sentence a run.
    sections
        Sections in order.
    runs
        Runs by their labels on the page.
    window
        Times for the scripts: see ``time_view.js``.
    """

    title: str
    verdicts: Sequence[Markup]
    cards: Sequence[Card]
    answer: Sequence[Markup | str]
    figures_tables: Sequence[PageTable]
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
    return _write(one_run_page(run if isinstance(run, RunResult) else RunResult.load(run)), file, overwrite=overwrite)


def write_comparison_report(
    runs: Mapping[str, RunResult], out: Path | str, comparison: RunComparison | None = None, *, overwrite: bool = False
) -> Path:
    """Write the page about several runs; arguments and errors as ``write_report``.

    Parameters
    ----------
    runs
        Runs by their labels, in the order of the comparison.
    comparison
        Result of ``bfreplay compare runs`` on the same runs; ``None`` for runs on a log and on clusters whose jobs
        differ, which cannot be compared.
    """
    file = check_report(out, overwrite=overwrite)
    return _write(comparison_page(runs, comparison), file, overwrite=overwrite)


def check_report(out: Path | str, *, overwrite: bool) -> Path:
    """Raise the errors of writing a page to ``out``, before any work is done."""
    file = Path(out)
    if file.suffix.lower() not in (".html", ".htm"):
        raise InputError("the page is an HTML file", file=file, value=file.name, expected="a name ending in .html")
    taken = is_there(file)
    if file.is_dir():
        raise InputError("there is a folder where the report should be", file=file, fix="choose another name")
    if taken and not overwrite:
        raise OutputExistsError(f"{file} exists already; choose another name, or replace it with --force")
    return file


def one_run_page(run: RunResult) -> Page:
    """Return the page about one run."""
    sections = [*figure_sections({"": run}), *job_sections(run)]
    return _page({"": run}, answer(run, key_figures(run)), sections)


def comparison_page(runs: Mapping[str, RunResult], comparison: RunComparison | None = None) -> Page:
    """Return the page about several labelled runs, with the comparison of the others with the first.

    Runs on logs and on clusters have no time in common, and thus no figures over time.
    """
    has_time = len({cluster_of(run.record) for run in runs.values()}) == 1
    sentences: list[Markup] = []
    sections = [
        figure_section for figure_section in figure_sections(runs) if has_time or not figure_section.is_over_time
    ]
    if comparison is not None:
        from bfreplay.report.page.comparison_sections import comparison_answer, comparison_sections

        sentences, sections = comparison_answer(comparison), [*comparison_sections(comparison), *sections]
    if not has_time:
        words = "Runs on a log and on clusters have no time in common: pictures of nodes over time are omitted"
        if not have_same_jobs([*runs.values()]):
            words += "; their jobs differ, so that times and samples do not compare"
        sentences.append(Markup(f"{words}."))
    return _page(runs, sentences, sections)


def _page(runs: Mapping[str, RunResult], sentences: Sequence[Markup], sections: Sequence[Section]) -> Page:
    facts = {label: key_figures(run) for label, run in runs.items()}
    warned = _together((label, caution) for label, run in runs.items() for caution in cautions(run, facts[label]))
    cards = run_cards(runs[""], facts[""]) if "" in runs else comparison_cards(runs, facts)
    return Page(
        title=_title([*runs.values()]),
        verdicts=not_credible([*runs.values()]),
        cards=[*cards, warnings_card(len(warned))],
        answer=sentences,
        figures_tables=_key_figures(facts),
        cautions=warned,
        ledger_checks=_together((label, ledger_check(run)) for label, run in runs.items()),
        sections=sections,
        runs=runs,
        window=_window([*runs.values()]),
    )


def html_of(page: Page) -> str:
    """Return the whole file."""
    from plotly.offline import get_plotlyjs

    figures = {section.name: section.pack(page.window["start_us"]) for section in page.sections}
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
        figures=_json({name: figure for name, figure in figures.items() if figure is not None}),
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


def _write(page: Page, file: Path, *, overwrite: bool) -> Path:
    text = html_of(page)
    with written_whole([file], overwrite) as (part,):
        part.write_text(text, encoding="utf-8")
    return file


def _together(sentences: Iterable[tuple[str, Markup]]) -> list[tuple[str, Markup]]:
    """Return each distinct sentence once, with the labels of its runs: ``A, B``."""
    return [(", ".join(labels), each) for each, labels in labels_by_text(sentences).items()]


_FIRST = (
    "nodes",
    "idle.node_hours",
    "idle.mean_nodes",
    "node_hours.useful",
    "share.useful",
    "utilisation",
    "samples",
    "u",
    "bound.share",
    "done_s",
    "dedicated.done_s",
    "bound.done_s",
    "jobs",
    "jobs.finished",
    "best.score",
    "jct.mean_s",
    "submit_to_start.median_s",
    "node_hours.rescaling",
    "node_hours.preempted",
    "preemptions",
    "decisions",
)
_A_DOZEN = 12


def _key_figures(facts: Mapping[str, Mapping[str, KeyFigure]]) -> list[PageTable]:
    """Key figures of the runs, a column a run: first those that matter most, or that differ."""
    first = next(iter(facts.values()))
    columns = (Column("what", "key figure"), *(Column(label or "value", label or "value", "number") for label in facts))
    rows = {
        key: [
            Cell(key, fact.words),
            *(Cell(exact(each[key].value), value_text(each[key].value, fact.kind)) for each in facts.values()),
        ]
        for key, fact in first.items()
        # there is a number, and it is not that of a status which no job has
        if any(fact[key].value not in ((None, 0) if key.startswith("jobs.") else (None,)) for fact in facts.values())
    }
    differ = [key for key, row in rows.items() if len({cell.text for cell in row[1:]}) > 1]
    # where all work is done, only times tell policies apart
    no_matter = (
        {"u", "bound.share"} if all(fact["bound.done_s"].value is not None for fact in facts.values()) else set()
    )
    first_keys = [key for key in _FIRST if key not in no_matter]
    order = [*(key for key in first_keys if key in differ), *differ, *(key for key in first_keys if key in rows)]
    shown = [*dict.fromkeys(order)][:_A_DOZEN]
    rest = [row for key, row in rows.items() if key not in shown]
    return [
        PageTable("Key figures", columns, [row for key, row in rows.items() if key in shown], None),
        PageTable("Other figures", columns, rest, None),
    ]


def _title(runs: Sequence[RunResult]) -> str:
    """Title of the page and its tab."""
    places = []
    for run in runs:
        own, log = cluster_of(run.record), run.record.inputs.events.metadata.cluster
        where = f" of {own or log}" if own or log else ""
        places.append(("a cluster" if own is not None else "idle nodes") + where)
    on = " and on ".join(dict.fromkeys(places))
    return f"Training on {on}" if len(runs) == 1 else f"{len(runs)} runs of training on {on}, compared"


def _window(runs: Sequence[RunResult]) -> JsonObject:
    run = runs[0]
    start_us, duration_s = run.record.config.window_start_us, run.summary.duration_s
    unit, unit_s = next((each for each in _UNITS if duration_s >= 2 * each[1]), ("seconds", 1))
    return {
        "start_us": start_us,
        "start_ms": None if run.record.inputs.is_relative else start_us / 1000,
        "duration_s": duration_s,
        "shown_s": shown_until_s(runs),
        "unit": unit,
        "unit_s": unit_s,
    }


def _json(document: Any) -> Markup:
    """JSON for a script element, which it cannot end."""
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))


def script(name: str) -> Markup:
    """Return a script of the pages by name, without its ending."""
    return Markup(_inside_script((HERE / f"{name}.js").read_text(encoding="utf-8")))


def _inside_script(text: str) -> str:
    """Escape a script so that its texts do not end its element."""
    return text.replace("</script", "<\\/script")


def window_text(run: RunResult) -> str:
    """``2021-02-10 00:48:48 to 2021-02-24 22:19:29 UTC``, or ``0 to 2 h after the start of the log``."""
    words = window_words(run.record)
    return words if run.record.inputs.is_relative else f"{words.replace('T', ' ').replace('Z', '')} UTC"


def _input_files(run: RunResult) -> list[tuple[str, str, str]]:
    """Use, name and SHA-256 of each input file."""
    inputs = run.record.inputs
    known = {each.sha256 for each in (*inputs.events.files, *inputs.jobs.files)}
    sources = [source_file for source_file in inputs.events.metadata.source_files if source_file.sha256 not in known]
    files = {"events": inputs.events.files, "jobs": inputs.jobs.files, "made from": sources}
    return [(use, each.name, each.sha256) for use, of_use in files.items() for each in of_use]
