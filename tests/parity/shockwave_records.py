"""Records of Shockwave: runs, repeated by the replay with the recorded schedules, and shares of time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.fixed_cluster import fixed_cluster
from bfreplay.policies.state import PolicyState
from bfreplay.replay import ReplaySettings
from bfreplay.runs import RunResult, RunSettings, run_replay
from bfreplay.systems.gavel.options import GavelOptions
from bfreplay.systems.gavel.rounds.state import Assignment, RoundState
from bfreplay.systems.gavel.shares.finish_time_fairness import FinishTimeFairness
from bfreplay.systems.gavel.shares.share_problem import SharePolicy, ShareProblem
from bfreplay.systems.gavel.throughputs import read_throughputs
from bfreplay.systems.shockwave.shares import GandivaFair
from bfreplay.systems.shockwave.shockwave_policy import ShockwaveOptions, ShockwavePolicy
from bfreplay.systems.shockwave.trace import read_trace
from bfreplay.workload import JobSet
from tests.parity.records import golden as record
from tests.parity.records import read_record

TRACES = {
    "120jobs_32gpus_tacc": ("120_0.2_5_100_40_25", "tacc", 32),
    "220jobs_64gpus_wisr": ("220_0.2_5_100_25_4", "wisr", 64),
    "460jobs_128gpus_wisr": ("460_0.2_5_100_10_1", "wisr", 128),
    "900jobs_256gpus_wisr": ("900_0.2_5_1000_5_15", "wisr", 256),
    "first12_4gpus_tacc": ("120job_first12", "tacc", 4),
    "first20_8gpus_tacc": ("120job_first20", "tacc", 8),
    "first32_10gpus_tacc": ("120job_first32", "tacc", 10),
}
"""By recorded set of runs: start of the trace's name, throughputs, GPUs."""

PUBLISHED_SET = "120jobs_32gpus_tacc"
"""Set of the published simulations."""

NAMES = {
    "ossp": "min_total_duration",
    "themis": "finish_time_fairness",
    "gavel": "max_min_fairness",
    "allox": "allox",
    "mst": "max_sum_throughput_perf",
    "gandiva_fair": "gandiva_fair",
}
"""Shockwave's six baselines, and their names in the records."""

SIMULATED = (
    *(f"tacc_32gpus/{name}/simulation" for name in (*NAMES.values(), "shockwave", "old_shockwave")),
    "tacc_32gpus/new_orig_hyperparam_shockwave/simulation",
    *(f"tacc_32gpus_comparison/{name}/simulation" for name in (*NAMES.values(), "shockwave") if name != "gandiva_fair"),
)
"""The 15 published simulations; those of the comparison were made with a deadline factor of 1."""

RERUNS = {
    "120jobs_32gpus_tacc": tuple(NAMES.values()),
    "first12_4gpus_tacc": (*NAMES.values(), "shockwave"),
    "first20_8gpus_tacc": (*NAMES.values(), "shockwave"),
}
"""Runs of the original that were made for the records: by set, the policies."""


def golden(shared: Path, name: str) -> Any:
    """Read a file of golden/shockwave."""
    return record(shared, f"shockwave/{name}")


def trace_jobs(shared: Path, which: str) -> JobSet:
    """Read the jobs of a set of ``TRACES``, as a user would."""
    begins, throughputs, _ = TRACES[which]
    (trace,) = (shared / "data/shockwave/traces").glob(f"{begins}*.trace")
    table = shared / f"data/shockwave/throughputs/{throughputs}_throughputs.full.json.gz"
    return read_trace(trace, read_throughputs(table))


class RecordedSchedule(ShockwavePolicy):
    """Policy that runs the recorded jobs in each round, and records their rates and nodes.

    Parameters
    ----------
    schedule
        Pairs of a job and its GPUs, by round; the GPUs are not used.
    deadline_factor
        As in ``ShockwaveOptions``.
    """

    name = "shockwave.recorded"

    def __init__(self, schedule: list[list[list[Any]]], deadline_factor: float) -> None:
        super().__init__(ShockwaveOptions(published=True, deadline_factor=deadline_factor))
        self._schedule = schedule
        self._n_picked = 0
        self.timeline: dict[str, list[list[float]]] = {}
        """Number of the round, steps/s and batch size, by job and by its rounds."""
        self.placed: list[dict[int, list[int]]] = []
        """GPUs by job, in order, for each round."""

    @staticmethod
    def make_shares(options: GavelOptions) -> SharePolicy:
        """Return shares without effect: the schedule chooses the jobs."""
        return GandivaFair()

    def _recompute_if_due(self, *arguments: Any) -> None:
        """Do nothing: shares have no effect."""

    def _pick_jobs(
        self, state: PolicyState, rounds: RoundState, now_s: float, rows: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        if not rows.size:
            return np.zeros(0, np.int64)
        self._n_picked += 1
        return np.array([job for job, _ in self._schedule[self._n_picked - 1]], np.int64)

    def _adjust_tasks(self, assignment: Assignment) -> Assignment:
        begun = super()._adjust_tasks(assignment)
        for task, job in enumerate(begun.member[:, 0].tolist()):
            rate = 0 if begun.fails[task] else float(begun.steps[task, 0]) / float(begun.ran_s()[task])
            self.timeline.setdefault(str(job), []).append([self._n_picked, rate, self._published.of[job].size])
        jobs = begun.member[:, 0].tolist()
        self.placed.append({job: sorted(begun.nodes_of(k).tolist()) for k, job in enumerate(jobs)})
        return begun


def placements(schedule: list[list[list[Any]]]) -> list[dict[int, list[int]]]:
    """Return the GPUs of each job, in order, for each round of a recorded schedule."""
    return [{job: sorted(gpus) for job, gpus in tasks} for tasks in schedule]


def replay_set(shared: Path, which: str, policy: ShockwavePolicy) -> RunResult:
    """Replay all jobs of a set of ``TRACES`` on its GPUs; the policy keeps its metrics."""
    policy.close = lambda: None  # type: ignore[method-assign]  # it would forget them
    jobs = trace_jobs(shared, which)
    return run_replay(
        fixed_cluster(f"v100={TRACES[which][2]}"),
        jobs,
        policy,
        ReplaySettings(max_parallel=len(jobs), until_done=True),
        RunSettings(efficiency=False, bound=False),
    )


@lru_cache(maxsize=2)
def published_run(shared: Path, key: str) -> tuple[RecordedSchedule, RunResult]:
    """Replay a published simulation of ``SIMULATED`` with its schedule; the last two are kept."""
    policy = RecordedSchedule(golden(shared, "published_schedules")[key], 1.0 if "comparison" in key else 1.5)
    return policy, replay_set(shared, PUBLISHED_SET, policy)


def rerun(shared: Path, which: str, name: str) -> RecordedSchedule:
    """Replay a run of the original of ``RERUNS`` with its schedule."""
    policy = RecordedSchedule(golden(shared, "original_runs_schedules")[which][name], 1.5)
    replay_set(shared, which, policy)
    return policy


def totals(published: dict[str, Any]) -> dict[str, float]:
    """Return the published totals of a run by the names of ``summary["policy"]["published"]``."""
    return {
        "makespan_s": published["makespan"],
        "average_jct_s": published["avg_jct"],
        "geometric_mean_jct_s": published["geometric_mean_jct"],
        "harmonic_mean_jct_s": published["harmonic_mean_jct"],
        "worst_rho": published["worst_ftf"],
        "unfair_percent": published["unfair_fraction_pct_gt_1p05"],
        "worst_themis_rho": published["worst_ftf_themis"],
        "unfair_themis_percent": published["unfair_fraction_themis_pct_gt_1p05"],
        "utilisation": published["cluster_util"],
        "least_scheduled": min(published["envy_ratio_list"]),
    }


def recorded_profiles(shared: Path, which: str) -> list[dict[str, Any]]:
    """Read the published profiles of the jobs of a set of ``TRACES``."""
    n_jobs, throughputs = which.split("jobs")[0], which.split("_")[-1]
    path = shared / f"data/shockwave/profiles/profile_{n_jobs}jobs_{throughputs}.json.gz"
    profiles: list[dict[str, Any]] = read_record(path)
    return profiles


RECORDED = ("first12_4gpus_tacc", "first20_8gpus_tacc", "120jobs_32gpus_tacc", "220jobs_64gpus_wisr")
"""Runs with recorded shares."""


def recorded_shares(shared: Path, which: str, name: str) -> Iterator[tuple[ShareProblem, NDArray[np.float64]]]:
    """Yield the problems of a policy in a recorded run, and its shares, (m,)."""
    n_gpus = int(which.split("_")[1].removesuffix("gpus"))
    for call in golden(shared, f"baselines/alloc_{which}_{name}"):
        m = len(call["job"])
        ones = np.ones(m)
        problem = ShareProblem(
            np.array(call["job"]),
            ("v100",),
            np.array([n_gpus]),
            np.array(call["sf"]),
            np.array(call["thr"], float)[:, None],
            ones,
            np.array(call.get("steps_left", ones), float),
            np.array(call.get("since_start", ones), float),
            np.full(m, np.inf),
            np.ones(1),
        )
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
