"""Logs of nodes of several types, jobs with a rate on each, and a policy that follows a script."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from bfreplay import replay_log
from bfreplay.datasets import NodeEvents, NodeState
from bfreplay.policies import ANY_TRIGGER, Decision, Placement, Policy, PolicyCapabilities, PolicyState, Round, Trigger
from bfreplay.replay import ReplaySettings
from bfreplay.runs import RunResult
from bfreplay.scalability import TabulatedCurve
from bfreplay.workload import Colocation, ElasticJob, JobSet
from tests.replay.tiny import SECOND, log

EVERY_TRIGGER = ANY_TRIGGER | Trigger.ROUND


def typed_log(
    types: str, end_s: float, changes: Iterable[tuple[float, int, bool]] = (), busy_first: Iterable[int] = ()
) -> NodeEvents:
    """Nodes n0, n1, ... of the types that are listed (``"v100 v100 p100"``), all idle but ``busy_first``."""
    listed = types.split()
    untyped = log(len(listed), changes, end_s, sorted(set(range(len(listed))) - set(busy_first)))
    rows = list(untyped.batches())
    start, later = rows[0], rows[1:]
    times, nodes, states = (
        np.concatenate([np.zeros(0, np.int64), *(getattr(batch, name) for batch in later)])
        for name in ("time_us", "node", "state")
    )
    opening = np.full(len(listed), NodeState.BUSY, dtype=np.int8)
    opening[start.node] = start.state
    return NodeEvents.from_arrays(
        untyped.nodes, opening, times, nodes, states, 0, untyped.window_end_us, node_types=listed
    )


def typed_job(
    name: str = "job",
    rates: Mapping[str, tuple[float, ...]] | None = None,
    *,
    work: float = 1e9,
    submit_s: float = 0.0,
    min_nodes: int = 1,
    up_s: float = 0.0,
    down_s: float = 0.0,
    model: str | None = None,
) -> ElasticJob:
    """10 samples/s a node on up to two v100, and 4 on p100, free rescaling, unless told otherwise."""
    rates = rates or {"v100": (0.0, 10.0, 20.0), "p100": (0.0, 4.0, 8.0)}
    curves = {node_type: TabulatedCurve(range(len(points)), points) for node_type, points in rates.items()}
    first = next(iter(curves.values()))
    return ElasticJob(
        name,
        round(submit_s * SECOND),
        min_nodes,
        first.last_nodes,
        up_s,
        down_s,
        work,
        first,
        throughput_by_type=curves,
        model=name if model is None else model,
    )


def decision_of(given: Mapping[str, Any]) -> Decision:
    """The decision with these counts, and these fields of its placement (none without ``assigned``) and its round."""
    placement, until = ({f.name: given[f.name] for f in fields(kind) if f.name in given} for kind in (Placement, Round))
    return Decision(
        given["counts"],
        placement=None if placement["assigned"] is None else Placement(**placement),
        round=Round(**until),
    )


@dataclass(frozen=True)
class Step:
    """One decision, by number of the job: jobs that are not named get nothing, no limit and no cost."""

    nodes: Mapping[int, list[int]] = field(default_factory=dict)
    pairs: tuple[tuple[int, int], ...] = ()
    samples: Mapping[int, float] = field(default_factory=dict)
    restart_s: Mapping[int, float] = field(default_factory=dict)
    not_before_s: Mapping[int, float] = field(default_factory=dict)
    failed: tuple[int, ...] = ()
    until_s: float | None = None
    change: Mapping[str, Any] = field(default_factory=dict)  # fields of the decision and its parts, as they are

    def decision(self, state: PolicyState) -> Decision:
        """For the jobs that are there."""
        jobs = state.job.tolist()
        row = {job: j for j, job in enumerate(jobs)}
        assigned = tuple(np.array(self.nodes.get(job, []), dtype=np.int64) for job in jobs)
        partner = np.full(len(jobs), -1, np.int64)
        for one, other in self.pairs:
            if one in row and other in row:
                partner[row[one]], partner[row[other]] = row[other], row[one]
        made = {
            "counts": np.array([nodes.size for nodes in assigned], dtype=np.int64),
            "assigned": assigned,
            "partner": partner if self.pairs else None,
            "restart_s": np.array([self.restart_s.get(job, 0.0) for job in jobs]) if self.restart_s else None,
            "until_us": None if self.until_s is None else round(self.until_s * SECOND),
            "samples": np.array([self.samples.get(job, np.inf) for job in jobs]) if self.samples else None,
            "not_before_us": np.array([round(self.not_before_s.get(job, 0.0) * SECOND) for job in jobs])
            if self.not_before_s
            else None,
            "failed": np.array([job in self.failed for job in jobs]) if self.failed else None,
        }
        return decision_of(made | self.change)


class Scripted(Policy):
    """Gives one step after the other, the last one again and again; ``asked`` has the seconds at which it was."""

    name = "scripted"
    capabilities = PolicyCapabilities(node_types=True)

    def __init__(self, *steps: Step, wakes_on: Trigger = EVERY_TRIGGER) -> None:
        self.steps = steps
        self.wakes_on = wakes_on
        self.asked: list[float] = []
        self.seen: list[dict[str, Any]] = []

    def decide(self, state: PolicyState) -> Decision:
        step = self.steps[min(len(self.asked), len(self.steps) - 1)]
        self.asked.append(state.time_us / SECOND)
        nodes = state.nodes
        assert nodes is not None
        self.seen.append(
            {
                "job": state.job.tolist(),
                "current": state.current.tolist(),
                "progress": state.progress.tolist(),
                "throughput": state.throughput.tolist(),
                "is_idle": nodes.is_idle.tolist(),
                "held": [nodes.held(j).tolist() for j in range(state.n_jobs)],
                "by_type": None if state.throughput_by_type is None else state.throughput_by_type.tolist(),
                "type_names": nodes.type_names,
                "node_type": nodes.node_type.tolist(),
            }
        )
        return step.decision(state)


def run(
    events: NodeEvents,
    jobs: Iterable[ElasticJob],
    policy: Any,
    *,
    colocation: Colocation | None = None,
    **settings: Any,
) -> RunResult:
    """Replay without what it is compared with."""
    return replay_log(
        events,
        JobSet(jobs, colocation=colocation),
        policy,
        ReplaySettings(record_nodes=True, **settings),
        efficiency=False,
        bound=False,
    )


def of_job(result: RunResult, name: str = "job") -> dict[str, Any]:
    """Its row, times in seconds and node time in node-seconds."""
    table = result.table("jobs").to_pydict()
    row = {key: values[table["job"].index(name)] for key, values in table.items()}
    for key in ("submitted", "admitted", "first_start", "finished", "ended"):
        row[key] = None if row[key] is None else row[key].timestamp()
    for key in ("useful", "rescaling", "preempted", "stalled"):
        row[key] = row[f"{key}_node_us"] / SECOND
    return row


def intervals(result: RunResult, *more: str) -> list[tuple[Any, ...]]:
    """Rows of the allocations: job, type, count, seconds from and to, and columns besides."""
    table = result.table("allocations").to_pydict()
    times = [[t.timestamp() for t in table[key]] for key in ("from", "to")]
    columns = [table[key] for key in ("job", "node_type", "count")] + times + [table[key] for key in more]
    return sorted(zip(*columns, strict=True))


def node_seconds(result: RunResult, name: str) -> float:
    """Of the ledger."""
    return float(result.summary["ledger"][f"{name}_node_us"]) / SECOND
