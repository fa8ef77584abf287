"""What became of each job of a run: how long it waited and took, what it held, what that cost, and what it made."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from bfreplay.answers.saved import NODE_TIME, NODE_US_PER_HOUR, allocations_of, jobs_frame
from bfreplay.replay.result import RunResult
from bfreplay.workload import ElasticJob

if TYPE_CHECKING:
    import pandas as pd

_OF_TABLE = (
    "work_samples", "done_samples", "rescale_cost_samples", "preempt_cost_samples", "n_starts", "n_grown", "n_shrunk",
    "n_preempted", "n_reports", "best_score", "last_score",
)  # fmt: skip


def job_answers(run: RunResult, jobs: Mapping[str, ElasticJob] | None = None) -> pd.DataFrame:
    """Answer for every job of ``run``, in the order of its table of jobs.

    Parameters
    ----------
    run
        The run.
    jobs
        Its jobs by name (``recorded_jobs``), for what needs their curves; without them ``efficiency`` and ``slowdown``
        are null.

    Returns
    -------
    DataFrame
        One row a job. ``job``, ``model``, ``status``, ``submitted``, ``ended``, and

        - ``queue_s``: from submit to first start; null for a job that never started.
        - ``completion_s``: from submit to finish; null for a job that did not finish.
        - ``held_s``: time in which it held nodes; ``mean_nodes``: how many, on average over that time.
        - ``held_node_hours``, ``useful_node_hours``, ``rescaling_node_hours``, ``lost_to_preemption_node_hours``,
          ``stalled_node_hours``: the last four add up to the first.
        - ``efficiency``: ``done_samples`` over what the job makes in ``held_s`` on ``mean_nodes`` dedicated nodes, its
          throughput interpolated linearly between the whole numbers of nodes below and above.
        - ``slowdown``: ``completion_s`` over the time that its work takes at the best rate of its throughput within
          its bounds.
        - the columns of the table of jobs that count samples, rescales and reports, as they are.
    """
    import pandas as pd

    table = jobs_frame(run)
    held_s = _held_s(run, table["job"].tolist())
    node_hours = {f"{label}_node_hours": table[f"{label}_node_us"] / NODE_US_PER_HOUR for label in NODE_TIME}
    held_node_us = sum((table[f"{label}_node_us"] for label in NODE_TIME), start=pd.Series(0, index=table.index))
    mean_nodes = np.divide(held_node_us.to_numpy() / 1e6, held_s, out=np.full(len(table), math.nan), where=held_s > 0)
    completion_s = (table["finished"] - table["submitted"]).dt.total_seconds()
    known = [None if jobs is None else jobs.get(name) for name in table["job"]]
    done = table["done_samples"].tolist()
    return pd.DataFrame(
        {
            **{name: table[name] for name in ("job", "model", "status", "submitted", "ended")},
            "queue_s": (table["first_start"] - table["submitted"]).dt.total_seconds(),
            "completion_s": completion_s,
            "held_s": held_s,
            "mean_nodes": mean_nodes,
            "held_node_hours": held_node_us / NODE_US_PER_HOUR,
            **node_hours,
            "efficiency": [_efficiency(*of_job) for of_job in zip(known, done, mean_nodes, held_s, strict=True)],
            "slowdown": [_slowdown(*of_job) for of_job in zip(known, completion_s, strict=True)],
            **{name: table[name] for name in _OF_TABLE},
        }
    )


def _held_s(run: RunResult, names: list[str]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Seconds with at least one node, (J,)."""
    held = allocations_of(run)
    of_name = np.zeros(len(held.names), dtype=np.int64)
    np.add.at(of_name, held.job, held.to_us - held.from_us)
    seconds = dict(zip(held.names, (of_name / 1e6).tolist(), strict=True))
    return np.array([seconds.get(name, 0.0) for name in names])


def _efficiency(job: ElasticJob | None, done_samples: float, mean_nodes: float, held_s: float) -> float:
    if job is None or not held_s > 0:
        return math.nan
    nodes = min(mean_nodes, job.max_nodes)  # rounding may lift a mean of max_nodes a hair above
    rate = float(np.interp(nodes, np.arange(job.max_nodes + 1), job.throughput.table(job.max_nodes)))
    return done_samples / (rate * held_s) if rate > 0 else math.nan


def _slowdown(job: ElasticJob | None, completion_s: float) -> float:
    if job is None or math.isnan(completion_s):
        return math.nan
    best = float(job.throughput.table(job.max_nodes)[job.min_nodes :].max())
    return completion_s * best / job.work_samples
