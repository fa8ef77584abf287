"""LogComparison: the agreement of two logs, in figures."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any

from bfreplay.datasets.agreement.rules import RULES
from bfreplay.datasets.agreement.timing import Lag
from bfreplay.datasets.log.states import STATE_WORDS, NodeState
from bfreplay.datasets.times import US, iso_utc
from bfreplay.registry import built_in

WIDER_POOLS = {
    "planned": (NodeState.IDLE, NodeState.PLANNED),
    "planned and reserved": (NodeState.IDLE, NodeState.PLANNED, NodeState.RESERVED),
}
"""Other answers to the question which nodes are idle: what counts besides, with all states that count."""


@dataclass(frozen=True, slots=True)
class Span:
    """Span of one node in which both logs have one state each."""

    node: str
    start_us: int
    end_us: int
    state_a: str
    state_b: str

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        times = {"from": iso_utc(self.start_us), "to": iso_utc(self.end_us)}
        return {"node": self.node, **times, "state_a": self.state_a, "state_b": self.state_b}


@dataclass(frozen=True, slots=True)
class RuleTime:
    """Differing node-time of one rule, its spans, and the longest of them."""

    rule: str
    node_us: int
    spans: int
    example: Span | None


@dataclass(frozen=True, slots=True)
class NodeDifference:
    """Differing time of one node, and the rule with the largest part of it."""

    node: str
    node_us: int
    largest_rule: str


@dataclass(frozen=True, slots=True)
class LogComparison:
    """Agreement of two logs, A and B, of one machine.

    Attributes
    ----------
    logs
        Names of their files.
    window_start_us, window_end_us, n_nodes
        Time and nodes that both have.
    only_in
        Nodes in A only, and in B only: not compared.
    tolerance_s
        Longest difference between the times of one change that counts as polling.
    lag
        Steady lag of B behind A; ``None`` without one.
    gaps
        Number of gaps that the notes of A, and of B, name.
    state_us
        Node-microseconds by state in A and state in B: ``[A][B]``.
    rules
        What is idle in one log only, by every rule; the sum is exactly ``differing_us``.
    worst_nodes
        Nodes that differ most.
    """

    logs: tuple[str, str]
    window_start_us: int
    window_end_us: int
    n_nodes: int
    only_in: tuple[tuple[str, ...], tuple[str, ...]]
    tolerance_s: float
    lag: Lag | None
    gaps: tuple[int, ...]
    state_us: tuple[tuple[int, ...], ...]
    rules: tuple[RuleTime, ...]
    worst_nodes: tuple[NodeDifference, ...]

    @property
    def node_us(self) -> int:
        """Node-time compared, in microseconds."""
        return self.n_nodes * (self.window_end_us - self.window_start_us)

    @property
    def differing_us(self) -> int:
        """Node-time that is idle in one log only."""
        return sum(rule.node_us for rule in self.rules)

    @property
    def agreement(self) -> float:
        """Share of node-time on which both logs agree whether the node is idle."""
        return self.agreement_with((NodeState.IDLE,))

    @property
    def agreement_on_states(self) -> float:
        """Share of node-time with the same state in both logs."""
        return sum(self.state_us[state][state] for state in NodeState) / self.node_us

    @property
    def lag_s(self) -> float | None:
        """Steady lag of B behind A, in seconds."""
        return None if self.lag is None else self.lag.lag_us / US

    def share_of_differing(self, node_us: int) -> float:
        """Return a part of the differing node-time as a share of it; 0 if nothing differs."""
        return node_us / self.differing_us if self.differing_us else 0.0

    def agreement_with(self, pool: Collection[NodeState]) -> float:
        """Return the share of node-time on which both logs agree whether the state is in ``pool``."""
        same_us = [self.state_us[a][b] for a in NodeState for b in NodeState if (a in pool) == (b in pool)]
        return sum(same_us) / self.node_us

    def node_us_of(self, state: NodeState) -> tuple[int, int, int]:
        """Return the node-time in a state in A, in B, and in both at once."""
        return sum(self.state_us[state]), sum(row[state] for row in self.state_us), self.state_us[state][state]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values; node-time in microseconds, which add up exactly."""
        return {
            "logs": list(self.logs),
            "window": {"start": iso_utc(self.window_start_us), "end": iso_utc(self.window_end_us)},
            "nodes": self.n_nodes,
            "nodes_in_one_log_only": dict(zip("ab", map(list, self.only_in), strict=True)),
            "tolerance_s": self.tolerance_s,
            "lag_s": self.lag_s,
            "lagging_changes": 0 if self.lag is None else self.lag.changes,
            "gaps_noted": dict(zip("ab", self.gaps, strict=True)),
            "node_us": self.node_us,
            "agreement": self.agreement,
            "agreement_on_states": self.agreement_on_states,
            "agreement_with_as_idle": {name: self.agreement_with(pool) for name, pool in WIDER_POOLS.items()},
            "idle_us": dict(zip(("a", "b", "both"), self.node_us_of(NodeState.IDLE), strict=True)),
            "differing_us": self.differing_us,
            "rules": [
                asdict(rule)
                | {"share": rule.node_us / self.node_us, "meaning": RULES[rule.rule]}
                | {"example": None if rule.example is None else rule.example.to_dict()}
                for rule in self.rules
            ],
            "worst_nodes": [asdict(node) for node in self.worst_nodes],
            "states": [
                {"state_a": STATE_WORDS[a], "state_b": STATE_WORDS[b], "node_us": node_us}
                for a, row in enumerate(self.state_us)
                for b, node_us in enumerate(row)
                if node_us
            ],
        }

    def __repr__(self) -> str:
        text: str = built_in("bfreplay.datasets.agreement.comparison_text:render")(self)
        return text.rstrip()


def count_alike(only_in_a: Collection[str], only_in_b: Collection[str]) -> int:
    """Return the number of names that are in both but for domain and case."""
    plain_a, plain_b = ({name.partition(".")[0].lower() for name in names} for names in (only_in_a, only_in_b))
    return len(plain_a & plain_b)
