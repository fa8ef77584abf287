"""Assembles the page with its sentences and the provenance of its runs: one self-contained file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from markupsafe import Markup

from bfreplay import __version__
from bfreplay.datasets.log.log_warnings import Verdict
from bfreplay.report.figures.run_comparison import CAUSES, DIFFERENCES_OVER_TIME
from bfreplay.report.page.headline import (
    comparison_cards,
    first_view_end_s,
    have_same_jobs,
    key_figure_tables,
    run_cards,
    warnings_card,
)
from bfreplay.report.page.sections import Section, figure_sections, hour_sections, job_sections, page_table, section_of
from bfreplay.report.page.templates import check_report, figure_parts, page_parts, template, write_page
from bfreplay.result_folders.comparison import RunComparison
from bfreplay.result_folders.records import JsonObject
from bfreplay.runs.comparison_tables import (
    campaign_table,
    cause_table,
    hour_table,
    job_tables,
    jobs_words,
    option_table,
    options_words,
    total_table,
)
from bfreplay.runs.explain.saved_tables import SavedAllocations, jobs_frame
from bfreplay.runs.metric import KeyFigure, bound_words, is_one, number, number_of, show, show_count
from bfreplay.runs.metrics import key_figures
from bfreplay.runs.run_result import RunResult
from bfreplay.runs.run_warnings import labels_by_text
from bfreplay.runs.scheduling_metrics import cluster_of, is_about_scheduling, window_words
from bfreplay.runs.summary_text import policy_words

_SENTENCES = ("worth", "harmed", "waited", "decided")


def answer(run: RunResult, facts: Mapping[str, KeyFigure]) -> list[Markup]:
    """Return the worth of the samples, the delay of batch jobs, the waiting, and the proofs, a sentence each."""
    functions = {
        function.__name__: function
        for function in (
            are_done,
            bound_words,
            cluster_of,
            show_count,
            is_about_scheduling,
            is_one,
            number,
            policy_words,
            show,
        )
    }
    macros = template("answer.html.j2").make_module(functions)
    sentences = (getattr(macros, name)(run, facts) for name in _SENTENCES)
    return [*filter(None, sentences)]


def not_credible(runs: Sequence[RunResult]) -> list[Markup]:
    """Return the verdicts of logs whose idle nodes are not credible: all figures of the page depend on them."""
    logs = [run.record.inputs.events.metadata.log_warnings for run in runs]
    verdicts = dict.fromkeys(log.verdict_sentence() for log in logs if log.verdict is Verdict.NOT_CREDIBLE)
    return [Markup("<strong data-verbatim>{}</strong>").format(verdict) for verdict in verdicts]


def are_done(facts: Mapping[str, KeyFigure], baseline: str) -> bool:
    """Return whether all jobs were done in the run and in the baseline, so that times are compared."""
    return facts["done_s"].value is not None and facts[f"{baseline}.done_s"].value is not None


def cautions(run: RunResult, facts: Mapping[str, KeyFigure]) -> list[Markup]:
    """One entry a caution: the warnings, then about the log, the window, the jobs, and the decisions."""
    sentences: list[Markup] = []

    def caution(caller: Callable[[], Markup]) -> str:
        sentences.append(caller())
        return ""

    intervals = run.table("idle_intervals") if cluster_of(run.record) is None else None
    n_censored, n_intervals = (
        0 if intervals is None else sum(intervals[name].to_pylist()) for name in ("n_censored", "n_intervals")
    )
    template("cautions.html.j2").render(
        {function.__name__: function for function in (caution, show_count, is_one, number, number_of, show)},
        run=run,
        facts=facts,
        n_censored=n_censored,
        n_intervals=n_intervals,
        cut_off=[*_cut_off(run)],
        is_shared=SavedAllocations.of(run).is_shared,
        version=__version__,
    )
    return sentences


def ledger_check(run: RunResult) -> Markup:
    """State that the ledger closes and no file has changed; InputError where one has."""
    run.summary.ledger.close()
    run.check()
    check_words = " By their checksums the run's record and its tables are as they were written." if run.digests else ""
    return Markup("The ledger closes: every idle node-microsecond has one label.{}").format(check_words)


def _cut_off(run: RunResult) -> Iterator[tuple[str, str, int, str]]:
    """Jobs that could have gone on at the end of the window: "" or "at least ", key, number, status.

    Jobs submitted later, or that need more nodes than were ever idle at once, do not count. Of the latter only the
    number is recorded: they never started.
    """
    jobs = jobs_frame(run)
    has_started, status = jobs["first_start"].notna(), jobs["status"]
    for name in ("running", "paused", "waiting"):
        n_jobs = int((has_started & (status == name)).sum())
        if n_jobs:
            yield "", name, n_jobs, name
    is_present = status.isin(("waiting", "queued"))
    n_wide = run.summary.n_jobs_wider_than_the_pool
    n_jobs = int((~has_started & is_present).sum()) - n_wide
    if n_jobs > 0:
        # a job that is too wide may have been submitted later, or taken back by its source
        is_known = not n_wide or not (~has_started & ~is_present).any()
        yield "" if is_known else "at least ", "not_started", n_jobs, "not started"


def once_with_labels(sentences: Iterable[tuple[str, Markup]]) -> list[tuple[str, Markup]]:
    """Return each distinct sentence once, with the labels of its runs: ``A, B``."""
    return [(", ".join(labels), sentence) for sentence, labels in labels_by_text(sentences).items()]


_UNITS = (("days", 86_400), ("hours", 3_600), ("minutes", 60))


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
    page = one_run_page(run if isinstance(run, RunResult) else RunResult.load(run))
    return write_page(page, file, overwrite=overwrite)


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
    return write_page(comparison_page(runs, comparison), file, overwrite=overwrite)


def one_run_page(run_result: RunResult) -> str:
    """Return the page about one run."""
    sections = [*figure_sections({"": run_result}), *hour_sections(run_result), *job_sections(run_result)]
    return _page({"": run_result}, answer(run_result, key_figures(run_result)), sections)


def comparison_page(runs: Mapping[str, RunResult], comparison: RunComparison | None = None) -> str:
    """Return the page about several labelled runs, with the comparison of the others with the first.

    Runs on logs and on clusters have no time in common, and thus no figures over time.
    """
    has_time = len({cluster_of(run.record) for run in runs.values()}) == 1
    sentences: list[Markup] = []
    sections = [
        figure_section for figure_section in figure_sections(runs) if has_time or not figure_section.is_over_time
    ]
    if comparison is not None:
        sentences, sections = comparison_answer(comparison), [*comparison_sections(comparison), *sections]
    if not has_time:
        words = "Runs on a log and on clusters have no time in common: pictures of nodes over time are omitted"
        if not have_same_jobs([*runs.values()]):
            words += "; their jobs differ, so that times and samples do not compare"
        sentences.append(Markup(f"{words}."))
    return _page(runs, sentences, sections)


def comparison_answer(comparison: RunComparison) -> list[Markup]:
    """One or two sentences for each run but the baseline, as the record has them."""
    return [Markup("<span data-verbatim>{}</span>").format(pair.answer) for pair in comparison.pairs]


def comparison_sections(comparison: RunComparison) -> list[Section]:
    """Return the sections in order: options, over time, causes, job by job, and for a job source the campaign."""
    record = comparison.record
    pairs = record.pairs
    by_hour = [hour_table(record, pair) for pair in pairs]
    by_cause = [cause_table(record), total_table(record)]
    title, options = "What differs between the runs", [page_table(option_table(record))]
    sections = [
        Section("options", title, options_words(record), tables=options),
        section_of(DIFFERENCES_OVER_TIME, DIFFERENCES_OVER_TIME.data(comparison), by_hour),
        section_of(CAUSES, CAUSES.data(comparison), by_cause),
        Section("job-by-job", "Job by job", jobs_words(pairs), tables=[*map(page_table, job_tables(pairs))]),
    ]
    campaigns = [page_table(campaign_table(pair)) for pair in pairs if pair.campaign is not None]
    if campaigns:
        words = "Times at which trials finished and scores were reached."
        sections.append(Section("campaign", "The campaign", words, tables=campaigns))
    return sections


def _page(runs: Mapping[str, RunResult], sentences: Sequence[Markup], sections: Sequence[Section]) -> str:
    """Return the whole file: sentences below the headline figures, and sections in order."""
    all_runs = [*runs.values()]
    facts = {label: key_figures(run) for label, run in runs.items()}
    cautions_of_runs = once_with_labels(
        (label, caution) for label, run in runs.items() for caution in cautions(run, facts[label])
    )
    cards = run_cards(runs[""], facts[""]) if "" in runs else comparison_cards(runs, facts)
    start_us = all_runs[0].record.config.window_start_us
    figures = {section.name: section.pack(start_us) for section in sections}
    return template("page.html.j2").render(
        title=_title(all_runs),
        runs=runs,
        verdicts=not_credible(all_runs),
        cards=[*cards, warnings_card(len(cautions_of_runs))],
        answer=sentences,
        figures_tables=key_figure_tables(facts),
        cautions=cautions_of_runs,
        ledger_checks=once_with_labels((label, ledger_check(run)) for label, run in runs.items()),
        sections=sections,
        version=__version__,
        window_text=window_text,
        input_files=_input_files,
        config_text=lambda run: json.dumps(run.record.config.to_json(), indent=2, sort_keys=True),
        **figure_parts(figures, _window(all_runs)),
        **page_parts(),
    )


def _title(runs: Sequence[RunResult]) -> str:
    """Title of the page and its tab."""
    places = []
    for run in runs:
        cluster, log_cluster = cluster_of(run.record), run.record.inputs.events.metadata.cluster
        suffix = f" of {cluster or log_cluster}" if cluster or log_cluster else ""
        places.append(("a cluster" if cluster is not None else "idle nodes") + suffix)
    places_text = " and on ".join(dict.fromkeys(places))
    return (
        f"Training on {places_text}" if len(runs) == 1 else f"{len(runs)} runs of training on {places_text}, compared"
    )


def _window(runs: Sequence[RunResult]) -> JsonObject:
    """Return the times for the scripts: see ``time_view.js``."""
    first_run = runs[0]
    start_us, duration_s = first_run.record.config.window_start_us, first_run.summary.duration_s
    unit, unit_s = next((entry for entry in _UNITS if duration_s >= 2 * entry[1]), ("seconds", 1))
    return {
        "start_ms": None if first_run.record.inputs.is_relative else start_us / 1000,
        "duration_s": duration_s,
        "shown_s": first_view_end_s(runs),
        "unit": unit,
        "unit_s": unit_s,
    }


def window_text(run_result: RunResult) -> str:
    """``2021-02-10 00:48:48 to 2021-02-24 22:19:29 UTC``, or ``0 to 2 h after the start of the log``."""
    words = window_words(run_result.record)
    return words if run_result.record.inputs.is_relative else f"{words.replace('T', ' ').replace('Z', '')} UTC"


def _input_files(run_result: RunResult) -> list[tuple[str, str, str]]:
    """Use, name and SHA-256 of each input file."""
    inputs = run_result.record.inputs
    digests = {input_file.sha256 for input_file in (*inputs.events.files, *inputs.jobs.files)}
    sources = [source_file for source_file in inputs.events.metadata.source_files if source_file.sha256 not in digests]
    files = {"events": inputs.events.files, "jobs": inputs.jobs.files, "made from": sources}
    return [(purpose, input_file.name, input_file.sha256) for purpose, of_use in files.items() for input_file in of_use]
