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
_SHOWN_ELSEWHERE = ("samples", "gross_samples_per_used_node_hour", "rescale_samples", "preemption_samples")
_TOTALS = {name: _SHORT.get(name, words) for name, words in TOTALS.items() if name not in _SHOWN_ELSEWHERE}


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
    b, a = pair.run, pair.baseline
    cells = [["", a, b, f"{b} - {a}", "relative", f"95 % interval of {b} - {a}", "blocks"]]
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
    whys = {row.total.why_no_interval: None for row in pair.hours if row.total.why_no_interval}
    bins = duration(bin_s) if bin_s != 3_600 else "1 h"
    notes = [
        f"Sums over the window; intervals by blocks of neighbouring bins of {bins} (bins / bins in a block).",
        "Samples charged for a rescale are lost in the pause after it, a few of them after the window.",
        *(f"No interval: {why}." for why in whys),
    ]
    lines = [f"{b} against {a}, bin by bin", *aligned_lines(cells), *notes]
    return lines + (_idle_ends(pair) if pair.campaign is None else [])


def _idle_ends(pair: RunDifference) -> list[str]:
    """Return sentences on runs without jobs before the end of the window."""
    return [
        f"{label} had no work left after {duration(pair.over[key])}: use more jobs, or --unlimited-work"
        for key, label in (("baseline", pair.baseline), ("other", pair.run))
        if pair.over[key] is not None
    ]


def _causes(pair: RunDifference) -> list[str]:
    b, a = pair.run, pair.baseline
    below, difference = pair.samples.baseline, pair.samples.difference

    def line(word: str, size: float) -> list[str]:
        size = but_rounding(size, below)
        return [word, signed_amount(size), signed_percent(size / below) if below else ""]

    cells = [["", "samples", f"of {a}'s"]]
    cells += [line(CAUSE_WORDS[name], pair.causes[name]) for name in CAUSES]
    cells.append(line(f"all: {b} - {a}", difference))
    return [f"Causes of the difference of {b} and {a} (the parts add up)", *aligned_lines(cells)]


def _totals(pair: RunDifference) -> list[str]:
    b, a = pair.run, pair.baseline
    before, after = pair.totals.baseline, pair.totals.other
    cells = [["", a, b, f"{b} - {a}"]]
    for name, word in _TOTALS.items():
        if name in before and name in after and (before[name] or after[name]):
            difference = but_rounding(after[name] - before[name], before[name])
            cells.append([f"| {word}", amount(before[name]), amount(after[name]), signed_amount(difference)])
    return [line.removeprefix("| ").rstrip() if line.startswith("| ") else line[2:] for line in aligned_lines(cells)]


def _jobs(pair: RunDifference) -> list[str]:
    jobs, b, a = pair.jobs, pair.run, pair.baseline
    cells = [["", f"in {a} and {b}", "better", "equal", "worse", "median", "95 % interval", "95 % of the jobs"]]
    for row in jobs.measures:
        if not row.n_both and not row.only_in_baseline and not row.only_in_other:
            continue
        shown = _seconds if row.measure.endswith("_s") else signed_amount
        ends = _range(row.median_low, row.median_high, shown) or "none"
        spread = _range(row.p2_5, row.p97_5, shown)
        line = [*_shares(row), _or_dash(row.median, shown), ends, spread]
        if row.measure != "waiting_s" or line != cells[-1][1:]:  # all jobs were submitted at the same times
            cells.append([JOB_WORDS[row.measure], *line])
    lines = [f"{b} against {a}, job by job ({count(jobs.n_jobs, 'pair')})"]
    if len(cells) > 1:
        lines += aligned_lines(cells)
        lines.append("Jobs of a run share its nodes, so they are not independent: intervals describe their spread.")
    else:
        lines.append("No job did anything in either.")
    for change in jobs.status_changes:
        before, after = (change[key].replace("_", " ") for key in ("baseline", "other"))
        lines.append(f"{count(change.n_jobs, 'job')} {before} in {a}, {after} in {b}")
    lines += [f"{count(n, 'job')} {words}" for n, words in unpaired_jobs(pair)]
    return lines


def _shares(row: JobShares) -> list[str]:
    n = row.n_both + row.only_in_baseline + row.only_in_other
    if row.n_better is None:
        return [f"{row.n_both:,}", "", f"{row.n_equal / n * 100:.0f} %", ""]
    return [f"{row.n_both:,}", *(f"{row[key] / n * 100:.0f} %" for key in ("n_better", "n_equal", "n_worse"))]


def _models(pair: RunDifference) -> list[str]:
    """Return the median differences by model, of measures that some job has in both runs."""
    rows = pair.jobs.models
    if not rows:
        return []
    measured = {row.measure for row in rows if row.n_both}
    shown = {
        name: _seconds if name.endswith("_s") else signed_amount
        for name in JOB_WORDS
        if name in measured - {"waiting_s"}
    }
    of = {(row.model, row.measure): row for row in rows}
    cells = [["median by model", "pairs", *(JOB_WORDS[name] for name in shown)]]
    for model in dict.fromkeys(row.model for row in rows):
        medians = [_or_dash(of[model, name].median, how) for name, how in shown.items()]
        cells.append([model, f"{of[model, 'done_samples'].n_both:,}", *medians])
    return aligned_lines(cells)


def _campaign(pair: RunDifference) -> list[str]:
    campaign, b, a = pair.campaign, pair.run, pair.baseline
    if campaign is None:
        return []
    cells = [["", a, b, f"{b} - {a}"]]
    for row in campaign.finished:
        cells.append([f"trial {row.k:,} finished ({row.which})", *_three(row, duration, _seconds)])
    cells.append(["search finished", *_three(campaign.over, duration, _seconds)])
    if campaign.reached is not None:
        score = f"simulated score {campaign.reached.score:.6g} reached"
        cells.append([score, *_three(campaign.reached, duration, _seconds)])
        cells.append(
            ["best simulated score", *_three(campaign.best_score, "{:.6g}".format, lambda x: f"{x:+.6g}" if x else "0")]
        )
    return [f"{b} against {a}, the campaign", *aligned_lines(cells)]


def _three(row: Pair | ReachedScore, plain: Callable[[float], str], signed: Callable[[float], str]) -> list[str]:
    return [_or_dash(row.baseline, plain), _or_dash(row.other, plain), _or_dash(row.difference, signed)]


def _or_dash(value: float | None, how: Callable[[float], str]) -> str:
    return "-" if value is None else how(value)


def _range(low: float | None, high: float | None, how: Callable[[float], str]) -> str:
    return "" if low is None or high is None else f"{how(low)} to {how(high)}"


def _seconds(value: float) -> str:
    return "0" if not value else f"{'-' if value < 0 else '+'}{duration(abs(value))}"
