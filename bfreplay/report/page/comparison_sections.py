"""Sections of the page with the comparison of runs: answer, pictures and tables."""

from __future__ import annotations

from markupsafe import Markup

from bfreplay.report.figures.run_comparison import CAUSES, DIFFERENCES_OVER_TIME
from bfreplay.report.page.sections import Section, page_table, section_of
from bfreplay.result_folders.comparison import RunComparison
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
        words = "Times at which trials finished and simulated scores were reached."
        sections.append(Section("campaign", "The campaign", words, tables=campaigns))
    return sections
