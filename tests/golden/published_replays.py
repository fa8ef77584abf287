"""The recorded replays of the published program, as inputs for our replay and as the log it should write."""

from __future__ import annotations

import csv
import gzip
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from bfreplay.datasets import NodeEvents, NodeState, read_published_jobs
from bfreplay.policies import Decision, Placement, Policy, PolicyState
from bfreplay.workload import JobSet

RUNS = ("G1", "G2", "G3", "G4", "G5", "G6", "G7")
_JOB_FILES = {
    "ImageNet-imgps-1001J": ("ImageNet-imgps-Jbnd-1001J.pkl", "ImageNet-imgps-JNPs-1001J.pkl"),
    "ImageNet-spdup-1001J": ("ImageNet-spdup-Jbnd-1001J.pkl", "ImageNet-spdup-JNPs-1001J.pkl"),
    "hps-shufflenet-10J": ("hps-shufflenet-Jbnd-10J.pkl", "hps-shufflenet-JNPs-10J.pkl"),
}


def time_us(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1_000_000


@dataclass
class PublishedReplay:
    record: dict[str, Any]
    events: NodeEvents
    jobs: JobSet

    @classmethod
    def load(cls, shared: Path, run: str) -> PublishedReplay:
        golden = shared / "golden" / "bftrainer"
        with gzip.open(golden / f"replay-{run}.json.gz", "rt") as stream:
            record = json.load(stream)
        bounds, curves = _JOB_FILES[record["job_set"]]
        data = shared / "data" / "bftrainer"
        jobs = read_published_jobs(data / bounds, data / curves)
        return cls(record, _events(golden / f"replay-{run}-events.csv.gz", record), jobs)

    @property
    def step_log(self) -> dict[str, list[Any]]:
        return self.record["step_log"]

    def recorded_policy(self) -> RecordedPolicy:
        return RecordedPolicy(self.record, self.events.nodes, [job.name for job in self.jobs])


def _events(path: Path, record: dict[str, Any]) -> NodeEvents:
    """The program started at ``window_start``, which has no row when no node was idle then, and stopped at the
    last event, not at ``window_end``."""
    with gzip.open(path, "rt") as stream:
        rows = list(csv.DictReader(stream))
    nodes = sorted(record["nodes"])
    keyed = sorted((time_us(row["time"]), row["node"], row["idle"] == "True") for row in rows)
    return NodeEvents.from_arrays(
        nodes,
        np.full(len(nodes), NodeState.BUSY, dtype=np.int8),
        [t for t, _, _ in keyed],
        [nodes.index(node) for _, node, _ in keyed],
        [NodeState.IDLE if idle else NodeState.BUSY for _, _, idle in keyed],
        time_us(record["window_start"]),
        keyed[-1][0],
    )


class RecordedPolicy(Policy):
    """Answers every decision with the nodes that the published program gave, and checks that the question was the
    same: same instant, same jobs, same nodes held."""

    name = "recorded"

    def __init__(self, record: dict[str, Any], nodes: tuple[str, ...], jobs: list[str]) -> None:
        self._by_time = {time_us(d["time"]): d for d in record["decisions"]}
        self._first = record["initial"]
        self._position = {name: k for k, name in enumerate(nodes)}
        self._jobs = jobs
        self.asked = 0

    def decide(self, state: PolicyState) -> Decision:
        recorded = self._by_time[state.time_us]
        assert [self._jobs[j] for j in state.job] == recorded["jobs"]
        assert state.current.tolist() == [len(nodes) for nodes in recorded["current"]]
        assert state.n_idle == len(recorded["nodes"])
        self.asked += 1
        return self._decision(recorded["assigned"])

    def first(self, state: PolicyState, free: np.ndarray, rng: np.random.Generator) -> Decision:
        initial = self._first["initial"]
        return self._decision([initial.get(self._jobs[j], []) for j in state.job])

    def _decision(self, assigned: list[list[str]]) -> Decision:
        nodes = tuple(np.array([self._position[name] for name in names], dtype=np.int64) for names in assigned)
        return Decision(np.array([len(n) for n in nodes], dtype=np.int64), placement=Placement(nodes))
