"""Sections of the page about several runs that tell of their comparison: its answer, its pictures and its tables."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from bfreplay.report.figures_runs import differences_over_time, waterfalls
from bfreplay.report.page.cells import PageTable, page_table
from bfreplay.report.page.comparison.figures import causes_page, causes_words, over_time_page, over_time_words
from bfreplay.report.page.comparison.tables import (
    campaign_table,
    cause_table,
    hour_table,
    job_measure_table,
    model_table,
    option_table,
    status_table,
    total_table,
)
from bfreplay.report.page.sections import Section
from bfreplay.report.tables import ShownTable
from bfreplay.result_folders.comparison import ComparisonRecord, RunComparison, RunDifference
from bfreplay.wording import count


def comparison_answer(comparison: RunComparison) -> list[Markup]:
    """One or two sentences for each run but the baseline, as the record has them."""
    return [Markup("<span data-verbatim>{}</span>").format(pair.answer) for pair in comparison.pairs]


def comparison_sections(comparison: RunComparison) -> list[Section]:
    """In the order of the page: differing options, over time, causes, job by job, and for a source its campaign."""
    record = comparison.record
    pairs = record.pairs
    over_time, causes = differences_over_time(comparison), waterfalls(comparison)
    sections = [
        Section("options", "What differs between the runs", _options_words(record), None, _shown(option_table(record))),
        Section("differences-over-time", "Differences over time", over_time_words(over_time, record),
                over_time_page(over_time), _shown(*(hour_table(record, pair) for pair in pairs))),
        Section("causes", "What made the differences", causes_words(causes),
                causes_page(causes), _shown(cause_table(record), total_table(record))),
        Section("job-by-job", "Job by job", _jobs_words(pairs), None, _shown(*_job_tables(pairs))),
    ]  # fmt: skip
    campaigns = _shown(*(campaign_table(pair) for pair in pairs if pair.campaign is not None))
    if campaigns:
        words = "When trials were finished, and when scores were reached."
        sections.append(Section("campaign", "The campaign", words, None, campaigns))
    return sections


def _shown(*tables: ShownTable) -> list[PageTable]:
    return [page_table(table) for table in tables]


def _options_words(record: ComparisonRecord) -> str:
    options = [row.option for row in record.options]
    if not options:
        return "All options of the runs are the same."
    return f"The runs differ in {', '.join(options)}; all other options, the log, the window and the jobs are the same."


def _jobs_words(pairs: Sequence[RunDifference]) -> str:
    told = []
    for pair in pairs:
        jobs, b, a = pair.jobs, pair.run, pair.baseline
        text = f"{b} against {a}: {count(jobs.n_jobs, 'pair')} of jobs"
        for key, words in (
            ("only_in_baseline", f"only in {a}"),
            ("only_in_other", f"only in {b}"),
            ("n_other_params", "with other parameters in both, not paired"),
        ):
            if jobs[key]:
                text += f", {jobs[key]:,} {words}"
        told.append(f"{text}.")
    told.append("Jobs of a run share its nodes, so they are not independent: intervals tell of the jobs' spread.")
    return "\n".join(told)


def _job_tables(pairs: Sequence[RunDifference]) -> list[ShownTable]:
    tables = []
    for pair in pairs:
        tables.append(job_measure_table(pair))
        if pair.jobs.status_changes:
            tables.append(status_table(pair))
        if pair.jobs.models:
            tables.append(model_table(pair))
    return tables
