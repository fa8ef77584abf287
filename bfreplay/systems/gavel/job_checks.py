"""Checks of jobs that Gavel's policies cannot run."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bfreplay.errors import InputError
from bfreplay.scalability.law import LARGEST_RATE
from bfreplay.workload import ElasticJob

_FARTHEST = 1e6
"""Largest ratio of a job's rates on two types."""


def refuse_standstill(jobs: Sequence[ElasticJob]) -> None:
    """Raise ``InputError`` for a job that hardly goes on on a type: as published, rounds may choose it for ever."""
    for job in jobs:
        curves = job.throughput_by_type or {"": job.throughput}
        rates = {node_type: float(curve.table(job.max_nodes).max()) for node_type, curve in curves.items()}
        least_rate = max(max(rates.values()) / _FARTHEST, 1 / LARGEST_RATE)
        for node_type in (node_type for node_type, rate in rates.items() if 0 < rate < least_rate):
            raise InputError(
                f"job {job.name!r} hardly goes on" + f" on the node type {node_type!r}" * (node_type != ""),
                column="throughput",
                value=rates[node_type],
                expected=f"{least_rate:g} samples/s or more, or none",
                fix="correct the rate, or omit the type" if node_type else "correct the rate",
            )


def refuse_endless(policy: str, remaining_steps: NDArray[np.float64]) -> None:
    """Raise ``InputError`` if one of the jobs has no end."""
    if np.isinf(remaining_steps).any():
        raise InputError(
            f"the policy {policy!r} needs the remaining work of each job, and some jobs have no end",
            column="work_samples",
            value=math.inf,
            expected="jobs with an end",
            fix="remove --unlimited-work, or choose a policy such as gavel.max_min_fairness_perf",
        )


def require_single_nodes(jobs: Sequence[object], gang: NDArray[np.int64]) -> None:
    """Raise ``InputError`` for the first of the jobs (names or numbers) that uses several nodes at once."""
    for job, nodes in zip(jobs, gang.tolist(), strict=True):
        if nodes > 1:
            raise InputError(
                f"AlloX cannot schedule job {job!r}, which needs {nodes} nodes at once",
                column="gang",
                value=nodes,
                expected="jobs that run on one node each: AlloX orders jobs on single nodes",
                fix="choose fifo_perf, max_min_fairness_perf or another of Gavel's policies, leave such jobs out, or "
                "give elastic jobs one node each: gang=min",
            )


def require_single_nodes_for_estimates(jobs: Sequence[ElasticJob], gang: NDArray[np.int64], profiled: float) -> None:
    """Raise ``InputError`` for the first of the jobs that uses several nodes: pair rates are of single nodes."""
    for job, nodes in zip(jobs, gang.tolist(), strict=True):
        if nodes > 1:
            raise InputError(
                f"pair rates are estimated for jobs on one node each, and job {job.name!r} needs {nodes}",
                column="profiled",
                value=profiled,
                expected="jobs that run on one node each",
                fix="remove profiled or such jobs (multi_gpu=false), or give elastic jobs one node: gang=min",
            )
