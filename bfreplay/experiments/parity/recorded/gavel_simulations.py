"""Published simulations of Gavel, repeated by the replay engine with the recorded shares of time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from bfreplay.datasets.fixed_cluster import fixed_cluster
from bfreplay.experiments.parity.recorded.records import golden
from bfreplay.policies.policy import Decision
from bfreplay.policies.state import PolicyState
from bfreplay.replay import ReplaySettings
from bfreplay.runs import RunResult, RunSettings, run_replay
from bfreplay.systems.gavel.gavel_policy import GavelPolicy
from bfreplay.systems.gavel.options import GavelOptions
from bfreplay.systems.gavel.rounds.state import NOBODY
from bfreplay.systems.gavel.shares.share_problem import SharePolicy, ShareProblem, TimeShares
from bfreplay.systems.gavel.throughputs import read_throughputs
from bfreplay.systems.gavel.trace import read_trace

SCENARIOS = (
    "cont10_prio", "cont12_single", "quirk_few_steps", "quirk_idle_gap", "quirk_stall", "static12_multi",
    "static8_single",
)  # fmt: skip
_DO_NOT_KNOW_TYPES = ("fifo", "max_min_fairness", "finish_time_fairness", "min_total_duration", "isolated")


class RecordedShares(SharePolicy):
    """Recorded shares, one recomputation after the other."""

    def __init__(self, policy: str, events: list[dict[str, Any]]) -> None:
        self.uses_pairs = "packed" in policy or policy == "gandiva"
        self.runs_only_its_own = policy.startswith("fifo")
        self.looks_at_work = False
        self.shuffles_types = policy in _DO_NOT_KNOW_TYPES
        self._events = events
        self._n = 0

    def shares(self, problem: ShareProblem) -> TimeShares:
        """Return the next recorded shares."""
        allocation = self._events[self._n]["allocation"]
        self._n += 1
        types = problem.type_names
        alone = [[allocation[str(job)][name] for name in types] for job in problem.job.tolist()]
        nothing = dict.fromkeys(types, 0.0)
        keys = [f"{a},{b}" for a, b in problem.job[problem.pair].tolist()]
        pairs = [[allocation.get(key, nothing)[name] for name in types] for key in keys]
        return TimeShares(np.array(alone), np.array(pairs).reshape(-1, len(types)))

    def forget(self) -> None:
        """Restart from the first shares."""
        self._n = 0


class RecordedPolicy(GavelPolicy):
    """Gavel's rounds on recorded shares; records the jobs of each round."""

    def __init__(self, name: str, shares: SharePolicy, seed: int) -> None:
        self.name = f"gavel.{name}"
        self.rounds: list[list[Any]] = []
        """Rounds in the form of ``recorded_rounds``."""
        self.counts: dict[str, object] = {}
        super().__init__(GavelOptions(published=True, seed=seed))
        self.shares = shares

    @staticmethod
    def make_shares(options: GavelOptions) -> SharePolicy:
        """Return empty shares; those of the record replace them."""
        return RecordedShares("", [])

    def decide(self, state: PolicyState) -> Decision:
        """Return the next round."""
        decision = super().decide(state)
        ran = self.assignment
        assert ran is not None
        assert state.nodes is not None
        types = sorted(state.nodes.type_names)
        run = {
            int(job): [types[ran.node_type[task]], sorted(ran.nodes_of(task).tolist()), float(ran.steps[task, side])]
            for task in range(ran.n_tasks)
            for side, job in enumerate(ran.member[task].tolist())
            if job != NOBODY
        }
        if run:
            self.rounds.append([state.time_us / 1e6, run])
        self.counts = self.summary()
        return decision


def record_of(shared: Path, scenario: str) -> dict[str, Any]:
    """Read the record of a scenario."""
    record: dict[str, Any] = golden(shared, f"gavel/simulations/{scenario}")
    return record


def recorded_rounds(result: dict[str, Any]) -> list[list[Any]]:
    """Return each round with jobs: its time, and node type, nodes and steps by job."""
    return [
        [
            each["t"],
            {
                int(job): [task["type"], sorted(task["workers"]), task["steps"][side]]
                for jobs, task in each["run"].items()
                for side, job in enumerate(jobs.split(","))
            },
        ]
        for each in result["rounds"]
        if each["run"]
    ]


def replay_scenario(record: dict[str, Any], folder: Path, policy: GavelPolicy, **settings: Any) -> RunResult:
    """Replay the scenario's trace on its cluster, from the files that a user would have."""
    trace, table = folder / f"{record['scenario']}.trace", folder / f"{record['scenario']}.json"
    trace.write_text(record["trace"])
    table.write_text(json.dumps(record["throughputs"]))
    cluster = ",".join(f"{name}={n}" for name, n in record["cluster_spec"].items() if n)
    return run_replay(
        fixed_cluster(cluster),
        read_trace(trace, read_throughputs(table)),
        policy,
        ReplaySettings(max_parallel=100, until_done=True, **settings),
        RunSettings(efficiency=False, bound=False),
    )


def completion_s(run: RunResult) -> dict[int, float | None]:
    """Return the completion time (JCT) of each job in seconds; ``None`` if it did not complete."""
    table = run.jobs
    jct = (table["finished"] - table["submitted"]).dt.total_seconds()
    return {job: None if np.isnan(value) else float(value) for job, value in enumerate(jct)}
