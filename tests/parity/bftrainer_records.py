"""Records of BFTrainer's published program: decisions and replays, as inputs of ours and the expected answers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bfreplay.datasets import NodeEvents, NodeState, read_published_jobs
from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.problem import AllocationProblem, published_change_limit
from bfreplay.milp.verify import objective_of
from bfreplay.policies import Decision, Placement, Policy, PolicyState
from bfreplay.policies.bftrainer import problem_of
from bfreplay.replay import ReplaySettings, Semantics
from bfreplay.runs import RunResult, RunSettings, run_replay
from bfreplay.workload import JobSet
from tests.parity.records import golden

Record = dict[str, Any]


def decision_records(shared: Path) -> list[Record]:
    """Read all recorded decisions of golden/bftrainer/decisions.json.gz, in file order."""
    return list(golden(shared, "bftrainer/decisions"))


def recorded_problem(record: Record) -> AllocationProblem:
    """Return the problem of a decision: gain is T_fwd times the curve, a loss the current rate times the cost."""
    current = np.array([len(nodes) for nodes in record["current_nodes"]], dtype=np.int64)
    min_nodes = np.array(record["min_nodes"], dtype=np.int64)
    max_nodes = np.array(record["max_nodes"], dtype=np.int64)
    width = 1 + max(int(max_nodes.max(initial=0)), int(current.max(initial=0)))
    counts = np.arange(width, dtype=np.float64)
    curves = zip(record["curve_nodes"], record["curve_objective"], strict=True)
    objective = np.array([np.interp(counts, *curve) for curve in curves]).reshape(len(current), width)
    running = current >= min_nodes
    rate_now = np.where(running, objective[np.arange(len(current)), current], 0.0)
    problem = AllocationProblem(
        current=current,
        min_nodes=min_nodes,
        max_nodes=max_nodes,
        gain=record["t_fwd_s"] * objective,
        scale_up_loss=rate_now * np.array(record["scale_up_cost_s"]),
        scale_down_loss=rate_now * np.array(record["scale_down_cost_s"]),
        capacity=int(record["n_nodes"]),
    )
    problem.validate()
    return problem


RUNS = ("G1", "G2", "G3", "G4", "G5", "G6", "G7")
_JOB_FILES = {
    "ImageNet-imgps-1001J": ("ImageNet-imgps-Jbnd-1001J.pkl", "ImageNet-imgps-JNPs-1001J.pkl"),
    "ImageNet-spdup-1001J": ("ImageNet-spdup-Jbnd-1001J.pkl", "ImageNet-spdup-JNPs-1001J.pkl"),
    "hps-shufflenet-10J": ("hps-shufflenet-Jbnd-10J.pkl", "hps-shufflenet-JNPs-10J.pkl"),
}

LOG_COLUMNS = {
    "Thr": "samples_since_last",
    "Rate": "rate_samples_per_s",
    "ReScost": "rescale_cost_samples",
    "Nleft": "n_reclaimed",
    "Npre": "n_jobs_preempted",
    "Njoin": "n_joined",
    "nJob": "n_jobs",
    "nNd": "n_idle",
    "nJrun": "n_jobs_running",
    "nNrun": "n_nodes_used",
    "PreCost": "preemption_cost_samples",
}
"""Columns of the published step log, and those of the decision table."""


def time_us(text: str) -> int:
    """Return a time of the records in microseconds."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1_000_000


@dataclass
class PublishedReplay:
    """Recorded replay: its log of nodes, its jobs, and the decisions and log of the program."""

    run: str
    record: dict[str, Any]
    events: NodeEvents
    jobs: JobSet

    @classmethod
    @cache
    def load(cls, shared: Path, run: str) -> PublishedReplay:
        """Read the replay named ``run``: ``"G1"`` and so on; once, and so it is repeated once."""
        record = golden(shared, f"bftrainer/replay-{run}")
        bounds, curves = _JOB_FILES[record["job_set"]]
        data = shared / "data" / "bftrainer"
        jobs = read_published_jobs(data / bounds, data / curves)
        return cls(run, record, _events(shared / f"golden/bftrainer/replay-{run}-events.csv.gz", record), jobs)

    @property
    def step_log(self) -> list[dict[str, Any]]:
        """Rows of the log: the time, and the columns of ``LOG_COLUMNS``."""
        log = self.record["step_log"]
        names = ("evtTime", *LOG_COLUMNS)
        return [dict(zip(names, row, strict=True)) for row in zip(*(log[name] for name in names), strict=True)]

    @cached_property
    def rerun(self) -> Rerun:
        """Our replay with the recorded decisions."""
        policy = RecordedPolicy(self)
        settings = ReplaySettings(self.record["max_parallel_jobs"], Semantics.PUBLISHED, seed_map=policy.first)
        run_settings = RunSettings(efficiency=False, bound=False)
        return Rerun(policy, run_replay(self.events, self.jobs, policy, settings, run_settings))


@dataclass
class Rerun:
    """Rerun of a recorded replay: its policy with all decisions, and the run."""

    policy: RecordedPolicy
    run: RunResult

    def step_log(self) -> list[dict[str, Any]]:
        """Return the rows of ``PublishedReplay.step_log``, from our tables."""
        ours = self.run.table("decisions").to_pydict()
        times = [time.strftime("%Y-%m-%d %H:%M:%S") for time in ours["time"]]
        rows = zip(times, *(ours[name] for name in LOG_COLUMNS.values()), strict=True)
        names = ("evtTime", *LOG_COLUMNS)
        # the first seeds the map, which the published program does not log
        return [dict(zip(names, row, strict=True)) for row in rows][1:]

    def final_progress(self) -> dict[str, float]:
        """Return the samples done of each job that is not finished."""
        jobs = self.run.jobs
        unfinished = jobs[jobs["status"].isin(("running", "waiting"))]
        return dict(zip(unfinished["job"], unfinished["done_samples"].tolist(), strict=True))


def _events(path: Path, record: dict[str, Any]) -> NodeEvents:
    """Return the log of nodes, from ``window_start`` to the last event.

    The first time has no row if no node was idle then; the program stopped before ``window_end``.
    """
    rows = pd.read_csv(path).sort_values(["time", "node", "idle"])
    times_us = [time_us(time) for time in rows["time"]]
    nodes = sorted(record["nodes"])
    return NodeEvents.from_arrays(
        nodes,
        np.full(len(nodes), NodeState.BUSY, dtype=np.int8),
        times_us,
        np.searchsorted(nodes, rows["node"]),
        np.where(rows["idle"], NodeState.IDLE, NodeState.BUSY),
        time_us(record["window_start"]),
        times_us[-1],
    )


class RecordedPolicy(Policy):
    """Policy that takes every decision of a published replay."""

    name = "recorded"

    def __init__(self, published: PublishedReplay) -> None:
        self._recorded = {time_us(each["time"]): each for each in published.record["decisions"]}
        self._first = published.record["initial"]
        self._position = {name: k for k, name in enumerate(published.events.nodes)}
        self._jobs = [job.name for job in published.jobs]
        self._t_fwd_s = published.record["t_fwd_s"]
        self.questions: list[list[Any]] = []
        """Time, jobs, nodes of each job, and idle nodes of each decision."""
        self.problems: list[AllocationProblem] = []
        """Problem of each decision, without the published limit."""
        self.counts: list[NDArray[np.int64]] = []
        """Recorded answer to each, (J,)."""

    def decide(self, state: PolicyState) -> Decision:
        """Return the recorded decision of this time."""
        recorded = self._recorded[state.time_us]
        jobs = [self._jobs[j] for j in state.job]
        self.questions.append([recorded["time"], jobs, state.current.tolist(), state.n_idle])
        decision = self._decision(recorded["assigned"])
        self.problems.append(problem_of(state, self._t_fwd_s))
        self.counts.append(decision.counts)
        return decision

    def first(self, state: PolicyState, free: NDArray[np.int64], rng: np.random.Generator) -> Decision:
        """Return the recorded map of the start."""
        initial = self._first["initial"]
        return self._decision([initial.get(self._jobs[j], []) for j in state.job])

    def _decision(self, assigned: list[list[str]]) -> Decision:
        nodes = tuple(np.array([self._position[name] for name in names], dtype=np.int64) for names in assigned)
        return Decision(np.array([len(n) for n in nodes], dtype=np.int64), placement=Placement(nodes))


def recorded_questions(published: PublishedReplay) -> list[list[Any]]:
    """Return the decisions of the published program in the form of ``RecordedPolicy.questions``."""
    return [
        [each["time"], each["jobs"], [len(nodes) for nodes in each["current"]], len(each["nodes"])]
        for each in published.record["decisions"]
    ]


def under_limit(problem: AllocationProblem) -> AllocationProblem:
    """Return the decision with the published model's limit on changes."""
    return replace(problem, change_limit=published_change_limit(problem.capacity))


def objectives(policy: RecordedPolicy) -> tuple[list[float], list[float]]:
    """Return the optimum under the published limit, and the value of the recorded answer, of each decision."""
    problems = [under_limit(problem) for problem in policy.problems]
    optima = [ExactSolver().solve(problem).objective for problem in problems]
    return optima, [objective_of(problem, counts) for problem, counts in zip(problems, policy.counts, strict=True)]
