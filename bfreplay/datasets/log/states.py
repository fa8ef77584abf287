"""The states a node can be in."""

from __future__ import annotations

from enum import IntEnum


class NodeState(IntEnum):
    """State of a node after an event. Only ``IDLE`` nodes can be used."""

    IDLE = 0
    BUSY = 1
    DOWN = 2
    DRAIN = 3
    RESERVED = 4
    OFF = 5
    UNKNOWN = 6


STATE_WORDS: tuple[str, ...] = tuple(state.name.lower() for state in NodeState)
