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
    "trimmed": ("it made less after the work was done", "it made more after the work was done"),
}
"""Words for a positive and a negative part of the difference."""


ONE_START = "This is one start and one seed: `bfreplay finish` with each of the two compares many starts."


def answer_of(pair: RunDifference) -> str:
    """Return one or two sentences about a run and its baseline."""
    other, baseline = pair.run, pair.baseline
    if pair.campaign is None:
        return _samples(other, baseline, pair)
    text = _campaign(other, baseline, pair.campaign)
    baseline_value, difference = pair.samples.baseline, pair.samples.difference
    if baseline_value > 0.0 and abs(difference) > _EQUAL * baseline_value:
        text += f"; its trials processed {percent(difference / baseline_value)} % "
        text += f"{'more' if difference > 0 else 'fewer'} samples"
    return f"{text}. {ONE_START}"


def percent(share: float) -> str:
    """Return a share in percent without its sign, such as ``3.21``."""
    return amount(abs(share) * 100)


def signed_percent(share: float) -> str:
    """Return a share with its sign: ``+3.2 %``."""
    return f"{'-' if share < 0 else '+'}{percent(share)} %"


def _samples(other: str, baseline: str, pair: RunDifference) -> str:
    samples = pair.samples
    baseline_value, other_value, difference = (float(samples[key]) for key in ("baseline", "other", "difference"))
    if baseline_value <= 0.0 and other_value <= 0.0:
        return f"Neither {other} nor {baseline} processed any sample."
    if baseline_value <= 0.0:
        return f"{other} processed {amount(other_value)} samples, {baseline} none."
    if samples.equal_by_construction:
        return (
            f"{other} processed as many samples as {baseline}: all jobs were done in both. "
            f"{_times(other, baseline, pair)}"
        )
    if abs(difference) <= _EQUAL * baseline_value:
        row = next(row for row in pair.hours if row.measure == "samples")
        is_same = row.mean.low == 0.0 and row.mean.high == 0.0
        return f"{other} processed as many samples as {baseline}{', in every hour' if is_same else ''}."
    share = difference / baseline_value
    text = (
        f"{other} processed {percent(share)} % {'more' if share > 0 else 'fewer'} samples than {baseline} "
        f"({_interval(pair)})"
    )
    return f"{text}, mostly because {_why(pair)}."


def _interval(pair: RunDifference) -> str:
    """Return the interval, with the sign of the sentence."""
    estimate = pair.samples.relative
    if estimate.low is None or estimate.high is None:
        return f"no interval: {estimate.why_no_interval}"
    sign = 1.0 if pair.samples.difference > 0 else -1.0
    low, high = sorted((sign * estimate.low, sign * estimate.high))
    ends = [f"{'-' if edge < 0 else ''}{percent(edge)}" for edge in (low, high)]
    text = f"95 % interval of this share {ends[0]} to {ends[1]} %"
    return text if low > 0 else f"{text}: not significant on this log alone"


def _why(pair: RunDifference) -> str:
    """Return the largest parts in the direction of the difference, and the largest part against it."""
    difference, baseline_value = pair.samples.difference, pair.samples.baseline
    sign = 1.0 if difference > 0 else -1.0
    parts = {name: sign * pair.causes[name] for name in CAUSES}
    along = sorted((name for name in CAUSES if parts[name] > 0), key=lambda name: -parts[name])
    totals = list(itertools.accumulate(parts[name] for name in along))
    n_causes = 1 + sum(total < _MOSTLY * totals[-1] for total in totals)
    text = " and ".join(_part(name, pair, baseline_value) for name in along[:n_causes])
    worst = min(CAUSES, key=lambda name: parts[name])
    if parts[worst] < -_AGAINST * abs(difference):
        text += f", although {_part(worst, pair, baseline_value)}"
    return text


def _part(name: str, pair: RunDifference, baseline_value: float) -> str:
    size = pair.causes[name]
    return f"{WORDS[name][0 if size > 0 else 1]} ({signed_percent(size / baseline_value)})"


def _times(other: str, baseline: str, pair: RunDifference) -> str:
    over = pair.over
    assert over.baseline is not None  # all jobs were done
    assert over.other is not None
    saving = over.baseline - over.other
    text = f"{other} was done {_earlier(saving)}{'' if saving else f' as {baseline}'}"
    if saving:
        text += f", after {duration(over.other)} instead of {duration(over.baseline)}"
    finish = next(row for row in pair.jobs.measures if row.measure == "finish_s")
    if finish.median:
        text += f"; half of its jobs finished at least {_earlier(-finish.median)} than in {baseline}"
    return f"{text}."


def _earlier(saving_s: float) -> str:
    if not saving_s:
        return "at the same time"
    return f"{duration(abs(saving_s))} {'earlier' if saving_s > 0 else 'later'}"


def _campaign(other: str, baseline: str, campaign: CampaignDifference) -> str:
    """Return a sentence on finish and scores; samples are not comparable when different trials are pruned."""
    over, best, score_times = campaign.over, campaign.best_score, campaign.reached
    if over.difference is not None:
        text = f"{other} finished {_earlier(-over.difference)}{' than' if over.difference else ' as'} {baseline}"
    else:
        n_finished = campaign.n_finished
        text = f"{other} finished {n_finished.other:,} trials in the window, {baseline} {n_finished.baseline:,}"
    if score_times is None:
        return text
    when = _earlier(-score_times.difference)
    if best.difference:
        scores = f"its best simulated score is {best.other:.6g}, {baseline}'s {best.baseline:.6g}"
        return f"{text}; {scores}; it reached {score_times.score:.6g} {when}"
    return f"{text}, with the same best simulated score ({best.other:.6g}), reached {when}"
