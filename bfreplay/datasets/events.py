"""NodeEvents: the neutral log of nodes becoming idle and being reclaimed."""

from __future__ import annotations

from collections.abc import Iterator
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


@dataclass(frozen=True, slots=True)
class EventBatch:
    """A run of consecutive events, sorted by (time, node); no time stamp is split over two batches.

    E events: ``time_us (E,) int64`` (UTC), ``node (E,) int32`` (index into ``NodeEvents.nodes``),
    ``state (E,) int8`` (``NodeState`` after the event).
    """

    time_us: NDArray[np.int64]
    node: NDArray[np.int32]
    state: NDArray[np.int8]


class NodeEvents:
    """(contract; the datasets module fills it in)"""

    nodes: tuple[str, ...]
    window_start_us: int
    window_end_us: int

    def batches(self) -> Iterator[EventBatch]:
        """Validated events; the first batch is the full snapshot at ``window_start_us``."""
        raise NotImplementedError
