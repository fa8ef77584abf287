"""Shares of time of Shockwave's six baselines in recorded runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bfreplay.experiments.parity.recorded.shockwave_schedules import golden
from bfreplay.systems.gavel.shares.finish_time_fairness import FinishTimeFairness
from bfreplay.systems.gavel.shares.share_problem import ShareProblem

RECORDED = ("first12_4gpus_tacc", "first20_8gpus_tacc", "120jobs_32gpus_tacc", "220jobs_64gpus_wisr")
"""Runs with recorded shares."""


def recorded_shares(shared: Path, which: str, name: str) -> Iterator[tuple[ShareProblem, NDArray[np.float64]]]:
    """Yield the problems of a policy in a recorded run, and its shares, (m,)."""
    n_gpus = int(which.split("_")[1].removesuffix("gpus"))
    for call in golden(shared, f"baselines/alloc_{which}_{name}"):
        m = len(call["job"])
        ones = np.ones(m)
        problem = ShareProblem(
            np.array(call["job"]), ("v100",), np.array([n_gpus]), np.array(call["sf"]),
            np.array(call["thr"], float)[:, None], ones, np.array(call.get("steps_left", ones), float),
            np.array(call.get("since_start", ones), float), np.full(m, np.inf), np.ones(1),
        )  # fmt: skip
        yield problem, np.array(call["alloc"], float)


def level_of(name: str, problem: ShareProblem, share: NDArray[np.float64]) -> float:
    """Return the objective of ``gavel``, ``mst`` or ``ossp``, which they maximise, at a share (m,)."""
    if name == "gavel":
        return float((problem.gang * share).min())
    if name == "mst":
        return float(problem.rate[:, 0] @ share)
    counts = problem.steps_left > 0
    return float(((problem.rate[:, 0] * share)[counts] / problem.steps_left[counts]).min())  # 1 / makespan


def themis_rho(policy: FinishTimeFairness, problem: ShareProblem, share: NDArray[np.float64]) -> float:
    """Return the largest finish-time fairness at a share (m,), with the times alone stored in ``policy``."""
    so_far = np.array([policy.isolated_s()[job] for job in problem.job.tolist()])
    rate = problem.rate[:, 0]
    isolated = rate * np.minimum(1.0, problem.n_nodes[0] / (problem.n_jobs * problem.gang))
    alone_s = so_far + problem.steps_left / isolated
    counts = problem.steps_left > 0  # jobs without remaining work do not count
    return float(((problem.age_s + problem.steps_left / (rate * share)) / alone_s)[counts].max())
