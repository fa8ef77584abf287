"""Runs of a job source against each other: when the k-th trial was finished, and when a score was reached."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bfreplay.replay.result import RunResult
from bfreplay.result_folders.comparison import (
    CampaignDifference,
    FinishedTrial,
    FinishedTrials,
    Pair,
    ReachedScore,
)

_SHARES = (("first", 0.0), ("10 %", 0.1), ("half", 0.5), ("90 %", 0.9), ("all", 1.0))


def campaign_differences(baseline: RunResult, other: RunResult) -> CampaignDifference | None:
    """Milestones of both runs in seconds from the start of the window; ``None`` for plain job sets.

    The k-th finished trial is counted among as many as both runs finished, so that both have reached it. The score to
    be reached is the best score of the worse run.
    """
    if not baseline.record.inputs.jobs.of_source:
        return None
    higher = baseline.record.inputs.jobs.higher_is_better
    runs = (baseline, other)
    finished = [_finished_s(run) for run in runs]
    n = min(len(times) for times in finished)
    finish_rows: list[FinishedTrial] = []
    for word, share in _SHARES:
        k = max(1, math.ceil(share * n))
        if n and k not in [row.k for row in finish_rows]:
            a, b = (times[k - 1] for times in finished)
            finish_rows.append(FinishedTrial(which=word, k=k, baseline=a, other=b, difference=b - a))
    scores = [_scores(run) for run in runs]
    bests = [None if not len(score) else float(score.max() if higher else score.min()) for _, score in scores]
    reached: ReachedScore | None = None
    if bests[0] is not None and bests[1] is not None:
        target = min(bests[0], bests[1]) if higher else max(bests[0], bests[1])
        a, b = (float(time[(score >= target) if higher else (score <= target)][0]) for time, score in scores)
        reached = ReachedScore(score=target, baseline=a, other=b, difference=b - a)
    over = [run.record.config.after_s(run.summary.last_finish_us) for run in runs]
    return CampaignDifference(
        higher_is_better=higher,
        n_finished=FinishedTrials(baseline=len(finished[0]), other=len(finished[1])),
        finished=finish_rows,
        over=_both(*over),
        reached=reached,
        best_score=_both(*bests),
    )


def _both(baseline: float | None, other: float | None) -> Pair:
    difference = None if baseline is None or other is None else other - baseline
    return Pair(baseline=baseline, other=other, difference=difference)


def _finished_s(run: RunResult) -> list[float]:
    times = run.table("jobs")["finished"].cast("int64").drop_null().to_pylist()
    start_us = run.record.config.window_start_us
    return sorted((time_us - start_us) / 1e6 for time_us in times)


def _scores(run: RunResult) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Times (S,) in seconds and scores (S,) of the reports that have one, in order of time."""
    table = run.table("reports")
    score = np.asarray(table["score"].fill_null(math.nan), dtype=np.float64)
    time_s = (np.asarray(table["time"].cast("int64"), dtype=np.int64) - run.record.config.window_start_us) / 1e6
    known = np.isfinite(score)
    return time_s[known], score[known]
