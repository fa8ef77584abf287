"""Tables of a comparison of runs, shared by its text and its page, with the words for its measures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bfreplay.result_folders.comparison import ComparisonRecord, RunDifference
from bfreplay.runs.metrics import HELD_NOTHING_MADE
from bfreplay.wording import Column, ShownTable, count, duration

_ROUNDING = 1e-9

HOUR_WORDS = {
    "samples": "samples",
    "held_node_hours": "node-hours held",
    "free_node_hours": "node-hours idle and free",
    "rescale_cost_samples": "samples charged for rescales",
    "preemption_cost_samples": "samples charged for preemptions",
    "n_scale_ups": "rescales up",
    "n_scale_downs": "rescales down",
    "n_preemptions": "preemptions",
}
"""Measures of each bin of time."""

CAUSE_WORDS = {
    "node_hours": "more or fewer used node-hours",
    "samples_per_node_hour": "samples per used node-hour",
    "rescaling": "rescaling",
    "preemption": "preemption",
    "repeated": "work lost since checkpoints",
    "trimmed": "made after the work was done",
}
"""Parts of a difference in samples."""

JOB_WORDS = {
    "finish_s": "finish",
    "start_s": "first start",
    "waiting_s": "waiting",
    "done_samples": "samples done",
    "useful_node_hours": "useful node-hours",
}
"""Measures of each job."""

TOTALS = {
    "samples": "samples",
    "used_node_hours": "node-hours used",
    "useful_node_hours": "node-hours useful",
    "rescaling_node_hours": "node-hours of rescaling",
    "preempted_node_hours": "node-hours preempted",
    "repeated_node_hours": "node-hours repeated",
    "unallocated_node_hours": "node-hours unallocated",
    "stalled_node_hours": f"node-hours stalled: {HELD_NOTHING_MADE}",
    "gross_samples_per_used_node_hour": "samples made per used node-hour",
    "rescale_samples": "samples that rescaling cost",
    "preemption_samples": "samples that preemption cost",
    "repeated_samples": "samples lost since checkpoints",
    "n_scale_ups": "rescales up",
    "n_scale_downs": "rescales down",
    "n_preemptions": "preemptions",
    "n_batch_starts_met": "starts of batch jobs that met a training",
    "batch_delay_node_hours": "node-hours of delay to batch jobs",
    "n_decisions": "decisions",
}
"""Totals of each run, by column of its metric."""


def but_rounding(difference: float, level: float) -> float:
    """Return ``difference``, or 0 where it is within rounding of ``level``."""
    return 0.0 if abs(difference) <= _ROUNDING * abs(level) else difference


def option_text(value: Any) -> str:
    """Text of an option's value in tables; a dash where the run does not have the option."""
    return "-" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def unpaired_jobs(pair: RunDifference) -> Iterator[tuple[int, str]]:
    """Yield the number of jobs without a partner in the other run, by reason, without zeros."""
    for reason_key, words in (
        ("only_in_baseline", f"only in {pair.baseline}"),
        ("only_in_other", f"only in {pair.run}"),
        ("n_other_params", "with other parameters in both, not paired"),
    ):
        if pair.jobs[reason_key]:
            yield pair.jobs[reason_key], words


def bin_words(seconds: float) -> str:
    """Length of a bin: ``1 h``, not ``60.0 min``."""
    hours = seconds / 3_600
    return f"{hours:,.0f} h" if hours >= 1 and hours == round(hours) else duration(seconds)


def options_words(record: ComparisonRecord) -> str:
    """Return a sentence on the options in which the runs differ."""
    options = [row.option for row in record.options]
    if not options:
        return "All options of the runs are the same."
    same = "" if "log" in options else ", the log, the window"
    n_alone = sum(pair.jobs.only_in_baseline + pair.jobs.only_in_other for pair in record.pairs)
    jobs = "the file of jobs is the same, but not all jobs are in all runs" if n_alone else "the jobs are the same"
    return f"The runs differ in {', '.join(options)}; all other options{same} and {jobs}."


def jobs_words(pairs: Sequence[RunDifference]) -> str:
    """Return sentences on the pairs of jobs that are compared, a line each."""
    sentences = []
    for pair in pairs:
        partner_words = "".join(f", {n_jobs:,} {words}" for n_jobs, words in unpaired_jobs(pair))
        sentences.append(
            f"{pair.run} against {pair.baseline}: {count(pair.jobs.n_jobs, 'pair')} of jobs{partner_words}."
        )
    sentences.append("Jobs of a run share its nodes, so they are not independent: intervals describe their spread.")
    return "\n".join(sentences)


def job_tables(pairs: Sequence[RunDifference]) -> Iterator[ShownTable]:
    """Yield the tables of jobs, pair by pair."""
    for pair in pairs:
        yield job_measure_table(pair)
        if pair.jobs.status_changes:
            yield status_table(pair)
        if pair.jobs.models:
            yield model_table(pair)


_JOBS = {name: f"{words}, h" if name.endswith("_s") else words for name, words in JOB_WORDS.items()}


def option_table(record: ComparisonRecord) -> ShownTable:
    """Folder and policy of each run, and the options that differ; ``None`` for a missing option."""
    runs = record.runs
    columns = (Column("option", "Option"), *(Column(run.run, run.run) for run in runs))
    names, policies = [run.name or "in memory" for run in runs], [run.policy for run in runs]
    rows: list[list[Any]] = [["run", *names], ["policy", *policies]]
    for row in record.options:
        if row.option != "policy.name":
            rows.append([row.option, *(None if value is None else option_text(value) for value in row.values)])
    return ShownTable("The runs, and the options in which they differ", columns, rows)


def hour_table(record: ComparisonRecord, pair: RunDifference) -> ShownTable:
    """Sums over the window, their difference, and its 95 % interval by blocks of neighbouring bins."""
    other, baseline = pair.run, pair.baseline
    columns = [
        Column("measure", "Sum over the window"),
        Column("baseline", baseline, "amount"),
        Column("other", other, "amount"),
        Column("difference", f"{other} - {baseline}", "signed"),
        Column("relative", f"of {baseline}'s", "percent"),
        Column("low", "95 % interval from", "signed"),
        Column("high", "to", "signed"),
        Column("n", "bins", "count"),
        Column("block_length", "bins in a block", "count"),
    ]
    reasons = [hour_row.total.why_no_interval for hour_row in pair.hours]
    if any(reasons):
        columns.append(Column("why_no_interval", "no interval because"))
    rows = []
    for hour_row, reason in zip(pair.hours, reasons, strict=True):
        total, below, above = hour_row.total, hour_row.baseline, hour_row.other
        difference = but_rounding(total.value or 0.0, below)
        if hour_row.measure.startswith("n_"):
            below, above, difference = round(below), round(above), round(difference)
        cells = [
            HOUR_WORDS[hour_row.measure],
            below,
            above,
            difference,
            difference / below if below else None,
            total.low,
            total.high,
            total.n,
            total.block_length,
        ]
        rows.append([*cells, reason] if any(reasons) else cells)
    return ShownTable(f"{other} against {baseline}, by bins of {bin_words(record.config.bin_s)}", tuple(columns), rows)


def cause_table(record: ComparisonRecord) -> ShownTable:
    """Parts of each difference in samples, which add up to it; shares are of the baseline's samples."""
    columns = [Column("part", "Part of the difference")]
    for pair in record.pairs:
        other, baseline = pair.run, pair.baseline
        columns.append(Column(f"samples.{other}", f"{other} - {baseline}, samples", "signed"))
        columns.append(Column(f"share.{other}", f"{other} - {baseline}, of {baseline}'s", "percent"))
    rows: list[list[Any]] = []
    for name in [*CAUSE_WORDS, None]:
        if name == "repeated" and not any(pair.causes.repeated for pair in record.pairs):
            continue  # most runs have no work at risk
        cells_of_cause: list[Any] = ["all" if name is None else CAUSE_WORDS[name]]
        for pair in record.pairs:
            below = pair.samples.baseline
            size = but_rounding(pair.samples.difference if name is None else pair.causes[name], below)
            cells_of_cause += [size, size / below if below else None]
        rows.append(cells_of_cause)
    return ShownTable("Causes of the differences in samples", tuple(columns), rows)


def total_table(record: ComparisonRecord) -> ShownTable:
    """Node-hours, samples and counts of every run, without those that are 0 in all."""
    pairs = record.pairs
    totals = {pairs[0].baseline: pairs[0].totals.baseline}
    totals |= {pair.run: pair.totals.other for pair in pairs}
    columns = (Column("total", "Total"), *(Column(run, run, "amount") for run in totals))
    rows = [
        [words, *(total.get(name) for total in totals.values())]
        for name, words in TOTALS.items()
        if any(total.get(name) for total in totals.values())
    ]
    return ShownTable("Totals of the runs", columns, rows)


def job_measure_table(pair: RunDifference) -> ShownTable:
    """Differences job by job: jobs better and worse, the median with its interval, and the spread of the jobs."""
    other, baseline = pair.run, pair.baseline
    columns = (
        Column("measure", f"{other} - {baseline}, by job"),
        Column("n_both", "jobs in both", "count"),
        Column("n_better", "better", "count"),
        Column("n_equal", "equal", "count"),
        Column("n_worse", "worse", "count"),
        Column("median", "median", "signed"),
        Column("median_low", "95 % interval from", "signed"),
        Column("median_high", "to", "signed"),
        Column("p2_5", "95 % of the jobs from", "signed"),
        Column("p97_5", "to", "signed"),
    )
    rows = [
        [
            _JOBS[row.measure],
            *(row[name] for name in ("n_both", "n_better", "n_equal", "n_worse")),
            *(_in_hours(row.measure, row[name]) for name in ("median", "median_low", "median_high", "p2_5", "p97_5")),
        ]
        for row in pair.jobs.measures
        if row.n_both or row.only_in_baseline or row.only_in_other
    ]
    return ShownTable(f"{other} against {baseline}, job by job", columns, rows)


def status_table(pair: RunDifference) -> ShownTable:
    """Jobs whose status differs."""
    other, baseline = pair.run, pair.baseline
    columns = (
        Column("baseline", f"Status in {baseline}"),
        Column("other", f"in {other}"),
        Column("n_jobs", "jobs", "count"),
    )
    changes = pair.jobs.status_changes
    rows = [[change.baseline.replace("_", " "), change.other.replace("_", " "), change.n_jobs] for change in changes]
    return ShownTable(f"Jobs with another status in {other} than in {baseline}", columns, rows)


def model_table(pair: RunDifference) -> ShownTable:
    """Median differences model by model."""
    other, baseline = pair.run, pair.baseline
    rows_of = {(row.model, row.measure): row for row in pair.jobs.models}
    measures = [name for name in _JOBS if any(row.n_both for pair_key, row in rows_of.items() if pair_key[1] == name)]
    columns = [Column("model", "Model"), Column("n_jobs", "pairs", "count")]
    columns += [Column(name, f"median of {_JOBS[name]}", "signed") for name in measures]
    rows = []
    for model in dict.fromkeys(model for model, _ in rows_of):
        medians = (_in_hours(name, rows_of[model, name].median) for name in measures)
        rows.append([model, rows_of[model, "done_samples"].n_both, *medians])
    return ShownTable(f"{other} - {baseline} by model", tuple(columns), rows)


def campaign_table(pair: RunDifference) -> ShownTable:
    """Times of finished trials, of the end of the search and of scores, in hours from the start of the window."""
    campaign, other, baseline = pair.campaign, pair.run, pair.baseline
    assert campaign is not None
    columns = (
        Column("milestone", "Milestone"),
        Column("baseline", baseline, "amount"),
        Column("other", other, "amount"),
        Column("difference", f"{other} - {baseline}", "signed"),
    )
    keys = ("baseline", "other", "difference")
    rows: list[list[Any]] = [
        [f"trial {row.k:,} finished ({row.which}), h", *(_in_hours("_s", row[which_run]) for which_run in keys)]
        for row in campaign.finished
    ]
    rows.append(["search finished, h", *(_in_hours("_s", campaign.over[which_run]) for which_run in keys)])
    best_times = campaign.reached
    if best_times is not None:
        words = f"score {best_times.score:.6g} reached, h"
        rows.append([words, *(_in_hours("_s", best_times[which_run]) for which_run in keys)])
        rows.append(["best score", *(campaign.best_score[which_run] for which_run in keys)])
    return ShownTable(f"{other} against {baseline}, the campaign", columns, rows)


def _in_hours(measure: str, value: float | None) -> float | None:
    """Seconds become hours; other measures stay."""
    return None if value is None else value / 3_600 if measure.endswith("_s") else value
