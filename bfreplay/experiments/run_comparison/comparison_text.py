"""Text about a comparison of runs."""

from __future__ import annotations

from bfreplay.datasets.times import iso_utc
from bfreplay.experiments.run_comparison.pairing import LOG
from bfreplay.result_folders.comparison import ComparisonRecord, RunComparison, RunDifference
from bfreplay.runs.comparison_tables import (
    bin_words,
    campaign_table,
    cause_table,
    hour_table,
    job_tables,
    jobs_words,
    option_table,
    options_words,
    total_table,
)
from bfreplay.runs.run_warnings import warning_lines
from bfreplay.wording import duration, paragraphs


def render(comparison: RunComparison) -> str:
    """Return the comparison as text: warnings, answers, options, then the tables of hours, causes, jobs, campaign."""
    record, pairs = comparison.record, comparison.pairs
    campaigns = [campaign_table(pair).lines() for pair in pairs if pair.campaign is not None]
    folder = [] if comparison.folder is None else [f"Comparison folder  {comparison.folder}"]
    return paragraphs(
        [
            warning_lines(record.warnings),
            comparison.answers,
            [_window(record), *([] if record.options else [options_words(record)])],
            option_table(record).lines(),
            *(_hours(record, pair) for pair in pairs),
            cause_table(record).lines(),
            total_table(record).lines(),
            [jobs_words(pairs)],
            *(table.lines() for table in job_tables(pairs)),
            *campaigns,
            folder,
        ]
    )


def _window(record: ComparisonRecord) -> str:
    config = record.config
    length = duration((config.window_end_us - config.window_start_us) / 1e6)
    window = f"Window  {iso_utc(config.window_start_us)} to {iso_utc(config.window_end_us)} ({length})"
    is_of_first = any(row.option == LOG for row in record.options)
    return f"{window} of A; the bins of a run count from its own start" if is_of_first else window


def _hours(record: ComparisonRecord, pair: RunDifference) -> list[str]:
    """Return the table of hours, with notes on intervals and on runs without jobs before the end of the window."""
    reasons = dict.fromkeys(row.total.why_no_interval for row in pair.hours if row.total.why_no_interval)
    over = {pair.baseline: pair.over.baseline, pair.run: pair.over.other} if pair.campaign is None else {}
    return [
        *hour_table(record, pair).without("n", "why_no_interval").lines(),
        f"Intervals by blocks of neighbouring bins of {bin_words(record.config.bin_s)}.",
        "Samples charged for a rescale are lost in the pause after it, a few of them after the window.",
        *(f"No interval: {reason}." for reason in reasons),
        *(
            f"{label} had no work left after {duration(over_s)}: use more jobs, or --unlimited-work"
            for label, over_s in over.items()
            if over_s is not None
        ),
    ]
