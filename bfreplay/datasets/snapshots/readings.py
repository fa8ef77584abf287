"""One moment of a cluster: what its scheduler says of every node, and of the jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bfreplay.datasets.log.states import NodeState


@dataclass(frozen=True, slots=True)
class NodeReading:
    """Node in a snapshot.

    Attributes
    ----------
    raw
        State in the scheduler's words: ``"IDLE+PLANNED"``.
    state
        State by the table of states; ``UNKNOWN`` for a word that is not in it.
    since_us
        Exact time since which it is so, where the scheduler tells it.
    without_jobs
        State that the node would have without its jobs: ``DRAIN`` for ``ALLOCATED+DRAIN``.
    """

    raw: str
    state: NodeState
    since_us: int | None = None
    partitions: tuple[str, ...] = ()
    reason: str = ""
    without_jobs: NodeState = NodeState.IDLE


@dataclass(frozen=True, slots=True)
class JobReading:
    """Job that holds nodes, or held them just now; ``end_us`` is ``None`` while it runs."""

    job_id: str
    partition: str
    state: str
    start_us: int | None
    end_us: int | None
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All nodes at the time when the scheduler answered; ``jobs`` is ``None`` if they are not known."""

    time_us: int
    nodes: Mapping[str, NodeReading]
    jobs: tuple[JobReading, ...] | None = None
