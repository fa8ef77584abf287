"""Text about the outcome of a run's jobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bfreplay.replay.job_outcomes import STATUSES
from bfreplay.runs.explain.campaign import EARLY, CampaignAnswer
from bfreplay.runs.run_result import RunResult
from bfreplay.runs.scheduling_metrics import window_words
from bfreplay.wording import aligned_lines, amount, count, duration, labelled_lines, maybe_duration, paragraphs, percent

if TYPE_CHECKING:
    import pandas as pd

_Labelled = tuple[str, str]
_SHARES = (0.25, 0.5, 0.75, 0.9)


def render_run(run: RunResult, models: pd.DataFrame, campaign: CampaignAnswer) -> str:
    """Return several lines of text, without a newline at the end."""
    jobs = f"{count(int(models['n_jobs'].sum()), 'job')} of {count(len(models), 'model')}" if len(models) else "no job"
    window = f"from {window_words(run.record)} ({duration(run.summary['duration_s'])})"
    of_campaign = labelled_lines((line for lines in _OF_CAMPAIGN for line in lines(campaign)), 13)
    return paragraphs([[f"{jobs} {window}"], [*_models(models)] if len(models) else [], of_campaign])


def _models(models: pd.DataFrame) -> Iterator[str]:
    statuses = [status for status in STATUSES if models[status].any()]
    words = [status.replace("_", " ") for status in statuses]
    header = ["model", "jobs", *words, "queue", "95 %", "completion", "95 %", "samples", "node-hours", "useful"]
    rows = []
    for row in models.to_dict("records"):
        times = [row[f"{what}_{which}_s"] for what in ("queue", "completion") for which in ("median", "p95")]
        held, useful = row["held_node_hours"], row["useful_node_hours"]
        rows.append(
            [
                row["model"],
                f"{row['n_jobs']:,}",
                *(f"{row[status]:,}" for status in statuses),
                *map(maybe_duration, times),
                f"{row['samples']:.4g}",
                amount(held),
                _share(useful, held),
            ]
        )
    yield from aligned_lines([header, *rows])
    yield "queue: from submit to first start; completion: from submit to finish: median, and 95 % within"


def _finish_times(campaign: CampaignAnswer) -> Iterator[_Labelled]:
    total = len(campaign.finished_s)
    if not total:
        yield "Finished", "no job"
        return
    numbers = sorted({1, *(max(1, round(share * total)) for share in _SHARES), total})
    times = ", ".join(f"{k:,} after {duration(float(campaign.finished_s[k - 1]))}" for k in numbers)
    yield "Finished", f"{times} (from the start of the window)"


def _scores(campaign: CampaignAnswer) -> Iterator[_Labelled]:
    if campaign.higher_is_better is None:
        return
    if not len(campaign.best_score):
        yield "Best score", "none was reported"
        return
    better = "higher" if campaign.higher_is_better else "lower"
    after = duration(float(campaign.best_s[-1]))
    yield (
        "Best score",
        f"{campaign.best_score[-1]:.6g} (simulated, {better} is better) of {campaign.best_job} after {after}",
    )
    total = len(campaign.best_score)
    steps = sorted({round(k * (total - 1) / 4) for k in range(4)} - {total - 1})
    if steps:
        earlier = ", ".join(f"{campaign.best_score[k]:.6g} after {duration(float(campaign.best_s[k]))}" for k in steps)
        some = "before" if len(steps) == total - 1 else f"{len(steps)} of the {total - 1:,} before"
        yield "", f"{some}: {earlier}"


def _early(campaign: CampaignAnswer) -> Iterator[_Labelled]:
    statuses = [status for status in EARLY if status in campaign.by_status]
    if statuses:
        held = sum(campaign.node_hours.values())
        each = (f"{campaign.by_status[s]:,} {s} ({amount(campaign.node_hours[s])} node-hours)" for s in statuses)
        yield "Ended early", f"{', '.join(each)}: {_share(campaign.early_node_hours, held)} of the node-hours"


def _budget(campaign: CampaignAnswer) -> Iterator[_Labelled]:
    for name, of_limit in campaign.budget.items():
        limit, used = of_limit["limit"], of_limit["used"]
        use = "unknown" if used is None or limit is None else f"{used:,.6g} ({_share(used, limit)})"
        yield "Budget", f"{name.replace('_', ' ')}: {use} of {limit:,.6g} used"


def _share(part: float, whole: float) -> str:
    return percent(part / whole) if whole else "-"


_OF_CAMPAIGN = (_finish_times, _scores, _early, _budget)
