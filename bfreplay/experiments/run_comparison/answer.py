"""The difference of two runs in one sentence."""

from __future__ import annotations

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
    b, a = pair.run, pair.baseline
    if pair.campaign is None:
        return _samples(b, a, pair)
    text, before, difference = _campaign(b, a, pair.campaign), pair.samples.baseline, pair.samples.difference
    if before > 0.0 and abs(difference) > _EQUAL * before:
        text += f"; its trials processed {percent(difference / before)} % "
        text += f"{'more' if difference > 0 else 'fewer'} samples"
    return f"{text}. {ONE_START}"


def percent(share: float) -> str:
    """Return a share in percent without its sign, such as ``3.21``."""
    return amount(abs(share) * 100)


def signed_percent(share: float) -> str:
    """Return a share with its sign: ``+3.2 %``."""
    return f"{'-' if share < 0 else '+'}{percent(share)} %"


def _samples(b: str, a: str, pair: RunDifference) -> str:
    samples = pair.samples
    before, after, difference = (float(samples[key]) for key in ("baseline", "other", "difference"))
    if before <= 0.0 and after <= 0.0:
        return f"Neither {b} nor {a} processed any sample."
    if before <= 0.0:
        return f"{b} processed {amount(after)} samples, {a} none."
    if samples.equal_by_construction:
        return f"{b} processed as many samples as {a}: all jobs were done in both. {_times(b, a, pair)}"
    if abs(difference) <= _EQUAL * before:
        row = next(row for row in pair.hours if row.measure == "samples")
        is_same = row.mean.low == 0.0 and row.mean.high == 0.0
        return f"{b} processed as many samples as {a}{', in every hour' if is_same else ''}."
    share = difference / before
    text = f"{b} processed {percent(share)} % {'more' if share > 0 else 'fewer'} samples than {a} ({_interval(pair)})"
    return f"{text}, mostly because {_why(pair)}."


def _interval(pair: RunDifference) -> str:
    """Return the interval, with the sign of the sentence."""
    found = pair.samples.relative
    if found.low is None or found.high is None:
        return f"no interval: {found.why_no_interval}"
    sign = 1.0 if pair.samples.difference > 0 else -1.0
    low, high = sorted((sign * found.low, sign * found.high))
    ends = [f"{'-' if end < 0 else ''}{percent(end)}" for end in (low, high)]
    text = f"95 % interval of this share {ends[0]} to {ends[1]} %"
    return text if low > 0 else f"{text}: not significant on this log alone"


def _why(pair: RunDifference) -> str:
    """Return the largest parts in the direction of the difference, and the largest part against it."""
    difference, before = pair.samples.difference, pair.samples.baseline
    sign = 1.0 if difference > 0 else -1.0
    parts = {name: sign * pair.causes[name] for name in CAUSES}
    along = sorted((name for name in CAUSES if parts[name] > 0), key=lambda name: -parts[name])
    named, so_far, all_along = [], 0.0, sum(parts[name] for name in along)
    for name in along:
        named.append(name)
        so_far += parts[name]
        if so_far >= _MOSTLY * all_along:
            break
    text = " and ".join(_part(name, pair, before) for name in named)
    worst = min(CAUSES, key=lambda name: parts[name])
    if parts[worst] < -_AGAINST * abs(difference):
        text += f", although {_part(worst, pair, before)}"
    return text


def _part(name: str, pair: RunDifference, before: float) -> str:
    size = pair.causes[name]
    return f"{WORDS[name][0 if size > 0 else 1]} ({signed_percent(size / before)})"


def _times(b: str, a: str, pair: RunDifference) -> str:
    over = pair.over
    assert over.baseline is not None  # all jobs were done
    assert over.other is not None
    saved = over.baseline - over.other
    text = f"{b} was done {_earlier(saved)}{'' if saved else f' as {a}'}"
    if saved:
        text += f", after {duration(over.other)} instead of {duration(over.baseline)}"
    finish = next(row for row in pair.jobs.measures if row.measure == "finish_s")
    if finish.median:
        text += f"; half of its jobs finished at least {_earlier(-finish.median)} than in {a}"
    return f"{text}."


def _earlier(saved_s: float) -> str:
    if not saved_s:
        return "at the same time"
    return f"{duration(abs(saved_s))} {'earlier' if saved_s > 0 else 'later'}"


def _campaign(b: str, a: str, campaign: CampaignDifference) -> str:
    """Return a sentence on finish and scores; samples are not comparable when different trials are pruned."""
    over, best, reached = campaign.over, campaign.best_score, campaign.reached
    if over.difference is not None:
        text = f"{b} finished {_earlier(-over.difference)}{' than' if over.difference else ' as'} {a}"
    else:
        done = campaign.n_finished
        text = f"{b} finished {done.other:,} trials in the window, {a} {done.baseline:,}"
    if reached is None:
        return text
    when = _earlier(-reached.difference)
    if best.difference:
        scores = f"its best simulated score is {best.other:.6g}, {a}'s {best.baseline:.6g}"
        return f"{text}; {scores}; it reached {reached.score:.6g} {when}"
    return f"{text}, with the same best simulated score ({best.other:.6g}), reached {when}"
