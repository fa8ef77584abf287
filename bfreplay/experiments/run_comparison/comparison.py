"""``compare``: paired differences of finished replays of one log and one set of jobs, and their text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from bfreplay import checks
from bfreplay.datasets.times import iso_utc
from bfreplay.experiments.run_comparison.answer import answer_of
from bfreplay.experiments.run_comparison.confidence import (
    LEAST_BINS,
    LEAST_BLOCKS,
    LENGTHEN,
    LEVEL,
    MEASURES,
    US_PER_S,
    Band,
    RunHours,
    best_known_idle,
    bin_edges,
    hours_table,
    mean_difference,
    relative_difference,
    run_hours,
)
from bfreplay.experiments.run_comparison.job_differences import (
    campaign_differences,
    job_differences,
    jobs_table,
    pair_jobs,
    run_jobs,
)
from bfreplay.experiments.run_comparison.pairing import (
    LOG,
    check_pairing,
    differing_options,
    have_same_nodes,
    labels_of,
)
from bfreplay.experiments.study_options import RESAMPLES, Bootstrap
from bfreplay.options import checked_keywords
from bfreplay.result_folders.comparison import (
    Both,
    Causes,
    ComparedRun,
    ComparisonConfig,
    ComparisonRecord,
    Estimate,
    HourMeasure,
    JobDifferences,
    RunDifference,
    SamplesDifference,
)
from bfreplay.result_folders.comparison import RunComparison as RunComparison
from bfreplay.result_folders.records import COMPARISON, JsonObject, table_by
from bfreplay.result_folders.writing import new_folder, write_result
from bfreplay.runs.comparison_tables import (
    TOTALS,
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
from bfreplay.runs.metrics import BY_COLUMN
from bfreplay.runs.run_result import RunResult
from bfreplay.runs.run_warnings import distinct_warnings, warning_lines
from bfreplay.versions import versions
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


_NUMBERS = ("difference", "low", "high")
CUMULATIVE = pa.schema(
    [("run", pa.string()), ("time", pa.timestamp("us", tz="UTC")), *((name, pa.float64()) for name in _NUMBERS)]
)
_EQUAL = 1e-9
_BY_CONSTRUCTION = "all jobs were done in both runs, so that both processed the same"


@checked_keywords()
def compare(
    *runs: RunResult | str | Path,
    bin: str | float = "1h",
    seed: int = 0,
    resamples: int = RESAMPLES,
    out: str | Path | None = None,
    overwrite: bool = False,
    pictures: Callable[[Path], object] | None = None,
    session: JsonObject | None = None,
) -> RunComparison:
    """Compare finished replays of the same jobs in the same window of the same log with the first of them.

    Runs on a cluster are compared with runs on a log, or on another cluster, from the start of each.

    Parameters
    ----------
    runs
        Two or more runs, or their folders. The first is the baseline, A.
    bin
        Length of the bins of time: ``"1h"``, ``"10min"``, or seconds.
    seed
        Seed of the bootstrap, >= 0.
    resamples
        Number of series, and of sets of jobs, that the bootstrap draws, >= 100.
    out
        Folder to write, made when the comparison is complete; by default nothing is written.
    overwrite
        Replace an existing comparison folder.
    pictures
        Called with the complete but not yet renamed folder, to draw into it: ``bfreplay.report.draw_comparison``.
    session
        More entries for the record's ``session``, such as the command line.

    Raises
    ------
    InputError, OutputExistsError
        A folder is no run, the runs are not paired (another log, window or jobs), an option is invalid, or the
        output folder cannot be used.
    """
    begin_time = datetime.now(UTC).isoformat(timespec="seconds")
    bin_s = checks.length_of_time("bin", bin)
    bootstrap = Bootstrap(seed=seed, resamples=resamples)
    results = [run if isinstance(run, RunResult) else RunResult.load(run) for run in runs]
    labels = labels_of(len(results))
    check_pairing(results, labels)
    config = results[0].record.config
    # lengths differ where runs end with their jobs, starts where one ran on a cluster
    lengths_us = [run.record.config.window_end_us - run.record.config.window_start_us for run in results]
    end_us = config.window_start_us + max(lengths_us)
    edges = bin_edges(config.window_start_us, end_us, bin_s)
    with new_folder(out, COMPARISON, overwrite=overwrite) as folder:
        idle = best_known_idle([run for run in results if have_same_nodes(results[0], run)], edges)
        hours = [
            run_hours(run, edges, idle)
            if have_same_nodes(results[0], run)
            else run_hours(run, edges + (run.record.config.window_start_us - config.window_start_us))
            for run in results
        ]
        sides = list(map(_Side, labels, results, hours))
        jobs = [run_jobs(run) for run in results]
        paired_jobs = [pair_jobs(jobs[0], job) for job in jobs[1:]]
        pairs, bands = [], []
        for side, pair_of_jobs in zip(sides[1:], paired_jobs, strict=True):
            of_jobs = job_differences(pair_of_jobs, bootstrap)
            run_difference, band = _difference(sides[0], side, of_jobs, bootstrap)
            pairs.append(msgspec.structs.replace(run_difference, answer=answer_of(run_difference)))
            bands.append(band)
        tables = {
            "hours": hours_table(hours, labels),
            "cumulative": _cumulative_table(bands, labels[1:], edges),
            "jobs": jobs_table(paired_jobs, labels[1:]),
        }
        record = ComparisonRecord(
            schema_version=COMPARISON.schema_version,
            versions=versions(),
            config=ComparisonConfig(
                bin_s=bin_s,
                **asdict(bootstrap),
                level=LEVEL,
                least_bins=LEAST_BINS,
                least_blocks=LEAST_BLOCKS,
                lengthen_blocks=LENGTHEN,
                window_start_us=config.window_start_us,
                window_end_us=end_us,
                unlimited_work=config.unlimited_work,
            ),
            inputs=results[0].record.inputs.to_json(),
            runs=[
                ComparedRun(
                    run=label,
                    name=None if run.folder is None else run.folder.name,
                    policy=run.record.config.policy_description.name,
                )
                for label, run in zip(labels, results, strict=True)
            ],
            warnings=distinct_warnings([(label, run.warnings) for label, run in zip(labels, results, strict=True)]),
            options=differing_options(results),
            pairs=pairs,
            session={
                "started": begin_time,
                "folders": [None if run.folder is None else str(run.folder) for run in results],
                **(session or {}),
            },
        )
        record = write_result(folder, record, tables, COMPARISON, pictures)
    return RunComparison(record, None if out is None else Path(out).resolve(), tables)


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """A run of a pair: its label, its result, and its measures in each bin."""

    label: str
    run: RunResult
    hours: RunHours


def _difference(
    baseline: _Side, other: _Side, jobs: JobDifferences, bootstrap: Bootstrap
) -> tuple[RunDifference, Band]:
    """Return the difference of two runs without the answer, and the band of the picture."""
    rows, bands = [], {}
    last = [run.record.config.after_s(run.summary.last_finish_us) for run in (baseline.run, other.run)]
    over = Both(baseline=last[0], other=last[1])
    is_same = have_same_nodes(baseline.run, other.run)
    n_bins = _bins_with_jobs(baseline.hours, over) if is_same else baseline.hours.edge_us.size - 1
    totals = Both(baseline=totals_of(baseline.run), other=totals_of(other.run))
    is_equal_by_construction = _equal_by_construction(baseline.run, other.run)
    for measure in MEASURES:
        baseline_values, other_values = baseline.hours.values[measure], other.hours.values[measure]
        difference = _without_rounding(baseline_values, other_values)[:n_bins]
        mean, bands[measure] = mean_difference(difference, bootstrap)
        if measure == "samples" and is_equal_by_construction and difference.any():
            mean = Estimate.alone(mean.value, n_bins, _BY_CONSTRUCTION)
            nothing = np.full(bands[measure].bins.size, np.nan)
            bands[measure] = replace(bands[measure], low=nothing, high=nothing)
        sums = {"baseline": float(baseline_values.sum()), "other": float(other_values.sum())}
        rows.append(HourMeasure(measure=measure, **sums, mean=mean, total=mean.times(n_bins)))
    baseline_values, other_values = baseline.hours.values["samples"], other.hours.values["samples"]
    of_both = (baseline_values[:n_bins], (baseline_values + _without_rounding(baseline_values, other_values))[:n_bins])
    relative = relative_difference(*of_both, bootstrap)
    if is_equal_by_construction and (baseline_values != other_values).any():
        relative = Estimate.alone(relative.value, n_bins, _BY_CONSTRUCTION)
    samples_a, samples_b = totals.baseline["samples"], totals.other["samples"]
    run_difference = RunDifference(
        run=other.label,
        baseline=baseline.label,
        samples=SamplesDifference(
            baseline=samples_a,
            other=samples_b,
            difference=samples_b - samples_a,
            relative=relative,
            equal_by_construction=is_equal_by_construction,
        ),
        hours=rows,
        causes=causes_of(baseline.run, other.run),
        totals=totals,
        over=over,
        campaign=campaign_differences(baseline.run, other.run),
        jobs=jobs,
        answer="",
    )
    return run_difference, bands["samples"]


def _without_rounding(baseline: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return ``other - a``; 0 where they differ by rounding only."""
    difference = other - baseline
    # cumulated sums are interpolated, so errors are relative to the largest of them
    slack = 1e-12 * max(float(np.abs(baseline).sum()), float(np.abs(other).sum()))
    return np.where(np.abs(difference) <= slack, 0.0, difference)


def _equal_by_construction(baseline: RunResult, other: RunResult) -> bool:
    """Return whether both runs did all the work of the same jobs."""
    if baseline.record.inputs.jobs.of_source:
        return False
    are_finished = all(run.summary.last_finish_us is not None for run in (baseline, other))
    samples = [run.summary.ledger.samples for run in (baseline, other)]
    return are_finished and abs(samples[0] - samples[1]) <= _EQUAL * max(samples)


def _bins_with_jobs(hours: RunHours, over: Both[float | None]) -> int:
    """Return the number of bins until all jobs of both runs ended; later bins are equal."""
    n_bins = hours.edge_us.size - 1
    if over.baseline is None or over.other is None:
        return n_bins
    last_us = round(max(over.baseline, over.other) * US_PER_S)
    return max(1, int(np.searchsorted(hours.edge_us[:-1] - hours.edge_us[0], last_us, side="left")))


def _cumulative_table(bands: Sequence[Band], labels: Sequence[str], edges: np.ndarray[Any, Any]) -> pa.Table:
    tables = [CUMULATIVE.empty_table()]
    for band, label in zip(bands, labels, strict=True):
        times = edges[band.bins].astype("datetime64[us]")
        columns = [[label] * band.bins.size, times, band.value, band.low, band.high]
        tables.append(table_by(CUMULATIVE, columns))
    return pa.concat_tables(tables)


def causes_of(baseline: RunResult, other: RunResult) -> Causes:
    """Return the parts of ``other - baseline``.

    A run without used node-hours gets the rate of the other run: the whole difference is due to node-hours.
    """
    baseline_ledger, other_ledger = baseline.summary.ledger, other.summary.ledger
    hours_a, hours_b = baseline_ledger.node_hours.used, other_ledger.node_hours.used
    gross_a, gross_b = baseline_ledger.gross_samples, other_ledger.gross_samples
    by_hours, by_rate = gross_b - gross_a, 0.0
    if hours_a > 0.0 and hours_b > 0.0:
        rate_a, rate_b = gross_a / hours_a, gross_b / hours_b
        by_hours = (hours_b - hours_a) * (rate_a + rate_b) / 2
        by_rate = (rate_b - rate_a) * (hours_a + hours_b) / 2
    return Causes(
        node_hours=by_hours,
        samples_per_node_hour=by_rate,
        rescaling=baseline_ledger.rescale_samples - other_ledger.rescale_samples,
        preemption=baseline_ledger.preemption_samples - other_ledger.preemption_samples,
        repeated=baseline_ledger.repeated_samples - other_ledger.repeated_samples,
        trimmed=baseline_ledger.trimmed_samples - other_ledger.trimmed_samples,
    )


def totals_of(run: RunResult) -> dict[str, int | float]:
    """Return the metrics of one run that are compared, by ``TOTALS``, without those that it does not have."""
    return {metric_name: value for metric_name in TOTALS if (value := BY_COLUMN[metric_name].of(run)) is not None}
