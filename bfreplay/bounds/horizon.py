"""The pool of idle nodes as one who knows the future sees it: intervals of constant size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets import NodeEvents
from bfreplay.datasets.idleness.pool import PoolSizes


@dataclass(frozen=True, slots=True, eq=False)
class Horizon:
    """I intervals, from one pool event to the next; together they are the window.

    Parameters
    ----------
    start_us : (I,) int64
        When each begins, microseconds since the epoch; ascending.
    seconds : (I,) float64
        Length of each, > 0.
    idle : (I,) int64
        Idle nodes during each.
    reclaimed : (I,) int64
        Nodes taken back when it begins.
    """

    start_us: NDArray[np.int64]
    seconds: NDArray[np.float64]
    idle: NDArray[np.int64]
    reclaimed: NDArray[np.int64]

    @classmethod
    def of(cls, events: NodeEvents) -> Horizon:
        """Read ``events`` once; memory grows with the pool events, not with the nodes that change."""
        pool = PoolSizes.of(events)
        lasts_us = np.diff(pool.time_us, append=pool.end_us)
        lasts = lasts_us > 0  # an event at the very end of the window begins nothing
        return cls(pool.time_us[lasts], lasts_us[lasts] * 1e-6, pool.idle[lasts], pool.reclaimed[lasts])

    @property
    def n_intervals(self) -> int:
        """I."""
        return int(self.start_us.size)

    @property
    def most_idle(self) -> int:
        """Most idle nodes of any interval."""
        return int(self.idle.max())

    @property
    def end_us(self) -> int:
        """End of the last interval."""
        return int(self.start_us[-1]) + round(float(self.seconds[-1]) * 1e6)

    def until(self, time_us: int) -> Horizon:
        """The part before ``time_us``, which must be after the start."""
        inside = self.start_us < time_us
        seconds = np.minimum(self.seconds[inside], (time_us - self.start_us[inside]) * 1e-6)
        return Horizon(self.start_us[inside], seconds, self.idle[inside], self.reclaimed[inside])
