"""LogComparison: the agreement of two logs, in figures."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from bfreplay.datasets.agreement.rules import RULES
from bfreplay.datasets.log.states import STATE_WORDS, NodeState
from bfreplay.datasets.times import HOUR_US, iso_utc
from bfreplay.documents import Json

_IDLE = (NodeState.IDLE,)
WIDER_POOLS: dict[str, tuple[NodeState, ...]] = {
    "planned": (*_IDLE, NodeState.PLANNED),
    "planned and reserved": (*_IDLE, NodeState.PLANNED, NodeState.RESERVED),
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

    def to_dict(self) -> dict[str, Json]:
        """Return JSON-ready values."""
        times: dict[str, Json] = {"from": iso_utc(self.start_us), "to": iso_utc(self.end_us)}
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
    alike_without_domain
        Number of those whose names would be the same without domain and case.
    tolerance_s
        Longest difference between the times of one change that counts as polling.
    lag_s, lagging_changes
        Steady lag of B behind A (median), ``None`` without one; number of changes that have it.
    gaps
        Gaps that the notes of A, and of B, name.
    state_us
        Node-microseconds by state in A and state in B: ``[A][B]``.
    rules
        What differs on idle or not, by every rule; the sum is exactly ``differing_us``.
    worst_nodes
        Nodes that differ most.
    """

    logs: tuple[str, str]
    window_start_us: int
    window_end_us: int
    n_nodes: int
    only_in: tuple[tuple[str, ...], tuple[str, ...]]
    alike_without_domain: int
    tolerance_s: float
    lag_s: float | None
    lagging_changes: int
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
        return 1 - self.differing_us / self.node_us

    @property
    def agreement_on_states(self) -> float:
        """Share of node-time with the same state in both logs."""
        return sum(self.state_us[state][state] for state in NodeState) / self.node_us

    def share_of_differing(self, node_us: int) -> float:
        """Return a part of the differing node-time as a share of it; 0 if nothing differs."""
        return node_us / self.differing_us if self.differing_us else 0.0

    def agreement_with(self, pool: Collection[NodeState]) -> float:
        """Return the share of node-time on which both logs agree whether the state is in ``pool``."""
        same = sum(self.state_us[a][b] for a in NodeState for b in NodeState if (a in pool) == (b in pool))
        return same / self.node_us

    def node_us_of(self, state: NodeState) -> tuple[int, int, int]:
        """Return the node-time in a state in A, in B, and in both at once."""
        return sum(self.state_us[state]), sum(row[state] for row in self.state_us), self.state_us[state][state]

    def to_dict(self) -> dict[str, Json]:
        """Return JSON-ready values, node-time in node-hours and in exact microseconds."""
        idle = zip(("a", "b", "both"), self.node_us_of(NodeState.IDLE), strict=True)
        return {
            "a": self.logs[0],
            "b": self.logs[1],
            "window": {"start": iso_utc(self.window_start_us), "end": iso_utc(self.window_end_us)},
            "nodes": self.n_nodes,
            "only_in_a": list(self.only_in[0]),
            "only_in_b": list(self.only_in[1]),
            "tolerance_s": self.tolerance_s,
            "lag_s": self.lag_s,
            "lagging_changes": self.lagging_changes,
            "gaps_noted_in_a": self.gaps[0],
            "gaps_noted_in_b": self.gaps[1],
            "node_time": _node_time(self.node_us),
            "agreement": self.agreement,
            "agreement_on_states": self.agreement_on_states,
            "agreement_with_more_idle": {name: self.agreement_with(pool) for name, pool in WIDER_POOLS.items()},
            "idle": {log: _node_time(node_us) for log, node_us in idle},
            "differing": _node_time(self.differing_us),
            "rules": [
                {
                    "rule": rule.rule,
                    "meaning": RULES[rule.rule],
                    **_node_time(rule.node_us),
                    "share": rule.node_us / self.node_us,
                    "share_of_differing": self.share_of_differing(rule.node_us),
                    "spans": rule.spans,
                    "example": None if rule.example is None else rule.example.to_dict(),
                }
                for rule in self.rules
            ],
            "worst_nodes": [
                {"node": node.node, **_node_time(node.node_us), "largest_rule": node.largest_rule}
                for node in self.worst_nodes
            ],
            "states": [
                {"state_a": STATE_WORDS[a], "state_b": STATE_WORDS[b], **_node_time(self.state_us[a][b])}
                for a in NodeState
                for b in NodeState
                if self.state_us[a][b]
            ],
        }

    def __repr__(self) -> str:
        from bfreplay.datasets.agreement.comparison_text import render

        return render(self)


def _node_time(node_us: int) -> dict[str, Json]:
    return {"node_hours": node_us / HOUR_US, "node_us": node_us}
