"""Differences of two runs job by job, and of the milestones of a campaign."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec.structs import asdict

from bfreplay.experiments.run_comparison.confidence import US_PER_S, Floats, median_over_jobs, times_us
from bfreplay.experiments.study_options import Bootstrap
from bfreplay.result_folders.comparison import (
    Both,
    CampaignDifference,
    FinishedTrial,
    JobDifferences,
    JobMeasure,
    JobShares,
    ModelMeasure,
    Pair,
    ReachedScore,
    StatusChange,
)
from bfreplay.result_folders.records import table_by
from bfreplay.runs.explain.saved_tables import NODE_US_PER_HOUR
from bfreplay.runs.run_result import RunResult

if TYPE_CHECKING:
    import pandas as pd

LESS_IS_BETTER: Mapping[str, bool | None] = {
    "finish_s": True,
    "start_s": True,
    "waiting_s": True,
    "done_samples": False,
    "useful_node_hours": None,
}
"""Measures, and whether less is better; ``None`` without a better direction.

Finish and first start are seconds from the start of the window; waiting is from submit to first start.
"""

MEASURES = tuple(LESS_IS_BETTER)
_TIME_TOLERANCE_S = 1e-3
_RELATIVE_TOLERANCE = 1e-6
_SPREAD = (2.5, 97.5)


@dataclass(frozen=True, slots=True, eq=False)
class PairedJobs:
    """Jobs that two runs share: same name, same parameters.

    Parameters
    ----------
    jobs
        One row per pair: ``job``, and the other columns of ``run_jobs``, those of the baseline with ``_baseline``.
    only_in_baseline, only_in_other
        Number of jobs without a partner of that name, which job sources and unlimited work may have.
    n_other_params
        Number of jobs with a partner of that name but other parameters.
    """

    jobs: pd.DataFrame
    only_in_baseline: int
    only_in_other: int
    n_other_params: int


def run_jobs(run: RunResult) -> pd.DataFrame:
    """Return ``job``, ``model``, ``status``, ``params`` and the ``MEASURES`` of each job.

    A measure is nan for an event that did not happen; parameters are empty without any, and in runs of early versions.
    """
    import pandas as pd

    table = run.table("jobs")
    start_us = run.record.config.window_start_us

    def time_us(column_name: str) -> Floats:
        column = table[column_name].cast("int64")
        since_start_us = np.asarray(column.fill_null(0), dtype=np.int64) - start_us
        return np.where(np.asarray(column.is_valid(), dtype=bool), since_start_us.astype(np.float64), np.nan)

    finish_us, first_start_us, submit_us = (time_us(name) for name in ("finished", "first_start", "submitted"))
    columns = {name: table[name].to_pylist() for name in ("job", "model", "status")}
    params = [job_params or "" for job_params in table["params"].to_pylist()] if "params" in table.column_names else ""
    return pd.DataFrame(
        {
            **columns,
            "params": params,
            "finish_s": finish_us / US_PER_S,
            "start_s": first_start_us / US_PER_S,
            "waiting_s": (first_start_us - submit_us) / US_PER_S,
            "done_samples": np.asarray(table["done_samples"], dtype=np.float64),
            "useful_node_hours": np.asarray(table["useful_node_us"], dtype=np.float64) / NODE_US_PER_HOUR,
        }
    )


def pair_jobs(baseline: pd.DataFrame, other: pd.DataFrame) -> PairedJobs:
    """Pair the jobs of two runs, in the baseline's order."""
    common_jobs = baseline.merge(other, on="job", suffixes=("_baseline", ""))
    is_same = common_jobs["params_baseline"] == common_jobs["params"]
    only_in_baseline, only_in_other = (len(run_table) - len(common_jobs) for run_table in (baseline, other))
    return PairedJobs(common_jobs[is_same], only_in_baseline, only_in_other, int((~is_same).sum()))


def job_differences(pairs: PairedJobs, bootstrap: Bootstrap) -> JobDifferences:
    """Return everything about the pairs: measures, changes of status, and measures model by model."""
    jobs = pairs.jobs
    changes = Counter((a, b) for a, b in zip(jobs["status_baseline"], jobs["status"], strict=True) if a != b)
    models = jobs["model_baseline"].fillna("")
    names = sorted(set(models) - {""})
    return JobDifferences(
        n_jobs=len(jobs),
        only_in_baseline=pairs.only_in_baseline,
        only_in_other=pairs.only_in_other,
        n_other_params=pairs.n_other_params,
        measures=[_measure(jobs, measure, bootstrap) for measure in MEASURES],
        status_changes=[
            StatusChange(baseline=before, other=after, n_jobs=n_jobs)
            for (before, after), n_jobs in sorted(changes.items(), key=lambda item: (-item[1], item[0]))
        ],
        models=[
            ModelMeasure(model=model, **asdict(_shares(jobs[models == model], measure)))
            for model in (names if len(names) > 1 else [])
            for measure in MEASURES
        ],
    )


def _difference(jobs: pd.DataFrame, measure: str) -> Floats:
    """Return the differences of jobs with the measure in both runs; equal values give exactly 0."""
    baseline_values, other_values = jobs[[f"{measure}_baseline", measure]].dropna().to_numpy().T
    slack = (
        _TIME_TOLERANCE_S
        if measure.endswith("_s")
        else _RELATIVE_TOLERANCE * np.maximum(np.abs(baseline_values), np.abs(other_values))
    )
    difference = other_values - baseline_values
    return np.where(np.abs(difference) <= slack, 0.0, difference)


def _shares(jobs: pd.DataFrame, measure: str) -> JobShares:
    """Count jobs by the better run; a job with the measure in one run only was better in that run."""
    in_baseline, in_other = jobs[f"{measure}_baseline"].notna(), jobs[measure].notna()
    difference = _difference(jobs, measure)
    less, more, equal = (int(test.sum()) for test in (difference < 0, difference > 0, difference == 0))
    only_a, only_b = int((in_baseline & ~in_other).sum()), int((in_other & ~in_baseline).sum())
    better, worse = (less, more) if LESS_IS_BETTER[measure] else (more, less)
    has_direction = LESS_IS_BETTER[measure] is not None
    low = median = mean = high = None
    if difference.size:
        low, high = (float(percentile) for percentile in np.percentile(difference, _SPREAD))
        median, mean = float(np.median(difference)), float(difference.mean())
    return JobShares(
        measure=measure,
        n_both=int(difference.size),
        only_in_baseline=only_a,
        only_in_other=only_b,
        n_less=less,
        n_equal=equal,
        n_more=more,
        n_better=better + only_b if has_direction else None,
        n_worse=worse + only_a if has_direction else None,
        median=median,
        mean=mean,
        p2_5=low,
        p97_5=high,
    )


def _measure(jobs: pd.DataFrame, measure: str, bootstrap: Bootstrap) -> JobMeasure:
    estimate = median_over_jobs(_difference(jobs, measure), bootstrap)
    return JobMeasure(
        **asdict(_shares(jobs, measure)),
        median_low=estimate.low,
        median_high=estimate.high,
        why_no_interval=estimate.why_no_interval,
    )


JOBS = pa.schema(
    [
        ("run", pa.string()),
        ("job", pa.string()),
        ("model", pa.string()),
        ("status_baseline", pa.string()),
        ("status", pa.string()),
        *((f"{name}{ending}", pa.float64()) for name in MEASURES for ending in ("_baseline", "", "_difference")),
    ]
)


def jobs_table(paired_jobs: Sequence[PairedJobs], labels: Sequence[str]) -> pa.Table:
    """Return one row per run (but the baseline) and job, with schema ``JOBS``; null for events that did not happen."""
    tables = [JOBS.empty_table()]
    for pairs, label in zip(paired_jobs, labels, strict=True):
        jobs = pairs.jobs.assign(run=label, model=pairs.jobs["model_baseline"])
        for column_name in MEASURES:
            jobs[f"{column_name}_difference"] = jobs[column_name] - jobs[f"{column_name}_baseline"]
        tables.append(table_by(JOBS, [jobs[column_name] for column_name in JOBS.names]))
    return pa.concat_tables(tables)


_SHARES = (("first", 0.0), ("10 %", 0.1), ("half", 0.5), ("90 %", 0.9), ("all", 1.0))


def campaign_differences(baseline: RunResult, other: RunResult) -> CampaignDifference | None:
    """Compare the milestones of both runs, in seconds from the start of the window; ``None`` for plain job sets.

    k is at most the number of trials that both runs finished. The score to reach is the best score of the worse run.
    """
    if not baseline.record.inputs.jobs.of_source:
        return None
    higher = baseline.record.inputs.jobs.higher_is_better
    runs = (baseline, other)
    finish_times = [
        np.sort(times_us(run.table("jobs")["finished"].drop_null()) - run.record.config.window_start_us) / 1e6
        for run in runs
    ]
    n_common = min(len(times_s) for times_s in finish_times)
    finish_rows: dict[int, FinishedTrial] = {}
    for word, share in _SHARES if n_common else ():
        n_trials = max(1, math.ceil(share * n_common))
        sides = _sides(*(float(times_s[n_trials - 1]) for times_s in finish_times))
        finish_rows.setdefault(n_trials, FinishedTrial(which=word, k=n_trials, **sides))
    sign = 1.0 if higher else -1.0
    scores = [_scores(run) for run in runs]
    bests = [sign * float((sign * score).max()) if len(score) else None for _, score in scores]
    score_times: ReachedScore | None = None
    if bests[0] is not None and bests[1] is not None:
        target = sign * min(sign * bests[0], sign * bests[1])
        sides = _sides(*(float(time_s[sign * score >= sign * target][0]) for time_s, score in scores))
        score_times = ReachedScore(score=target, **sides)
    over = [run.record.config.after_s(run.summary.last_finish_us) for run in runs]
    return CampaignDifference(
        higher_is_better=higher,
        n_finished=Both(baseline=len(finish_times[0]), other=len(finish_times[1])),
        finished=list(finish_rows.values()),
        over=Pair(**_sides(*over)),
        reached=score_times,
        best_score=Pair(**_sides(*bests)),
    )


def _sides(baseline: float | None, other: float | None) -> dict[str, Any]:
    """Return the values of both runs and their difference, by field; ``None`` where one is unknown."""
    difference = None if baseline is None or other is None else other - baseline
    return {"baseline": baseline, "other": other, "difference": difference}


def _scores(run: RunResult) -> tuple[Floats, Floats]:
    """Return times (S,) in seconds and scores (S,) of the reports with a score, in order of time."""
    table = run.table("reports")
    score = np.asarray(table["score"].fill_null(math.nan), dtype=np.float64)
    time_s = (times_us(table["time"]) - run.record.config.window_start_us) / 1e6
    is_finite = np.isfinite(score)
    return time_s[is_finite], score[is_finite]
