"""Published simulations of Gavel, and a small loop that repeats them with this package's rounds.

The loop is the published simulator's: float seconds, rounds that end when their last micro-task does, the recorded
shares instead of a policy. It stands in for the replay engine, so that what these tests find is about rounds alone.
"""

import gzip
import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.experiments.parity.recorded.gavel import SCENARIOS as SCENARIOS
from bfreplay.systems.gavel.quirks import Quirks
from bfreplay.systems.gavel.rounds.next_round import credit, next_round, reset, reset_is_due
from bfreplay.systems.gavel.rounds.state import NOBODY, Assignment, RoundRules, RoundState, first_state
from bfreplay.systems.gavel.shares.share_problem import NO_PAIRS, ShareProblem, TimeShares

FASTEST_FIRST = ("v100", "p100", "k80")
DO_NOT_KNOW_TYPES = ("fifo", "max_min_fairness", "finish_time_fairness", "min_total_duration", "isolated")


@dataclass(frozen=True)
class Scenario:
    """Jobs and nodes of a published simulation, and what each policy's run recorded."""

    arrival_s: NDArray[np.float64]
    steps: NDArray[np.float64]
    gang: NDArray[np.int64]
    rate: NDArray[np.float64]  # (jobs, types)
    pair_rate: NDArray[np.float64]  # (jobs, jobs, types, 2)
    type_names: tuple[str, ...]
    node_type: NDArray[np.int16]
    seed: int
    results: dict[str, dict[str, Any]]


@cache
def scenario(shared: Path, name: str) -> Scenario:
    """Read a published simulation."""
    with gzip.open(shared / "golden/gavel/simulations" / f"{name}.json.gz", "rt") as file:
        record = json.load(file)
    assert record["time_per_iteration"] == 360
    assert record["minimum_time_between_allocation_resets"] == 1920
    types = tuple(sorted(kind for kind, count in record["cluster_spec"].items() if count))
    rows = [line.split("\t") for line in record["trace"].splitlines()]
    keys = [str((row[0], int(row[6]))) for row in rows]
    tables = [record["throughputs"][kind] for kind in types]
    nobody = [0.0, 0.0]
    return Scenario(
        arrival_s=np.array([float(row[9]) for row in rows]),
        steps=np.array([float(row[5]) for row in rows]),
        gang=np.array([int(row[6]) for row in rows]),
        rate=np.array([[table[a]["null"] for table in tables] for a in keys]),
        pair_rate=np.array([[[table[a].get(b, nobody) for table in tables] for b in keys] for a in keys]),
        type_names=types,
        node_type=np.repeat(np.arange(len(types)), [record["cluster_spec"][kind] for kind in types]).astype(np.int16),
        seed=record["seed"],
        results=record["results"],
    )


def rules_of(policy: str, case: Scenario, **changes: Any) -> RoundRules:
    """Rules of the published program for a policy: the types' order and all else that it derives from the name."""
    settings: dict[str, Any] = {
        "type_order": tuple(case.type_names.index(kind) for kind in FASTEST_FIRST if kind in case.type_names),
        "least_reset_s": 1920.0,
        "shuffles_types": policy in DO_NOT_KNOW_TYPES,
        "runs_only_its_own": policy.startswith("fifo"),
        "seed": case.seed,
        "quirks": Quirks.published(),
    }
    return RoundRules(**(settings | changes))


def shares_of(event: dict[str, Any], case: Scenario) -> tuple[ShareProblem, TimeShares]:
    """A recorded allocation as a problem with its answer; only what rounds read is in the problem."""
    singles = {int(key): x for key, x in event["allocation"].items() if "," not in key}
    pairs = {tuple(map(int, key.split(","))): x for key, x in event["allocation"].items() if "," in key}
    job = np.array(sorted(singles), np.int64)
    pair = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    n, none = len(case.type_names), np.zeros(job.shape[0])
    problem = ShareProblem(
        job=job,
        type_names=case.type_names,
        n_nodes=np.bincount(case.node_type),
        gang=case.gang[job],
        rate=case.rate[job],
        weight=none,
        steps_left=none,
        age_s=none,
        to_deadline_s=none,
        price_per_hour=np.zeros(n),
        pair=np.searchsorted(job, pair) if pairs else NO_PAIRS,
        pair_rate=np.zeros((len(pairs), n, 2)),
    )
    share = [[singles[int(j)][kind] for kind in case.type_names] for j in job]
    pair_share = [[pairs[int(a), int(b)][kind] for kind in case.type_names] for a, b in pair]
    return problem, TimeShares(np.array(share).reshape(-1, n), np.array(pair_share).reshape(-1, n))


@dataclass
class Outcome:
    """Results of a simulation."""

    state: RoundState
    jct_s: dict[int, float | None] = field(default_factory=dict)
    busy_s: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    end_s: float = 0.0
    starts_s: list[float] = field(default_factory=list)
    rounds: list[Assignment] = field(default_factory=list)
    resets: list[tuple[float, int]] = field(default_factory=list)  # (time, round)
    priorities: list[dict[str, NDArray[np.float64]]] = field(default_factory=list)

    @property
    def utilisation(self) -> float:
        """Busy seconds over all seconds."""
        return float((self.busy_s / self.end_s).mean())


class Recorded:
    """Answers with the shares of the record, one after the other."""

    def __init__(self, events: list[dict[str, Any]]) -> None:
        self.events = events

    def __call__(self, case: Scenario, active: NDArray[np.int64], now_s: float, n_before: int) -> tuple[Any, Any]:
        event = self.events[n_before]
        problem, shares = shares_of(event, case)
        assert problem.job.tolist() == active.tolist(), f"other jobs than at the recorded reset at {now_s}"
        return problem, shares


def simulate(case: Scenario, rules: RoundRules, packs: bool, answer: Any) -> Outcome:
    """The published simulator's loop. ``answer(case, active jobs, now, resets before)`` gives problem and shares."""
    n_jobs = case.arrival_s.shape[0]
    out = Outcome(first_state(len(case.type_names), rules), busy_s=np.zeros(case.node_type.shape[0]))
    state, steps_left = out.state, case.steps.copy()
    clock, n_arrived = 0.0, 0
    while len(out.jct_s) < n_jobs:
        now = state.last
        if now.n_tasks:
            clock = float(now.finish_s.max())
            dropped = credit(state)
            for task in np.nonzero(~now.fails)[0]:
                out.busy_s[now.nodes_of(task)] += now.finish_s[task] - now.counted_from_s[task]
                for side, job in enumerate(now.member[task]):
                    if job != NOBODY:
                        steps_left[job] -= now.steps[task, side]
                        if steps_left[job] <= 0:
                            out.jct_s[int(job)] = float(now.finish_s[task]) - case.arrival_s[job]
            out.jct_s.update({int(job): None for job in dropped})
            gone = np.array([job for job in state.jobs.number if int(job) in out.jct_s], np.int64)
            if gone.size:
                state.remove_jobs(gone)
        elif n_arrived < n_jobs:
            clock = float(case.arrival_s[n_arrived])
        elif rules.quirks.reset_at_zero_means_never:
            state.last_reset_s = None
        arrived = np.arange(n_arrived, n_jobs)[case.arrival_s[n_arrived:] <= clock]
        if arrived.size:
            n_arrived = int(arrived[-1]) + 1
            _add(state, rules, case, arrived, packs)
        if reset_is_due(state, rules, clock):
            problem, shares = answer(case, state.jobs.number, clock, len(out.resets))
            reset(state, rules, clock, problem, shares)
            out.resets.append((clock, len(out.rounds)))
        everything = np.ones(case.node_type.shape[0], np.bool_)
        next_round(state, rules, clock, case.node_type, everything, steps_left[state.jobs.number])
        out.starts_s.append(clock)
        out.rounds.append(state.last)
        out.priorities.append(
            {"job": state.entries.member.copy(), "priority": state.priority, "deficit": state.entries.deficit_s}
        )
        assert len(out.rounds) < 10_000, "the simulation does not end"
    out.end_s = clock
    return out


def _add(state: RoundState, rules: RoundRules, case: Scenario, arrived: NDArray[np.int64], packs: bool) -> None:
    there = np.concatenate([state.jobs.number, arrived])
    pairs = [(a, b) for b in arrived for a in there if a < b and case.gang[a] == case.gang[b]] if packs else []
    pair = np.array(pairs, np.int64).reshape(-1, 2)
    pair_rate = case.pair_rate[pair[:, 0], pair[:, 1]]
    state.add_jobs(rules, arrived, case.gang[arrived], case.rate[arrived], pair, pair_rate)
