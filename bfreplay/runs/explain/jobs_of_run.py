"""Outcome of each job of a run: waiting and completion time, nodes, costs, samples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.times import iso_utc
from bfreplay.replay.job_outcomes import STATUSES
from bfreplay.replay.ledger import HELD
from bfreplay.runs.explain.saved_tables import NODE_US_PER_HOUR, SavedAllocations, jobs_frame, model_label
from bfreplay.runs.run_result import RunResult
from bfreplay.workload import ElasticJob

if TYPE_CHECKING:
    import pandas as pd

_Numbers = NDArray[np.float64]
_OF_TABLE = (
    "work_samples",
    "done_samples",
    "rescale_cost_samples",
    "preemption_cost_samples",
    "repeated_samples",
    "n_starts",
    "n_scale_ups",
    "n_scale_downs",
    "n_preemptions",
    "n_reports",
    "best_score",
    "last_score",
)


_QUANTILES = (("median", 0.5), ("p95", 0.95))
_TIMES = {f"{what}_{name}_s": (f"{what}_s", share) for what in ("queue", "completion") for name, share in _QUANTILES}
"""Column of ``job_answers`` and quantile behind each time."""


def job_answers(run: RunResult, jobs: Mapping[str, ElasticJob] | None = None) -> pd.DataFrame:
    """Return the outcome of every job of ``run``, in the order of its table of jobs.

    Parameters
    ----------
    run
        The run.
    jobs
        Its jobs by name (``recorded_jobs``); without them ``efficiency`` and ``slowdown``, which need curves, are null.

    Returns
    -------
    DataFrame
        One row per job: ``job``, ``model``, ``status``, ``submitted``, ``ended``, and

        - ``queue_s``: from submit to first start; null for a job that never started.
        - ``completion_s``: from submit to finish; null for a job that did not finish.
        - ``held_s``: time in which it held nodes; ``mean_nodes``: mean number of nodes over that time. A node shared
          with another job counts as half.
        - ``held_node_hours``, ``useful_node_hours``, ``rescaling_node_hours``, ``preempted_node_hours``,
          ``repeated_node_hours``, ``stalled_node_hours``: the last five add up to the first.
        - ``efficiency``: ``done_samples`` over the samples of the job in ``held_s`` on ``mean_nodes`` dedicated nodes,
          without sharing, summed over node types; throughput is interpolated linearly between whole numbers of nodes.
        - ``slowdown``: ``completion_s`` over the time of its work at the best rate within its bounds, on any node type
          of the log.
        - the columns of the table of jobs that count samples, rescales and reports, unchanged.
    """
    import pandas as pd

    job_table = jobs_frame(run)
    by_type = _time_by_type(run, job_table["job"].tolist())
    lasts_s = np.sum([seconds for seconds, _ in by_type.values()], axis=0)
    node_hours = {f"{label}_node_hours": job_table[f"{label}_node_us"] / NODE_US_PER_HOUR for label in HELD}
    node_us = sum((job_table[f"{label}_node_us"] for label in HELD), start=pd.Series(0, index=job_table.index))
    mean_nodes = np.divide(node_us.to_numpy() / 1e6, lasts_s, out=np.full(len(job_table), math.nan), where=lasts_s > 0)
    completion_s = (job_table["finished"] - job_table["submitted"]).dt.total_seconds()
    jobs_in_order = [None if jobs is None else jobs.get(job_name) for job_name in job_table["job"]]
    samples_done = job_table["done_samples"].tolist()
    node_types = run.record.inputs.node_types
    return pd.DataFrame(
        {
            **{column_name: job_table[column_name] for column_name in ("job", "model", "status", "submitted", "ended")},
            "queue_s": (job_table["first_start"] - job_table["submitted"]).dt.total_seconds(),
            "completion_s": completion_s,
            "held_s": lasts_s,
            "mean_nodes": mean_nodes,
            "held_node_hours": node_us / NODE_US_PER_HOUR,
            **node_hours,
            "efficiency": [_efficiency(job, samples_done, by_type, index) for index, job in enumerate(jobs_in_order)],
            "slowdown": [_slowdown(*of_job, node_types) for of_job in zip(jobs_in_order, completion_s, strict=True)],
            **{column_name: job_table[column_name] for column_name in _OF_TABLE},
        }
    )


def _time_by_type(run: RunResult, names: list[str]) -> dict[str, tuple[_Numbers, _Numbers]]:
    """Return by node type the seconds with at least one node (J,), and the mean number of nodes in them (J,)."""
    run_allocations, time_by_type = SavedAllocations.of(run), {}
    row_of_name = {name: k for k, name in enumerate(names)}
    row_of_job = np.array([row_of_name[name] for name in run_allocations.names], dtype=np.int64)
    sums_shape = (2, len(run_allocations.type_names) + 1, len(names))  # the last type: never held
    lasts_us, node_us = np.zeros(sums_shape, dtype=np.int64)
    for allocations in run_allocations.batches():
        type_and_job = allocations.node_type, row_of_job[allocations.job]
        np.add.at(lasts_us, type_and_job, allocations.to_us - allocations.from_us)
        np.add.at(node_us, type_and_job, allocations.count * (allocations.to_us - allocations.from_us))
    for name in run.record.inputs.node_types:
        k = run_allocations.type_names.index(name) if name in run_allocations.type_names else -1
        seconds = lasts_us[k] / 1e6
        time_by_type[name] = seconds, np.divide(node_us[k] / 1e6, seconds, out=np.zeros(len(names)), where=seconds > 0)
    return time_by_type


def _efficiency(
    job: ElasticJob | None, samples_done: list[float], time_by_type: Mapping[str, tuple[_Numbers, _Numbers]], index: int
) -> float:
    """Return the efficiency of the ``index``-th job; ``time_by_type`` is that of ``_time_by_type``."""
    if job is None:
        return math.nan
    could = 0.0
    for type_name, (seconds, mean_nodes) in time_by_type.items():
        curve = job.average_throughput_on(type_name)
        if seconds[index] > 0 and curve is not None:
            nodes = min(mean_nodes[index], job.max_nodes)  # rounding may lift a mean of max_nodes a hair above
            could += seconds[index] * float(np.interp(nodes, np.arange(job.max_nodes + 1), curve.table(job.max_nodes)))
    return samples_done[index] / could if could > 0 else math.nan


def _slowdown(job: ElasticJob | None, completion_s: float, types: Sequence[str]) -> float:
    if job is None or math.isnan(completion_s):
        return math.nan
    curves = [type_curve for type_name in types if (type_curve := job.average_throughput_on(type_name)) is not None]
    best_rate = max(float(type_curve.table(job.max_nodes)[job.min_nodes :].max()) for type_curve in curves)
    return completion_s * best_rate / job.work_samples


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return one object per row: times as ISO-8601 UTC; NaN, NaT and infinity as ``None``."""
    return [{str(name): _plain(value) for name, value in frame_row.items()} for frame_row in frame.to_dict("records")]


def _plain(value: Any) -> Any:
    if value is None or value != value or value in (math.inf, -math.inf):
        return None
    if hasattr(value, "value"):  # a pandas Timestamp: nanoseconds
        return iso_utc(int(value.value) // 1000)
    return value.item() if hasattr(value, "item") else value


def model_answers(answers: pd.DataFrame) -> pd.DataFrame:
    """Sum up the jobs of each model.

    Parameters
    ----------
    answers
        ``job_answers`` of the run.

    Returns
    -------
    DataFrame
        One row per model, in order of its first job: ``model``, ``n_jobs``, the number of jobs in each of `STATUSES`;
        ``queue_median_s`` and ``queue_p95_s`` of jobs that started, ``completion_median_s`` and ``completion_p95_s`` of
        jobs that finished; ``samples``; and the node-hours of ``job_answers``.
    """
    import pandas as pd

    node_hours = [column for column in answers.columns if column.endswith("_node_hours")]
    model_rows = [
        {
            "model": model_name,
            "n_jobs": len(of_model),
            **{status: int((of_model["status"] == status).sum()) for status in STATUSES},
            **{column_name: of_model[column].quantile(quantile) for column_name, (column, quantile) in _TIMES.items()},
            "samples": of_model["done_samples"].sum(),
            **{column: of_model[column].sum() for column in node_hours},
        }
        for model_name, of_model in answers.groupby(answers["model"].map(model_label), sort=False)
    ]
    columns = ["model", "n_jobs", *STATUSES, *_TIMES, "samples", *node_hours]
    return pd.DataFrame(model_rows, columns=columns)  # named: a run may have no job
