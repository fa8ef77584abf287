"""Published instances of Gavel's policies, and what the original answered to them."""

import gzip
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bfreplay.systems.gavel.shares.share_problem import ShareProblem, TimeShares


@dataclass(frozen=True)
class Entity:
    """A group of jobs that shares its weight among them, by the policy 'fairness' or 'fifo'."""

    name: str
    weight: float
    policy: str
    jobs: tuple[int, ...]


@dataclass(frozen=True)
class Call:
    """One recomputation: the problem, the entities if any, and the record of what came out, as written."""

    problem: ShareProblem
    entities: tuple[Entity, ...]
    output: dict[str, Any]

    @property
    def exact_objective(self) -> float:
        """The optimum that another solver found from the published formulas."""
        return float(self.output["objective"]["independent_exact"])

    def recorded_shares(self) -> TimeShares:
        """The original's allocation."""
        return shares_of(self.output["allocation"], self.problem)

    def per_job(self, name: str) -> np.ndarray:
        """Numbers of the record that are given job by job."""
        return np.array([float(self.output[name][str(job)]) for job in self.problem.job])


@dataclass(frozen=True)
class Instance:
    """A sequence of calls to one policy object."""

    id: str
    policy: str
    note: str
    policy_params: dict[str, Any]
    calls: tuple[Call, ...]


@cache
def instances(shared: Path) -> dict[str, Instance]:
    """All instances by their id, in the order of the file."""
    with gzip.open(shared / "golden" / "gavel" / "policy_instances.json.gz", "rt") as file:
        written = json.load(file)["instances"]
    return {
        one["id"]: Instance(
            one["id"],
            one["policy"],
            one["note"],
            one["policy_params"],
            tuple(Call(problem_of(call["input"]), entities_of(call["input"]), call["output"]) for call in one["calls"]),
        )
        for one in written
    }


def instances_of(shared: Path, *policies: str) -> list[Instance]:
    """The instances of these policies, by the original's names; at least one of each."""
    found = [one for one in instances(shared).values() if one.policy in policies]
    assert {one.policy for one in found} == set(policies)
    return found


def problem_of(given: dict[str, Any]) -> ShareProblem:
    """Jobs in the order of their numbers, types in the order of the alphabet."""
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


def entities_of(given: dict[str, Any]) -> tuple[Entity, ...]:
    """The entities of an input, in the order of the file; none for most."""
    return tuple(
        Entity(name, float(one["weight"]), one["policy"], tuple(int(job) for job in one["jobs"]))
        for name, one in (given.get("entities") or {}).items()
    )


def shares_of(allocation: dict[str, dict[str, float]], problem: ShareProblem) -> TimeShares:
    """An allocation of the original as shares; those of pairs that the problem does not have are left out."""
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


def assert_feasible(shares: TimeShares, problem: ShareProblem, within: float = 1e-7) -> None:
    """Shares lie in [0, 1], nodes suffice, and no job runs more than all the time."""
    time = shares.share.sum(axis=1)
    nodes = problem.gang @ shares.share
    assert shares.share.shape == (problem.n_jobs, problem.n_types)
    assert shares.share.min() >= 0
    assert shares.share.max() <= 1
    if shares.pair_share.size:
        assert shares.pair_share.shape == (problem.n_pairs, problem.n_types)
        assert shares.pair_share.min() >= 0
        assert shares.pair_share.max() <= 1
        for member in (0, 1):
            np.add.at(time, problem.pair[:, member], shares.pair_share.sum(axis=1))
        nodes = nodes + problem.gang[problem.pair[:, 0]] @ shares.pair_share
    assert time.max() <= 1 + within
    assert (nodes <= problem.n_nodes + within).all()
