"""The states a node can be in, and batches of changes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray


class NodeState(IntEnum):
    """State of a node after an event. Only ``IDLE`` nodes can be used.

    ``PLANNED``: idle, but promised to a waiting job; ``COMPLETING``: a job has ended there, and is cleaned up after;
    ``RESERVED`` and ``MAINTENANCE``: kept by a reservation.
    """

    IDLE = 0
    BUSY = 1
    DOWN = 2
    DRAIN = 3
    RESERVED = 4
    OFF = 5
    UNKNOWN = 6
    PLANNED = 7
    COMPLETING = 8
    MAINTENANCE = 9


POOLS: dict[str, tuple[NodeState, ...]] = {
    "startable": (NodeState.IDLE,),
    "idle": (NodeState.IDLE, NodeState.RESERVED, NodeState.PLANNED),
}
"""States that count as idle, by the name of the pool: where a preemptible job could start, or all without a job."""

STATE_WORDS: tuple[str, ...] = tuple(state.name.lower() for state in NodeState)


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Consecutive events, sorted by (time, node); no time stamp is split over two batches.

    E events: ``time_us (E,) int64`` (UTC), ``node (E,) int32`` (index into ``NodeEvents.nodes``),
    ``state (E,) int8`` (``NodeState`` after the event).
    """

    time_us: NDArray[np.int64]
    node: NDArray[np.int32]
    state: NDArray[np.int8]

    @staticmethod
    def joined(batches: Sequence[EventBatch]) -> EventBatch:
        """Return the events of several batches, one batch after the other."""
        return EventBatch(
            *(np.concatenate(pieces) for pieces in zip(*(batch.columns for batch in batches), strict=True))
        )

    @staticmethod
    def of_states(time_us: int, states: NDArray[np.int8]) -> EventBatch:
        """Return an event of every node at one time, from their states ``(N,)``."""
        n_nodes = len(states)
        return EventBatch(np.full(n_nodes, time_us, np.int64), np.arange(n_nodes, dtype=np.int32), states.copy())

    def __len__(self) -> int:
        return len(self.time_us)

    @property
    def columns(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int8]]:
        """Times, nodes and states."""
        return self.time_us, self.node, self.state

    def states_before(self, states: NDArray[np.int8]) -> NDArray[np.int8]:
        """Return the state of its node before each event, ``(E,)``, from the states of all nodes before the first."""
        order = np.lexsort((self.time_us, self.node))
        node, state = self.node[order], self.state[order]
        before = states[node]
        follows = node[1:] == node[:-1]
        before[1:][follows] = state[:-1][follows]
        in_place = np.empty_like(before)
        in_place[order] = before
        return in_place

    def counting_as_idle(self, idle_states: Sequence[int], states: NDArray[np.int8]) -> EventBatch:
        """Return the events with ``idle_states`` as ``IDLE``, without those of nodes that are idle then already.

        ``states (N,)`` are those before the first event.
        """
        if tuple(idle_states) == (NodeState.IDLE,):
            return self
        is_idle = np.isin(self.state, idle_states)
        is_new = ~(is_idle & np.isin(self.states_before(states), idle_states))
        return EventBatch(self.time_us, self.node, np.where(is_idle, np.int8(NodeState.IDLE), self.state)).take(is_new)

    def of_nodes(self, place: NDArray[np.int32]) -> EventBatch:
        """Return the events of some nodes, with their numbers ``place (N,)`` there; -1 for the others."""
        numbered = EventBatch(self.time_us, place[self.node], self.state)
        return numbered.take(numbered.node >= 0)

    def take(self, selection: slice | NDArray[np.bool_] | NDArray[np.int64]) -> EventBatch:
        """Return some of the events: a part of them, those marked, or those at these places."""
        return EventBatch(self.time_us[selection], self.node[selection], self.state[selection])
