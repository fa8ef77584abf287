"""Answers of a session about now: which job holds which node, and what every node is."""

from __future__ import annotations

from dataclasses import dataclass

from bfreplay.datasets import NodeState
from bfreplay.datasets.log.portions import Portions
from bfreplay.replay.engine import Engine


@dataclass(frozen=True, slots=True)
class NodeNow:
    """One node after all events so far that are final.

    Parameters
    ----------
    node
        Its name.
    state
        Its state, as the log has it.
    since_us
        Time from which it has this state; the start of the window for one that never had another.
    job
        Name of the job that holds it, ``""`` for none; of two that share it the one admitted first.
    """

    node: str
    state: NodeState
    since_us: int
    job: str


def holders_of(engine: Engine) -> dict[str, tuple[str, ...]]:
    """Return the nodes of each active job, by the job's name, in the order of the log."""
    active, nodes = engine.active, engine.events.nodes
    return {
        engine.feed.names[int(record["job"])]: tuple(
            nodes[number] for number in sorted(active.held[job_row, : record["count"]].tolist())
        )
        for job_row, record in enumerate(active.records[: active.n])
    }


def nodes_of(engine: Engine, portions: Portions) -> list[NodeNow]:
    """Return every node of a log that comes in portions, in the order of the log."""
    rows = zip(
        portions.log.nodes,
        portions.states.tolist(),
        portions.since_us.tolist(),
        engine.pool.holder.tolist(),
        strict=True,
    )
    names = engine.feed.names
    return [
        NodeNow(node, NodeState(state), since_us, names[holder] if holder >= 0 else "")
        for node, state, since_us, holder in rows
    ]
