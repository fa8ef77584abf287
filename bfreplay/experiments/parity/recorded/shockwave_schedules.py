"""Published runs of Shockwave, repeated by the replay engine with the recorded schedules."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from bfreplay.datasets.fixed_cluster import fixed_cluster
from bfreplay.replay import ReplaySettings
from bfreplay.runs import RunResult, replay_log
from bfreplay.systems.gavel.throughputs import read_throughputs
from bfreplay.systems.shockwave.options import ShockwaveOptions
from bfreplay.systems.shockwave.shares import GandivaFair
from bfreplay.systems.shockwave.shockwave_policy import ShockwavePolicy
from bfreplay.systems.shockwave.trace import read_trace
from bfreplay.workload import JobSet

FOLDER = Path(os.environ.get("BFREPLAY_SHARED") or Path(__file__).resolve().parents[4] / "shared")
TRACES = {
    "120jobs_32gpus_tacc": ("120_0.2_5_100_40_25", "tacc", 32),
    "220jobs_64gpus_wisr": ("220_0.2_5_100_25_4", "wisr", 64),
    "460jobs_128gpus_wisr": ("460_0.2_5_100_10_1", "wisr", 128),
    "900jobs_256gpus_wisr": ("900_0.2_5_1000_5_15", "wisr", 256),
    "first12_4gpus_tacc": ("120job_first12", "tacc", 4),
    "first20_8gpus_tacc": ("120job_first20", "tacc", 8),
}
"""Of each recorded set of runs: how the trace's name begins, the throughputs, GPUs."""


def golden(shared: Path, name: str) -> Any:
    """A file of golden/shockwave."""
    with gzip.open(shared / f"golden/shockwave/{name}.json.gz", "rt") as file:
        return json.load(file)


def trace_jobs(shared: Path, begins: str, throughputs: str) -> JobSet:
    """The jobs of a trace, as a user would read them."""
    (trace,) = (shared / "data/shockwave/traces").glob(f"{begins}*.trace")
    table = shared / f"data/shockwave/throughputs/{throughputs}_throughputs.full.json.gz"
    return read_trace(trace, read_throughputs(table))


class RecordedSchedule(ShockwavePolicy):
    """Runs the recorded jobs in each round; keeps when each ended by the mechanism's own clock, and what nodes did."""

    name = "shockwave.recorded"

    def __init__(self, schedule: list[list[list[Any]]], deadline_factor: float) -> None:
        super().__init__(ShockwaveOptions(published=True, deadline_factor=deadline_factor))
        self._schedule = schedule
        self.finish_s: dict[int, float] = {}
        self.busy_s: dict[int, float] = {}
        self.timeline: dict[int, list[tuple[int, float, int]]] = {}
        self.placed: list[dict[int, list[int]]] = []
        self.active: list[list[int]] = []
        self.end_s = 0.0

    @staticmethod
    def make_shares(options):
        return GandivaFair()

    def _recompute_if_due(self, *args) -> None:
        pass

    def _picked(self, state, rounds, now_s, rows):
        if not rows.size:
            return np.zeros(0, np.int64)
        self.active.append(self._jobs.number.tolist())
        return np.array([job for job, _ in self._schedule[len(self.active) - 1]], np.int64)

    def _adjusted(self, assignment):
        begun = super()._adjusted(assignment)
        for task, job in enumerate(begun.member[:, 0].tolist()):
            seconds = float(begun.ran_s()[task])
            self.finish_s[job] = float(begun.finish_s[task])
            rate = 0 if begun.fails[task] else float(begun.steps[task, 0]) / seconds
            self.timeline.setdefault(job, []).append((len(self.active), rate, self._published.of[job].size))
            for node in begun.nodes_of(task).tolist():
                self.busy_s[node] = self.busy_s.get(node, 0.0) + seconds
        self.placed.append({job: begun.nodes_of(k).tolist() for k, job in enumerate(begun.member[:, 0].tolist())})
        self.end_s = max(self.end_s, float(begun.finish_s.max()))
        return begun


def replayed(jobs: JobSet, n_gpus: int, policy: ShockwavePolicy, **settings: Any) -> RunResult:
    """All jobs on so many GPUs; the policy keeps its metrics."""
    policy.close = lambda: None
    return replay_log(
        fixed_cluster(f"v100={n_gpus}"), jobs, policy,
        ReplaySettings(max_parallel=len(jobs), until_done=True, **settings), with_efficiency=False, with_bound=False,
    )  # fmt: skip
