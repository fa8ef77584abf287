"""A source of node states that follows a script, and its clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bfreplay.datasets import NodeEvents
from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.snapshots.readings import JobReading, NodeReading, Snapshot
from bfreplay.live.sources import NoAnswerError

T = 1_700_000_000_000_000
S = 1_000_000


@dataclass
class ScriptedClock:
    """Clock that a test sets; seconds after ``T``."""

    now_s: float = 0.0

    def __call__(self) -> int:
        return T + round(self.now_s * S)


@dataclass
class ScriptedSource:
    """Source whose answer a test sets: a state for each node, and jobs; ``None`` for no answer."""

    clock: ScriptedClock
    states: Mapping[str, str] | None = None
    jobs: Sequence[JobReading] | None = None
    log: NodeEvents | Exception | None = None
    asked: list[tuple[int, int]] = field(default_factory=list)
    name: str = "scripted"
    strange_words: dict[str, str] = field(default_factory=dict)

    def cluster(self) -> str | None:
        return "tiny"

    def poll(self) -> Snapshot:
        if self.states is None:
            raise NoAnswerError("nobody there")
        nodes = {
            node: NodeReading(word.upper(), NodeState[word.upper()], None, ("batch",))
            for node, word in self.states.items()
        }
        return Snapshot(self.clock(), nodes, None if self.jobs is None else tuple(self.jobs))

    def accounted(self, start_us: int, end_us: int, nodes: Sequence[str]) -> NodeEvents | None:
        self.asked.append((start_us, end_us))
        self.asked_nodes = list(nodes)
        if isinstance(self.log, Exception):
            raise self.log
        return self.log


def accounted_log(start_s: float, end_s: float, states: Mapping[str, str], *rows: tuple[float, str, str]) -> NodeEvents:
    """Log of accounting: states of all nodes at its start, and rows of (seconds after ``T``, node, state)."""
    nodes = sorted(states)
    return NodeEvents.from_arrays(
        nodes,
        [NodeState[states[node].upper()] for node in nodes],
        [T + round(time_s * S) for time_s, _, _ in rows],
        [nodes.index(node) for _, node, _ in rows],
        [NodeState[word.upper()] for _, _, word in rows],
        T + round(start_s * S),
        T + round(end_s * S),
    )
