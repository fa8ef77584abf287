"""The states a node can be in, and batches of changes of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray


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


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Consecutive events, sorted by (time, node); no time stamp is split over two batches.

    E events: ``time_us (E,) int64`` (UTC), ``node (E,) int32`` (index into ``NodeEvents.nodes``),
    ``state (E,) int8`` (``NodeState`` after the event).
    """

    time_us: NDArray[np.int64]
    node: NDArray[np.int32]
    state: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.time_us)
