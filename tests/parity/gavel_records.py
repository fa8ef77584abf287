"""Records of Gavel: instances and simulations of its policies, as inputs of ours and the expected answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.fixed_cluster import fixed_cluster
from bfreplay.policies.policy import Decision
from bfreplay.policies.state import PolicyState
from bfreplay.replay import ReplaySettings
from bfreplay.runs import RunResult, RunSettings, run_replay
from bfreplay.systems.gavel.gavel_policy import GavelPolicy
from bfreplay.systems.gavel.options import GavelOptions
from bfreplay.systems.gavel.rounds.state import NOBODY, RoundState
from bfreplay.systems.gavel.shares.rule_shares import proportional_throughput
from bfreplay.systems.gavel.shares.share_problem import SharePolicy, ShareProblem, TimeShares
from bfreplay.systems.gavel.shares.water_filling import Entity, Hierarchy
from bfreplay.systems.gavel.throughputs import ThroughputTable, read_throughputs
from bfreplay.systems.gavel.trace import read_trace
from bfreplay.workload import JobSet
from tests.parity.records import golden


@dataclass(frozen=True)
class Call:
    """One recomputation: the problem, its entities if any, and the recorded answer as written."""

    problem: ShareProblem
    hierarchy: Hierarchy | None
    output: dict[str, Any]

    @property
    def exact_objective(self) -> float:
        """Optimum of the published formulas by another solver."""
        return float(self.output["objective"]["independent_exact"])

    def recorded_shares(self) -> TimeShares:
        """Return the original's allocation."""
        return shares_of(self.output["allocation"], self.problem)

    def per_job(self, name: str) -> np.ndarray:
        """Return numbers of the record by job."""
        return np.array([float(self.output[name][str(job)]) for job in self.problem.job])


@dataclass(frozen=True)
class Instance:
    """Sequence of calls to one policy object."""

    id: str
    policy: str
    policy_params: dict[str, Any]
    calls: tuple[Call, ...]


@cache
def instances(shared: Path) -> dict[str, Instance]:
    """Read all instances by their id, in the order of the file."""
    written = golden(shared, "gavel/policy_instances")["instances"]
    return {
        one["id"]: Instance(
            one["id"],
            one["policy"],
            one["policy_params"],
            tuple(
                Call(problem_of(call["input"]), hierarchy_of(call["input"].get("entities")), call["output"])
                for call in one["calls"]
            ),
        )
        for one in written
    }


def instances_of(shared: Path, *policies: str) -> list[Instance]:
    """Return the instances of these policies, by the original's names; at least one of each."""
    found = [one for one in instances(shared).values() if one.policy in policies]
    assert {one.policy for one in found} == set(policies)
    return found


def problem_of(given: dict[str, Any]) -> ShareProblem:
    """Return the problem, with jobs by number and types in alphabetical order."""
    types = sorted(given["cluster_spec"])
    jobs = sorted(int(job) for job in given["throughputs"])
    position = {job: k for k, job in enumerate(jobs)}

    def per_job(name: str, absent: float) -> np.ndarray:
        return np.array([float(given.get(name, {}).get(str(job), absent)) for job in jobs])

    gang = per_job("scale_factors", 1).astype(np.int64)
    written = given.get("pair_throughputs") or {}
    named = {tuple(sorted(position[int(job)] for job in name.split(","))): name for name in written}
    pairs = sorted(pair for pair in named if gang[pair[0]] == gang[pair[1]])
    # the file may name the later job first
    swapped = {pair: position[int(named[pair].split(",")[0])] != pair[0] for pair in pairs}
    pair_rate = [
        [written[named[pair]][type_name][:: -1 if swapped[pair] else 1] for type_name in types] for pair in pairs
    ]
    prices = given.get("instance_costs") or {}
    return ShareProblem(
        job=np.array(jobs, dtype=np.int64),
        type_names=tuple(types),
        n_nodes=np.array([given["cluster_spec"][name] for name in types], dtype=np.int64),
        gang=gang,
        rate=np.array([[given["throughputs"][str(job)][name] for name in types] for job in jobs], dtype=np.float64),
        weight=per_job("priority_weights", 1.0),
        steps_left=per_job("num_steps_remaining", np.nan),
        age_s=per_job("times_since_start", np.nan),
        to_deadline_s=per_job("SLOs", np.inf),
        price_per_hour=np.array([prices.get(name, 1.0) for name in types], dtype=np.float64),
        pair=np.array(pairs, dtype=np.int64).reshape(-1, 2),
        pair_rate=np.array(pair_rate, dtype=np.float64).reshape(-1, len(types), 2),
    )


def hierarchy_of(entities: dict[str, Any] | None, inner: Any = None) -> Hierarchy | None:
    """Return the entities of an input, with the inner policy of each or of all; ``None`` without entities."""
    if not entities:
        return None
    owner = {job: name for name, one in entities.items() for job in one["jobs"]}
    made = {name: Entity(float(one["weight"]), inner or one["policy"]) for name, one in entities.items()}
    return Hierarchy(made, owner.__getitem__)


def levels(shares: TimeShares, problem: ShareProblem, variant: str = "perf") -> NDArray[np.float64]:
    """Return throughput over that with time split like the cluster, (m,); agnostic: the share of time."""
    if variant == "agnostic":
        total: NDArray[np.float64] = shares.share.sum(axis=1)
        return total
    proportional = proportional_throughput(problem)
    found: NDArray[np.float64] = shares.throughput(problem) / np.where(proportional > 0, proportional, 1.0)
    return found


def figure_11(shared: Path) -> Iterator[tuple[dict[str, Any], ShareProblem, Hierarchy]]:
    """Yield the points of figure 11: the record, the problem, and its entities."""
    written = golden(shared, "gavel/hierarchical_fig11")
    for point in written["series"]:
        given = {"cluster_spec": written["cluster_spec"], "throughputs": point["throughputs"]}
        hierarchy = hierarchy_of(point["entities"], point["inner_policy"])
        assert hierarchy is not None
        yield point, problem_of({**given, "priority_weights": point["weights"]}), hierarchy


def shares_of(allocation: dict[str, dict[str, float]], problem: ShareProblem) -> TimeShares:
    """Return an allocation of the original as shares, without pairs that the problem does not have."""
    position = {int(job): k for k, job in enumerate(problem.job)}
    pair_at = {(int(a), int(b)): k for k, (a, b) in enumerate(problem.pair)}
    share = np.zeros((problem.n_jobs, problem.n_types))
    pair_share = np.zeros((problem.n_pairs, problem.n_types))
    for name, by_type in allocation.items():
        members = tuple(sorted(position[int(job)] for job in name.split(",")))
        row = [by_type[type_name] for type_name in problem.type_names]
        if len(members) == 1:
            share[members[0]] = row
        elif members in pair_at:
            pair_share[pair_at[members]] = row
    return TimeShares(share, pair_share)


SCENARIOS = (
    "cont10_prio",
    "cont12_single",
    "quirk_few_steps",
    "quirk_idle_gap",
    "quirk_stall",
    "static12_multi",
    "static8_single",
)
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
        self._n += 1
        return shares_of(self._events[self._n - 1]["allocation"], problem)

    def forget(self) -> None:
        """Restart from the first shares."""
        self._n = 0


class RecordedPolicy(GavelPolicy):
    """Gavel's rounds on recorded shares; records the jobs of each round."""

    def __init__(self, name: str, shares: SharePolicy, seed: int) -> None:
        self.name = f"gavel.{name}"
        self.rounds: list[dict[str, Any]] = []
        """Rounds in the form of ``recorded_rounds``."""
        self.queues: list[dict[str, Any]] = []
        """Priorities and deficits of each round in the form of ``recorded_queues``."""
        self.resets_s: list[float] = []
        """Times of the recomputations of shares."""
        self._busy_s: list[NDArray[np.float64]] = []
        self.counts: dict[str, object] = {}
        super().__init__(GavelOptions(published=True, seed=seed))
        self.shares = shares

    @staticmethod
    def make_shares(options: GavelOptions) -> SharePolicy:
        """Return empty shares; those of the record replace them."""
        return RecordedShares("", [])

    def _recompute_if_due(self, state: PolicyState, rounds: RoundState, now_s: float, *arguments: Any) -> None:
        before = self._n_recomputations
        super()._recompute_if_due(state, rounds, now_s, *arguments)
        self.resets_s += [now_s] * (self._n_recomputations - before)

    def decide(self, state: PolicyState) -> Decision:
        """Return the next round."""
        decision = super().decide(state)
        ran = self.assignment
        assert ran is not None
        assert state.nodes is not None
        busy_s = np.zeros(len(state.nodes.node_type))
        for task in np.flatnonzero(~ran.fails):
            busy_s[ran.nodes_of(task)] += ran.finish_s[task] - ran.counted_from_s[task]
        self._busy_s.append(busy_s)
        types = sorted(state.nodes.type_names)
        alone = [
            (task, side, int(job))
            for task in range(ran.n_tasks)
            for side, job in enumerate(ran.member[task].tolist())
            if job != NOBODY
        ]
        if alone:
            self.rounds.append(
                {
                    "start": state.time_us / 1e6,
                    "type, nodes, steps": {
                        job: [types[ran.node_type[task]], ran.nodes_of(task).tolist(), float(ran.steps[task, side])]
                        for task, side, job in alone
                    },
                    "finish": {job: float(ran.finish_s[task]) for task, _, job in alone},
                }
            )
            self.queues.append(_queues(self._state, types))
        self.counts = self.summary()
        return decision

    def busy_s(self) -> NDArray[np.float64]:
        """Return the busy seconds of each node."""
        total: NDArray[np.float64] = np.sum(self._busy_s, axis=0)
        return total


def _queues(rounds: RoundState | None, types: list[str]) -> dict[str, Any]:
    assert rounds is not None
    jobs = [str(job) for job in rounds.entries.member[:, 0].tolist()]
    return {
        what: {kind: dict(zip(jobs, values[:, k].tolist(), strict=True)) for k, kind in enumerate(types)}
        for what, values in (("priority", rounds.priority), ("deficit", rounds.entries.deficit_s))
    }


def record_of(shared: Path, scenario: str) -> dict[str, Any]:
    """Read the record of a scenario."""
    record: dict[str, Any] = golden(shared, f"gavel/simulations/{scenario}")
    return record


def recorded_rounds(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Return each round with jobs: its start, and node type, nodes, steps and finish by job."""
    return [
        {
            "start": each["t"],
            "type, nodes, steps": {
                int(job): [task["type"], task["workers"], task["steps"][side]]
                for jobs, task in each["run"].items()
                for side, job in enumerate(jobs.split(","))
            },
            "finish": {int(job): task["finish"] for jobs, task in each["run"].items() for job in jobs.split(",")},
        }
        for each in result["rounds"]
        if each["run"]
    ]


def recorded_queues(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Return priorities and deficits of each round with jobs, by node type and job; of few policies."""
    rounds = [each for each in result["rounds"] if each["run"] and "priorities" in each]
    return [{"priority": each["priorities"], "deficit": each["deficits"]} for each in rounds]


def replay_scenario(record: dict[str, Any], folder: Path, policy: GavelPolicy, *, fairness: bool = False) -> RunResult:
    """Replay the scenario's trace on its cluster, from the files that a user would have."""
    trace, table = folder / f"{record['scenario']}.trace", folder / f"{record['scenario']}.json"
    trace.write_text(record["trace"])
    table.write_text(json.dumps(record["throughputs"]))
    cluster = ",".join(f"{name}={n}" for name, n in record["cluster_spec"].items() if n)
    return run_replay(
        fixed_cluster(cluster),
        read_trace(trace, read_throughputs(table)),
        policy,
        ReplaySettings(max_parallel=100, until_done=True),
        RunSettings(efficiency=False, bound=False, fairness=fairness),
    )


def completion_s(run: RunResult) -> dict[int, float | None]:
    """Return the completion time (JCT) of each job in seconds; ``None`` if it did not complete."""
    table = run.jobs
    jct = (table["finished"] - table["submitted"]).dt.total_seconds()
    return {job: None if np.isnan(value) else float(value) for job, value in enumerate(jct)}


def throughputs_of(shared: Path) -> ThroughputTable:
    """Return the throughputs of Gavel's simulations."""
    return read_throughputs(shared / "data/gavel/simulation_throughputs.json.gz")


def job_columns(jobs: JobSet) -> list[list[Any]]:
    """Return type, gang, steps, weight and arrival of each job."""
    return [[job.model, job.min_nodes, job.work_samples, job.weight, job.submit_us] for job in jobs]


def estimator_records(shared: Path, *, published: bool) -> list[dict[str, Any]]:
    """Read the settings of the estimator of pair rates, and its matches: as published, or without its defect."""
    records: list[dict[str, Any]] = golden(shared, "gavel/estimator" if published else "gavel/estimator_corrected")
    return records
