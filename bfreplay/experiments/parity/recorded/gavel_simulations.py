"""Published simulations of Gavel, repeated by the replay engine with the recorded shares of time."""

import gzip
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from bfreplay.datasets.fixed_cluster import fixed_cluster
from bfreplay.policies.policy import Decision
from bfreplay.policies.state import PolicyState
from bfreplay.replay import ReplaySettings
from bfreplay.runs import RunResult, replay_log
from bfreplay.systems.gavel.gavel_policy import GavelPolicy
from bfreplay.systems.gavel.options import GavelOptions
from bfreplay.systems.gavel.rounds.state import NOBODY
from bfreplay.systems.gavel.shares.share_problem import SharePolicy, ShareProblem, TimeShares
from bfreplay.systems.gavel.throughputs import read_throughputs
from bfreplay.systems.gavel.trace import read_trace

_FOLDER = Path(os.environ.get("BFREPLAY_SHARED") or Path(__file__).resolve().parents[4] / "shared")
SCENARIOS = tuple(
    sorted(path.name.removesuffix(".json.gz") for path in (_FOLDER / "golden/gavel/simulations").glob("*.json.gz"))
) or ("static8_single",)
"""All that are recorded; the one name stands for them where the shared data are absent, and its tests are skipped."""
_DO_NOT_KNOW_TYPES = ("fifo", "max_min_fairness", "finish_time_fairness", "min_total_duration", "isolated")


class RecordedShares(SharePolicy):
    """Answers with the shares of a record, one recomputation after the other."""

    def __init__(self, policy: str, events: list[dict[str, Any]]) -> None:
        self.uses_pairs = "packed" in policy or policy == "gandiva"
        self.runs_only_its_own = policy.startswith("fifo")
        self.looks_at_work = False
        self.shuffles_types = policy in _DO_NOT_KNOW_TYPES
        self._events = events
        self._n = 0

    def shares(self, problem: ShareProblem) -> TimeShares:
        allocation = self._events[self._n]["allocation"]
        self._n += 1
        types = problem.type_names
        alone = [[allocation[str(job)][name] for name in types] for job in problem.job.tolist()]
        nothing = dict.fromkeys(types, 0.0)
        keys = [f"{a},{b}" for a, b in problem.job[problem.pair].tolist()]
        pairs = [[allocation.get(key, nothing)[name] for name in types] for key in keys]
        return TimeShares(np.array(alone), np.array(pairs).reshape(-1, len(types)))

    def forget(self) -> None:
        self._n = 0


class RecordedPolicy(GavelPolicy):
    """Gavel's rounds on recorded shares; keeps what ran in each round."""

    def __init__(self, name: str, shares: SharePolicy, seed: int) -> None:
        self.name = f"gavel.{name}"
        self._given = shares
        self.rounds: list[tuple[int, dict[int, tuple[str, list[int], float]]]] = []
        self.counted: dict[str, object] = {}
        super().__init__(GavelOptions(published=True, seed=seed))
        self.shares = shares

    @staticmethod
    def make_shares(options: GavelOptions) -> SharePolicy:
        return RecordedShares("", [])

    def decide(self, state: PolicyState) -> Decision:
        decision = super().decide(state)
        ran = self.assignment
        assert ran is not None
        types = sorted(state.nodes.type_names)
        run = {
            int(job): (types[ran.node_type[task]], ran.nodes_of(task).tolist(), float(ran.steps[task, side]))
            for task in range(ran.n_tasks)
            for side, job in enumerate(ran.member[task].tolist())
            if job != NOBODY
        }
        if run:
            self.rounds.append((state.time_us, run))
        self.counted = self.summary()
        return decision


def record_of(shared: Path, scenario: str) -> dict[str, Any]:
    """What the published program wrote down of a scenario."""
    with gzip.open(shared / "golden/gavel/simulations" / f"{scenario}.json.gz", "rt") as file:
        return json.load(file)


def replayed(record: dict[str, Any], folder: Path, policy: GavelPolicy, **settings: Any) -> RunResult:
    """The scenario's trace on its cluster, from the files that a user would have."""
    trace, table = folder / f"{record['scenario']}.trace", folder / f"{record['scenario']}.json"
    trace.write_text(record["trace"])
    table.write_text(json.dumps(record["throughputs"]))
    cluster = ",".join(f"{name}={n}" for name, n in record["cluster_spec"].items() if n)
    return replay_log(
        fixed_cluster(cluster),
        read_trace(trace, read_throughputs(table)),
        policy,
        ReplaySettings(max_parallel=100, until_done=True, **settings),
        with_efficiency=False,
        with_bound=False,
    )


def completion_s(run: RunResult) -> dict[int, float | None]:
    """Seconds from submission to completion of each job; ``None`` for one that did not complete."""
    table = run.jobs
    jct = (table["finished"] - table["submitted"]).dt.total_seconds()
    return {job: None if np.isnan(value) else float(value) for job, value in enumerate(jct)}
