"""Text about a comparison of runs."""

from __future__ import annotations

from collections.abc import Callable

from bfreplay.datasets.times import iso_utc
from bfreplay.experiments.run_comparison.answer import signed_percent
from bfreplay.experiments.run_comparison.pairing import LOG
from bfreplay.result_folders.comparison import (
    CAUSES,
    ComparisonRecord,
    JobShares,
    Pair,
    ReachedScore,
    RunComparison,
    RunDifference,
)
from bfreplay.runs.comparison_words import (
    CAUSE_WORDS,
    HOUR_WORDS,
    JOB_WORDS,
    TOTALS,
    but_rounding,
    option_text,
    unpaired_jobs,
)
from bfreplay.runs.run_warnings import warning_lines
from bfreplay.wording import aligned_lines, amount, count, duration, paragraphs, signed_amount

_SHORT = {
    "useful_node_hours": "  useful",
    "rescaling_node_hours": "  rescaling",
    "preempted_node_hours": "  preempted",
    "unallocated_node_hours": "node-hours unallocated",
    "stalled_node_hours": "node-hours stalled",
}
_IN_OTHER_TABLES = ("samples", "gross_samples_per_used_node_hour", "rescale_samples", "preemption_samples")
_TOTALS = {name: _SHORT.get(name, words) for name, words in TOTALS.items() if name not in _IN_OTHER_TABLES}


def render(comparison: RunComparison) -> str:
    """Return the comparison as text: warnings, answers, options, and for each run hours, causes, jobs, campaign."""
    record = comparison.record
    parts = [warning_lines(record.warnings), comparison.answers, _runs(record)]
    for pair in record.pairs:
        bins = round(record.config.bin_s)
        parts += [_hours(pair, bins), _causes(pair), _totals(pair), _jobs(pair), _models(pair), _campaign(pair)]
    if comparison.folder is not None:
        parts.append([f"Comparison folder  {comparison.folder}"])
    return paragraphs(parts)


def _runs(record: ComparisonRecord) -> list[str]:
    config = record.config
    start, end = iso_utc(config.window_start_us), iso_utc(config.window_end_us)
    length = duration((config.window_end_us - config.window_start_us) / 1e6)
    cells = [["", *(run.run for run in record.runs)]]
    cells.append(["run", *(run.name or "in memory" for run in record.runs)])
    cells += [[row.option, *map(option_text, row.values)] for row in record.options]
    if not record.options:
        cells.append(["options", *(["the same"] * len(record.runs))])
    window = f"Window  {start} to {end} ({length})"
    if any(row.option == LOG for row in record.options):
        window += " of A; the bins of a run count from its own start"
    return [window, *aligned_lines(cells)]


def _hours(pair: RunDifference, bin_s: int) -> list[str]:
    other, baseline = pair.run, pair.baseline
    cells = [
        ["", baseline, other, f"{other} - {baseline}", "relative", f"95 % interval of {other} - {baseline}", "blocks"]
    ]
    for row in pair.hours:
        total = row.total
        difference = but_rounding(total.value or 0.0, row.baseline)
        share = signed_percent(difference / row.baseline) if row.baseline and difference else ""
        ends = _range(total.low, total.high, signed_amount) or "none"
        length = total.block_length
        levels = [round(row[key]) if row.measure.startswith("n_") else row[key] for key in ("baseline", "other")]
        if row.measure.startswith("n_"):
            difference = round(difference)
        cells.append(
            [
                HOUR_WORDS[row.measure],
                *map(amount, levels),
                signed_amount(difference),
                share,
                ends,
                "" if length is None else f"{total.n} / {length}",
            ]
        )
    reasons = {row.total.why_no_interval: None for row in pair.hours if row.total.why_no_interval}
    bins = duration(bin_s) if bin_s != 3_600 else "1 h"
    notes = [
        f"Sums over the window; intervals by blocks of neighbouring bins of {bins} (bins / bins in a block).",
        "Samples charged for a rescale are lost in the pause after it, a few of them after the window.",
        *(f"No interval: {reason}." for reason in reasons),
    ]
    lines = [f"{other} against {baseline}, bin by bin", *aligned_lines(cells), *notes]
    return lines + (_idle_ends(pair) if pair.campaign is None else [])


def _idle_ends(pair: RunDifference) -> list[str]:
    """Return sentences on runs without jobs before the end of the window."""
    return [
        f"{label} had no work left after {duration(pair.over[key])}: use more jobs, or --unlimited-work"
        for key, label in (("baseline", pair.baseline), ("other", pair.run))
        if pair.over[key] is not None
    ]


def _causes(pair: RunDifference) -> list[str]:
    other, baseline = pair.run, pair.baseline
    below, difference = pair.samples.baseline, pair.samples.difference

    def line(word: str, size: float) -> list[str]:
        size = but_rounding(size, below)
        return [word, signed_amount(size), signed_percent(size / below) if below else ""]

    cells = [["", "samples", f"of {baseline}'s"]]
    cells += [line(CAUSE_WORDS[name], pair.causes[name]) for name in CAUSES]
    cells.append(line(f"all: {other} - {baseline}", difference))
    return [f"Causes of the difference of {other} and {baseline} (the parts add up)", *aligned_lines(cells)]


def _totals(pair: RunDifference) -> list[str]:
    other, baseline = pair.run, pair.baseline
    baseline_totals, other_totals = pair.totals.baseline, pair.totals.other
    cells = [["", baseline, other, f"{other} - {baseline}"]]
    for name, word in _TOTALS.items():
        if name in baseline_totals and name in other_totals and (baseline_totals[name] or other_totals[name]):
            difference = but_rounding(other_totals[name] - baseline_totals[name], baseline_totals[name])
            cells.append(
                [f"| {word}", amount(baseline_totals[name]), amount(other_totals[name]), signed_amount(difference)]
            )
    return [line.removeprefix("| ").rstrip() if line.startswith("| ") else line[2:] for line in aligned_lines(cells)]


def _jobs(pair: RunDifference) -> list[str]:
    jobs, other, baseline = pair.jobs, pair.run, pair.baseline
    cells = [
        ["", f"in {baseline} and {other}", "better", "equal", "worse", "median", "95 % interval", "95 % of the jobs"]
    ]
    for row in jobs.measures:
        if not row.n_both and not row.only_in_baseline and not row.only_in_other:
            continue
        format_value = _seconds if row.measure.endswith("_s") else signed_amount
        ends = _range(row.median_low, row.median_high, format_value) or "none"
        spread = _range(row.p2_5, row.p97_5, format_value)
        line = [*_shares(row), _or_dash(row.median, format_value), ends, spread]
        if row.measure != "waiting_s" or line != cells[-1][1:]:  # all jobs were submitted at the same times
            cells.append([JOB_WORDS[row.measure], *line])
    lines = [f"{other} against {baseline}, job by job ({count(jobs.n_jobs, 'pair')})"]
    if len(cells) > 1:
        lines += aligned_lines(cells)
        lines.append("Jobs of a run share its nodes, so they are not independent: intervals describe their spread.")
    else:
        lines.append("No job did anything in either.")
    for change in jobs.status_changes:
        status_before, status_after = (change[key].replace("_", " ") for key in ("baseline", "other"))
        lines.append(f"{count(change.n_jobs, 'job')} {status_before} in {baseline}, {status_after} in {other}")
    lines += [f"{count(n_jobs, 'job')} {words}" for n_jobs, words in unpaired_jobs(pair)]
    return lines


def _shares(row: JobShares) -> list[str]:
    n_jobs = row.n_both + row.only_in_baseline + row.only_in_other
    if row.n_better is None:
        return [f"{row.n_both:,}", "", f"{row.n_equal / n_jobs * 100:.0f} %", ""]
    return [f"{row.n_both:,}", *(f"{row[key] / n_jobs * 100:.0f} %" for key in ("n_better", "n_equal", "n_worse"))]


def _models(pair: RunDifference) -> list[str]:
    """Return the median differences by model, of measures that some job has in both runs."""
    rows = pair.jobs.models
    if not rows:
        return []
    measures = {row.measure for row in rows if row.n_both}
    format_of_measure = {
        name: _seconds if name.endswith("_s") else signed_amount
        for name in JOB_WORDS
        if name in measures - {"waiting_s"}
    }
    row_of = {(row.model, row.measure): row for row in rows}
    cells = [["median by model", "pairs", *(JOB_WORDS[name] for name in format_of_measure)]]
    for model in dict.fromkeys(row.model for row in rows):
        medians = [
            _or_dash(row_of[model, name].median, format_value) for name, format_value in format_of_measure.items()
        ]
        cells.append([model, f"{row_of[model, 'done_samples'].n_both:,}", *medians])
    return aligned_lines(cells)


def _campaign(pair: RunDifference) -> list[str]:
    campaign, other, baseline = pair.campaign, pair.run, pair.baseline
    if campaign is None:
        return []
    cells = [["", baseline, other, f"{other} - {baseline}"]]
    for row in campaign.finished:
        cells.append([f"trial {row.k:,} finished ({row.which})", *_three(row, duration, _seconds)])
    cells.append(["search finished", *_three(campaign.over, duration, _seconds)])
    if campaign.reached is not None:
        score = f"simulated score {campaign.reached.score:.6g} reached"
        cells.append([score, *_three(campaign.reached, duration, _seconds)])
        cells.append(
            [
                "best simulated score",
                *_three(
                    campaign.best_score, "{:.6g}".format, lambda difference: f"{difference:+.6g}" if difference else "0"
                ),
            ]
        )
    return [f"{other} against {baseline}, the campaign", *aligned_lines(cells)]


def _three(
    row: Pair | ReachedScore, plain_text: Callable[[float], str], signed_text: Callable[[float], str]
) -> list[str]:
    return [_or_dash(row.baseline, plain_text), _or_dash(row.other, plain_text), _or_dash(row.difference, signed_text)]


def _or_dash(value: float | None, format_value: Callable[[float], str]) -> str:
    return "-" if value is None else format_value(value)


def _range(low: float | None, high: float | None, format_value: Callable[[float], str]) -> str:
    return "" if low is None or high is None else f"{format_value(low)} to {format_value(high)}"


def _seconds(value: float) -> str:
    return "0" if not value else f"{'-' if value < 0 else '+'}{duration(abs(value))}"
