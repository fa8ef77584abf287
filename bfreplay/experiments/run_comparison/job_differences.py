"""Differences of two runs job by job, and of the milestones of a campaign."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec.structs import asdict
from numpy.typing import NDArray

from bfreplay.experiments.run_comparison.confidence import median_over_jobs
from bfreplay.experiments.run_comparison.hours import NODE_US_PER_HOUR, US_PER_S, Floats, times_us
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
from bfreplay.runs.run_result import RunResult

MEASURES = ("finish_s", "start_s", "waiting_s", "done_samples", "useful_node_hours")
"""Finish and first start in seconds from the start of the window; waiting: from submit to first start."""

LESS_IS_BETTER: Mapping[str, bool | None] = {
    "finish_s": True, "start_s": True, "waiting_s": True, "done_samples": False, "useful_node_hours": None
}  # fmt: skip
"""True where less is better; ``None`` for a measure without a better direction."""

_TIME_TOLERANCE_S = 1e-3
_RELATIVE_TOLERANCE = 1e-9
_SPREAD = (2.5, 97.5)


@dataclass(frozen=True, slots=True, eq=False)
class RunJobs:
    """Jobs of one run.

    Parameters
    ----------
    place
        Row of each job by its name.
    model, status, params
        Model, status and parameters of each row; ``None`` for no model, or no parameters.
    values
        A ``(J,)`` float array for each of ``MEASURES``, nan for an event that did not happen.
    """

    place: dict[str, int]
    model: list[str | None]
    status: list[str]
    params: list[str | None]
    values: dict[str, Floats]


@dataclass(frozen=True, slots=True, eq=False)
class PairedJobs:
    """P jobs that two runs share: same name, same parameters.

    Parameters
    ----------
    names, models
        Names and models of the pairs.
    status
        ``(baseline, other)`` of each pair.
    baseline, other
        ``(P,)`` arrays by ``MEASURES``.
    only_in_baseline, only_in_other
        Number of jobs without a partner of that name, which job sources and unlimited work may have.
    n_other_params
        Number of jobs with a partner of that name but other parameters.
    """

    names: list[str]
    models: list[str | None]
    status: list[tuple[str, str]]
    baseline: dict[str, Floats]
    other: dict[str, Floats]
    only_in_baseline: int
    only_in_other: int
    n_other_params: int


def run_jobs(run: RunResult) -> RunJobs:
    """Read table ``jobs`` of a run; runs of early versions have no parameters."""
    table = run.table("jobs")
    start_us = run.record.config.window_start_us

    def time_us(name: str) -> Floats:
        column = table[name].cast("int64")
        whole = np.asarray(column.fill_null(0), dtype=np.int64) - start_us
        return np.where(np.asarray(column.is_valid(), dtype=bool), whole.astype(np.float64), np.nan)

    finished, started, submitted = (time_us(name) for name in ("finished", "first_start", "submitted"))
    names = table["job"].to_pylist()
    params = table["params"].to_pylist() if "params" in table.column_names else [None] * len(names)
    values = {
        "finish_s": finished / US_PER_S,
        "start_s": started / US_PER_S,
        "waiting_s": (started - submitted) / US_PER_S,
        "done_samples": np.asarray(table["done_samples"], dtype=np.float64),
        "useful_node_hours": np.asarray(table["useful_node_us"], dtype=np.float64) / NODE_US_PER_HOUR,
    }
    place = {name: row for row, name in enumerate(names)}
    return RunJobs(place, table["model"].to_pylist(), table["status"].to_pylist(), params, values)


def pair_jobs(baseline: RunJobs, other: RunJobs) -> PairedJobs:
    """Pair the jobs of two runs, in the baseline's order."""
    shared = [name for name in baseline.place if name in other.place]
    names = [n for n in shared if baseline.params[baseline.place[n]] == other.params[other.place[n]]]
    a = np.array([baseline.place[name] for name in names], dtype=np.int64)
    b = np.array([other.place[name] for name in names], dtype=np.int64)
    return PairedJobs(
        names=names,
        models=[baseline.model[row] for row in a],
        status=[(baseline.status[i], other.status[j]) for i, j in zip(a, b, strict=True)],
        baseline={name: baseline.values[name][a] for name in MEASURES},
        other={name: other.values[name][b] for name in MEASURES},
        only_in_baseline=len(baseline.place) - len(shared),
        only_in_other=len(other.place) - len(shared),
        n_other_params=len(shared) - len(names),
    )


def job_differences(pairs: PairedJobs, *, resamples: int, seed: int) -> JobDifferences:
    """Everything about the pairs: measures, changes of status, and measures model by model."""
    models = sorted({model for model in pairs.models if model})
    everyone = np.ones(len(pairs.names), dtype=bool)
    changes = Counter(change for change in pairs.status if change[0] != change[1])
    of_model = np.array([model or "" for model in pairs.models], dtype=object)
    return JobDifferences(
        n_jobs=len(pairs.names),
        only_in_baseline=pairs.only_in_baseline,
        only_in_other=pairs.only_in_other,
        n_other_params=pairs.n_other_params,
        measures=[_measure(pairs, name, everyone, resamples=resamples, seed=seed) for name in MEASURES],
        status_changes=[
            StatusChange(baseline=before, other=after, n_jobs=n)
            for (before, after), n in sorted(changes.items(), key=lambda item: (-item[1], item[0]))
        ],
        models=[
            ModelMeasure(model=model, **asdict(_shares(pairs, name, of_model == model)))
            for model in (models if len(models) > 1 else [])
            for name in MEASURES
        ],
    )


def _difference(pairs: PairedJobs, name: str, which: NDArray[np.bool_]) -> Floats:
    """Return the differences of jobs with the measure in both runs; equal values give exactly 0."""
    a, b = pairs.baseline[name][which], pairs.other[name][which]
    both = np.isfinite(a) & np.isfinite(b)
    a, b = a[both], b[both]
    slack = _TIME_TOLERANCE_S if name.endswith("_s") else _RELATIVE_TOLERANCE * np.maximum(np.abs(a), np.abs(b))
    difference = b - a
    return np.where(np.abs(difference) <= slack, 0.0, difference)


def _shares(pairs: PairedJobs, name: str, which: NDArray[np.bool_]) -> JobShares:
    """Count jobs by the better run; a job with the measure in one run only was better in that run."""
    a, b = np.isfinite(pairs.baseline[name][which]), np.isfinite(pairs.other[name][which])
    difference = _difference(pairs, name, which)
    less, more, equal = (int((test).sum()) for test in (difference < 0, difference > 0, difference == 0))
    only_a, only_b = int((a & ~b).sum()), int((b & ~a).sum())
    less_is_better = LESS_IS_BETTER[name]
    better = None if less_is_better is None else (less if less_is_better else more) + only_b
    worse = None if less_is_better is None else (more if less_is_better else less) + only_a
    low, high = np.percentile(difference, _SPREAD) if difference.size else (None, None)
    return JobShares(
        measure=name,
        n_both=int(difference.size),
        only_in_baseline=only_a,
        only_in_other=only_b,
        n_less=less,
        n_equal=equal,
        n_more=more,
        n_better=better,
        n_worse=worse,
        median=float(np.median(difference)) if difference.size else None,
        mean=float(difference.mean()) if difference.size else None,
        p2_5=None if low is None else float(low),
        p97_5=None if high is None else float(high),
    )


def _measure(pairs: PairedJobs, name: str, which: NDArray[np.bool_], *, resamples: int, seed: int) -> JobMeasure:
    found = median_over_jobs(_difference(pairs, name, which), resamples=resamples, seed=seed)
    return JobMeasure(
        **asdict(_shares(pairs, name, which)),
        median_low=found.low,
        median_high=found.high,
        why_no_interval=found.why_no_interval,
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


def jobs_table(paired: Sequence[PairedJobs], labels: Sequence[str]) -> pa.Table:
    """Return one row per run (but the baseline) and job, with schema ``JOBS``; null for events that did not happen."""
    tables = [JOBS.empty_table()]
    for pairs, label in zip(paired, labels, strict=True):
        columns: list[Any] = [[label] * len(pairs.names), pairs.names, pairs.models]
        columns += [[status[k] for status in pairs.status] for k in (0, 1)]
        for name in MEASURES:
            a, b = pairs.baseline[name], pairs.other[name]
            columns += [a, b, b - a]
        tables.append(table_by(JOBS, columns))
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
    finished = [_finished_s(run) for run in runs]
    n = min(len(times) for times in finished)
    finish_rows: dict[int, FinishedTrial] = {}
    for word, share in _SHARES if n else ():
        k = max(1, math.ceil(share * n))
        a, b = (times[k - 1] for times in finished)
        finish_rows.setdefault(k, FinishedTrial(which=word, k=k, baseline=a, other=b, difference=b - a))
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
        n_finished=Both(baseline=len(finished[0]), other=len(finished[1])),
        finished=list(finish_rows.values()),
        over=_both(*over),
        reached=reached,
        best_score=_both(*bests),
    )


def _both(baseline: float | None, other: float | None) -> Pair:
    difference = None if baseline is None or other is None else other - baseline
    return Pair(baseline=baseline, other=other, difference=difference)


def _finished_s(run: RunResult) -> list[float]:
    finished_us = times_us(run.table("jobs")["finished"].drop_null())
    return sorted(((finished_us - run.record.config.window_start_us) / 1e6).tolist())


def _scores(run: RunResult) -> tuple[Floats, Floats]:
    """Return times (S,) in seconds and scores (S,) of the reports with a score, in order of time."""
    table = run.table("reports")
    score = np.asarray(table["score"].fill_null(math.nan), dtype=np.float64)
    time_s = (times_us(table["time"]) - run.record.config.window_start_us) / 1e6
    known = np.isfinite(score)
    return time_s[known], score[known]
