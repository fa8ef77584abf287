"""A run of events as arrays: what a log is read in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class EventBatch:
    """A run of consecutive events, sorted by (time, node); no time stamp is split over two batches.

    E events: ``time_us (E,) int64`` (UTC), ``node (E,) int32`` (index into ``NodeEvents.nodes``),
    ``state (E,) int8`` (``NodeState`` after the event).
    """

    time_us: NDArray[np.int64]
    node: NDArray[np.int32]
    state: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.time_us)
