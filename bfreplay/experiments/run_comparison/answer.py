"""The difference of two runs in one sentence."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from bfreplay.result_folders.comparison import CAUSES, CampaignDifference, RunDifference
from bfreplay.wording import amount, duration

_EQUAL = 1e-9
_MOSTLY = 0.75
_AGAINST = 0.25
WORDS: Mapping[str, tuple[str, str]] = {
    "node_hours": ("it used more node-hours", "it used fewer node-hours"),
    "samples_per_node_hour": ("its node-hours made more samples each", "its node-hours made fewer samples each"),
    "rescaling": ("rescaling cost it less", "rescaling cost it more"),
    "preemption": ("preemption cost it less", "preemption cost it more"),
    "repeated": ("it lost less work", "it lost more work"),
    "trimmed": ("it made less after the work was done", "it made more after the work was done"),
}
"""Words for a positive and a negative part of the difference."""


ONE_START = "This is one start and one seed: `bfreplay finish` with each of the two compares many starts."


def answer_of(run_difference: RunDifference) -> str:
    """Return one or two sentences about a run and its baseline."""
    run_label, baseline = run_difference.run, run_difference.baseline
    if run_difference.campaign is None:
        return _samples(run_label, baseline, run_difference)
    sentence = _campaign(run_label, baseline, run_difference.campaign)
    baseline_value, difference = run_difference.samples.baseline, run_difference.samples.difference
    if baseline_value > 0.0 and abs(difference) > _EQUAL * baseline_value:
        sentence += f"; its trials processed {percent(difference / baseline_value)} % "
        sentence += f"{'more' if difference > 0 else 'fewer'} samples"
    return f"{sentence}. {ONE_START}"


def percent(share: float) -> str:
    """Return a share in percent without its sign, such as ``3.21``."""
    return amount(abs(share) * 100)


def signed_percent(share: float) -> str:
    """Return a share with its sign: ``+3.2 %``."""
    return f"{'-' if share < 0 else '+'}{percent(share)} %"


def _samples(run_label: str, baseline: str, run_difference: RunDifference) -> str:
    samples = run_difference.samples
    baseline_value, other_value, difference = (float(samples[side]) for side in ("baseline", "other", "difference"))
    if baseline_value <= 0.0 and other_value <= 0.0:
        return f"Neither {run_label} nor {baseline} processed any sample."
    if baseline_value <= 0.0:
        return f"{run_label} processed {amount(other_value)} samples, {baseline} none."
    if samples.equal_by_construction:
        return (
            f"{run_label} processed as many samples as {baseline}: all jobs were done in both. "
            f"{_times(run_label, baseline, run_difference)}"
        )
    if abs(difference) <= _EQUAL * baseline_value:
        hour_measure = next(hour_measure for hour_measure in run_difference.hours if hour_measure.measure == "samples")
        is_same = hour_measure.mean.low == 0.0 and hour_measure.mean.high == 0.0
        return f"{run_label} processed as many samples as {baseline}{', in every hour' if is_same else ''}."
    share = difference / baseline_value
    sentence = (
        f"{run_label} processed {percent(share)} % {'more' if share > 0 else 'fewer'} samples than {baseline} "
        f"({_interval(run_difference)})"
    )
    return f"{sentence}, mostly because {_why(run_difference)}."


def _interval(run_difference: RunDifference) -> str:
    """Return the interval, with the sign of the sentence."""
    estimate = run_difference.samples.relative
    if estimate.low is None or estimate.high is None:
        return f"no interval: {estimate.why_no_interval}"
    sign = 1.0 if run_difference.samples.difference > 0 else -1.0
    low, high = sorted((sign * estimate.low, sign * estimate.high))
    ends = [f"{'-' if edge < 0 else ''}{percent(edge)}" for edge in (low, high)]
    interval_text = f"95 % interval of this share {ends[0]} to {ends[1]} %"
    return interval_text if low > 0 else f"{interval_text}: not significant on this log alone"


def _why(run_difference: RunDifference) -> str:
    """Return the largest parts in the direction of the difference, and the largest part against it."""
    difference, baseline_value = run_difference.samples.difference, run_difference.samples.baseline
    sign = 1.0 if difference > 0 else -1.0
    parts = {cause: sign * run_difference.causes[cause] for cause in CAUSES}
    along = sorted((cause for cause in CAUSES if parts[cause] > 0), key=lambda cause: -parts[cause])
    totals = list(itertools.accumulate(parts[cause] for cause in along))
    n_causes = 1 + sum(total < _MOSTLY * totals[-1] for total in totals)
    reason_text = " and ".join(_part(cause, run_difference, baseline_value) for cause in along[:n_causes])
    worst = min(CAUSES, key=lambda cause: parts[cause])
    if parts[worst] < -_AGAINST * abs(difference):
        reason_text += f", although {_part(worst, run_difference, baseline_value)}"
    return reason_text


def _part(cause: str, run_difference: RunDifference, baseline_value: float) -> str:
    size = run_difference.causes[cause]
    return f"{WORDS[cause][0 if size > 0 else 1]} ({signed_percent(size / baseline_value)})"


def _times(run_label: str, baseline: str, run_difference: RunDifference) -> str:
    over = run_difference.over
    assert over.baseline is not None  # all jobs were done
    assert over.other is not None
    saving = over.baseline - over.other
    sentence = f"{run_label} was done {_earlier(saving)}{'' if saving else f' as {baseline}'}"
    if saving:
        sentence += f", after {duration(over.other)} instead of {duration(over.baseline)}"
    finish = next(job_measure for job_measure in run_difference.jobs.measures if job_measure.measure == "finish_s")
    if finish.median:
        sentence += f"; half of its jobs finished at least {_earlier(-finish.median)} than in {baseline}"
    return f"{sentence}."


def _earlier(saving_s: float) -> str:
    if not saving_s:
        return "at the same time"
    return f"{duration(abs(saving_s))} {'earlier' if saving_s > 0 else 'later'}"


def _campaign(run_label: str, baseline: str, campaign: CampaignDifference) -> str:
    """Return a sentence on finish and scores; samples are not comparable when different trials are pruned."""
    over, best_scores, score_times = campaign.over, campaign.best_score, campaign.reached
    if over.difference is not None:
        text = f"{run_label} finished {_earlier(-over.difference)}{' than' if over.difference else ' as'} {baseline}"
    else:
        n_finished = campaign.n_finished
        text = f"{run_label} finished {n_finished.other:,} trials in the window, {baseline} {n_finished.baseline:,}"
    if score_times is None:
        return text
    when = _earlier(-score_times.difference)
    if best_scores.difference:
        scores = f"its best score is {best_scores.other:.6g}, {baseline}'s {best_scores.baseline:.6g}"
        return f"{text}; {scores}; it reached {score_times.score:.6g} {when}"
    return f"{text}, with the same best score ({best_scores.other:.6g}), reached {when}"
