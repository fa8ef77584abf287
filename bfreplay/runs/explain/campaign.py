"""A run as a campaign: finish times and scores of its trials, and the cost of those that ended early."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.replay.job_outcomes import STATUSES
from bfreplay.runs.explain.saved_tables import jobs_frame, reports_frame
from bfreplay.runs.run_result import RunResult
from bfreplay.workload import Ending

if TYPE_CHECKING:
    import pandas as pd

EARLY = tuple(Ending)
"""Statuses of trials that end before their work is done."""


@dataclass(frozen=True, slots=True, eq=False)
class CampaignAnswer:
    """Outcome of a campaign, or of a plain job set, which has no scores.

    Parameters
    ----------
    finished_s : (F,) float64
        Seconds from the start of the window to the k-th finished trial, ascending.
    ended_s : (E,) float64
        The same for all trials that ended, finished or not.
    by_status
        Number of trials by status at the end of the window, without zeros.
    node_hours
        Allocated node-hours of the trials of each status.
    higher_is_better
        True if a larger score is better; ``None`` for a plain job set.
    best_s, best_score : (B,) float64
        Seconds from the start of the window at which the best score so far improved, and that score.
    best_job
        Job with the best score; ``None`` without scores.
    budget
        Limits of the campaign by name, each with ``"limit"`` and ``"used"`` (``None`` where jobs do not show it); empty
        without a budget. ``failed_trials`` counts trials whose last allowed retry failed.
    source
        The source's description of itself, with its parts and budget; ``None`` for a plain job set.
    """

    finished_s: NDArray[np.float64]
    ended_s: NDArray[np.float64]
    by_status: Mapping[str, int]
    node_hours: Mapping[str, float]
    higher_is_better: bool | None
    best_s: NDArray[np.float64]
    best_score: NDArray[np.float64]
    best_job: str | None
    budget: Mapping[str, Mapping[str, float | None]]
    source: Mapping[str, Any] | None

    @property
    def early_node_hours(self) -> float:
        """Node-hours of trials that ended early."""
        return sum(self.node_hours.get(status, 0.0) for status in EARLY)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, JSON-ready."""
        return {
            "n_jobs": sum(self.by_status.values()),
            "by_status": dict(self.by_status),
            "node_hours": dict(self.node_hours),
            "early_node_hours": self.early_node_hours,
            "finished_s": self.finished_s.tolist(),
            "ended_s": self.ended_s.tolist(),
            "higher_is_better": self.higher_is_better,
            "best": {"job": self.best_job, "after_s": self.best_s.tolist(), "score": self.best_score.tolist()},
            "budget": {name: dict(of_limit) for name, of_limit in self.budget.items()},
            "source": None if self.source is None else dict(self.source),
        }


def campaign_answer(run: RunResult, answers: pd.DataFrame) -> CampaignAnswer:
    """Sum up a run as a campaign.

    Parameters
    ----------
    run
        The run.
    answers
        ``job_answers`` of the run.
    """
    start_us = run.record.config.window_start_us
    job_table = jobs_frame(run)
    status = answers["status"]
    statuses = [name for name in STATUSES if (status == name).any()]
    job_inputs = run.record.inputs.jobs
    better_is_higher = job_inputs.higher_is_better if job_inputs.of_source else None
    best_us, best_score, best_job = best_so_far(run, better_is_higher is not False)
    return CampaignAnswer(
        finished_s=_since(job_table["finished"], start_us),
        ended_s=_since(job_table["ended"], start_us),
        by_status={name: int((status == name).sum()) for name in statuses},
        node_hours={name: float(answers.loc[status == name, "held_node_hours"].sum()) for name in statuses},
        higher_is_better=better_is_higher,
        best_s=(best_us - start_us) / 1e6,
        best_score=best_score,
        best_job=best_job,
        budget=_budget(run, answers, job_inputs.source),
        source=job_inputs.source,
    )


def _since(times: pd.Series[Any], start_us: int) -> NDArray[np.float64]:
    """Return seconds from ``start_us`` to each time, ascending, without nulls."""
    time_us = np.asarray(times.dropna().astype("datetime64[us, UTC]").astype("int64"), dtype=np.int64)
    return (np.sort(time_us) - start_us) / 1e6


def best_so_far(run: RunResult, higher_is_better: bool) -> tuple[NDArray[np.int64], NDArray[np.float64], str | None]:
    """Return times (in us) and scores of the reports that beat all earlier ones, and the job of the last.

    Of several reports at one instant only the best counts.
    """
    reports = reports_frame(run)
    score_reports = None if reports is None else reports.dropna(subset=["score"])
    if score_reports is None or not len(score_reports):
        return np.zeros(0, dtype=np.int64), np.zeros(0), None
    report_scores: NDArray[np.float64] = score_reports["score"].to_numpy(dtype=np.float64)
    score_heights = report_scores if higher_is_better else -report_scores
    best_before = np.concatenate([[-np.inf], np.maximum.accumulate(score_heights)[:-1]])
    improvements = np.flatnonzero(score_heights > best_before)
    time_us = np.asarray(score_reports["time"].astype("datetime64[us, UTC]").astype("int64"), dtype=np.int64)
    improvements = improvements[np.append(np.diff(time_us[improvements]) > 0, True)]
    return time_us[improvements], report_scores[improvements], str(score_reports["job"].iloc[int(improvements[-1])])


def _budget(
    run: RunResult, answers: pd.DataFrame, source: Mapping[str, Any] | None
) -> dict[str, dict[str, float | None]]:
    """Return the use of each limit in a source's ``budget`` (``campaigns.budget.Budget``)."""
    limits = None if source is None else source.get("budget")
    if source is None or not isinstance(limits, Mapping):
        return {}
    config = run.record.config
    is_over = answers["ended"].notna().all() and len(answers)
    end_us = int(answers["ended"].max().value // 1000) if is_over else config.window_end_us
    start_us = config.window_start_us + 1e6 * float(source.get("start_after_s", 0.0))
    spending = {
        "node_hours": float(answers["held_node_hours"].sum()),
        "samples": float(answers["done_samples"].sum()),
        "hours": max(0.0, (end_us - start_us) / 3.6e9),
        "failed_trials": float(_final_failures(answers, source)),
        "finished_trials": float((answers["status"] == "finished").sum()),
    }
    return {
        name: {"limit": float(limit), "used": spending.get(name)} for name, limit in limits.items() if limit is not None
    }


def _final_failures(answers: pd.DataFrame, source: Mapping[str, Any]) -> int:
    """Count trials whose last attempt failed; each attempt is a job, named by ``campaigns.Campaign.trial_name``."""
    retries = source.get("retries")
    most_retries = retries.get("most", 0) if isinstance(retries, Mapping) else 0
    trial_names = answers["job"][answers["status"] == "failed"]
    return sum(not most_retries or trial_name.endswith(f"-retry-{most_retries}") for trial_name in trial_names)
