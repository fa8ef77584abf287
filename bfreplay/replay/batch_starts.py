"""Batch starts that meet nodes of jobs, counted as a replay goes on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_FIRST_ROWS = 1_024
MET = np.dtype([("time_us", np.int64), ("node", np.int32)], align=True)
"""A node that a job held when it became busy."""


class BatchStarts:
    """Counts of batch starts; a batch start is an instant at which idle nodes become busy.

    A log of node states does not say which nodes belong to one batch job, so that all that become busy at one instant
    count as one start: it waits for the slowest of its nodes.

    Attributes
    ----------
    n_starts, n_starts_met
        Batch starts, and those of which some node was held by a job.
    n_nodes_started, n_nodes_met, n_nodes_delayed
        Nodes of all starts; those held by jobs; and all nodes of the starts that met one.
    busy_node_us
        Node time in which nodes were busy so far, up to the last instant.
    keeps_met
        Also keep every node that was met, 16 bytes each.
    """

    def __init__(self) -> None:
        self.n_starts = self.n_starts_met = 0
        self.n_nodes_started = self.n_nodes_met = self.n_nodes_delayed = 0
        self.busy_node_us = 0
        self.keeps_met = False
        self._n_busy = self._since_us = 0
        self._met: NDArray[np.void] = np.zeros(0, MET)
        self._used = 0

    def note(self, now_us: int, started: int, met: NDArray[np.int32], busier: int) -> None:
        """Note an instant: nodes that became busy, those of them that jobs held, and the increase of busy nodes."""
        self.busy_node_us += self._n_busy * (now_us - self._since_us)
        self._n_busy += busier
        self._since_us = now_us
        if not started:
            return
        self.n_starts += 1
        self.n_nodes_started += started
        if not met.size:
            return
        self.n_starts_met += 1
        self.n_nodes_met += int(met.size)
        self.n_nodes_delayed += started
        if self.keeps_met:
            until = self._used + met.size
            if until > self._met.size:
                self._met = np.concatenate([self._met, np.zeros(max(_FIRST_ROWS, until), MET)])
            rows = self._met[self._used : until]
            rows["time_us"], rows["node"] = now_us, met
            self._used = until

    def busy_node_us_until(self, now_us: int) -> int:
        """Node time in which nodes were busy, up to ``now_us``."""
        return self.busy_node_us + self._n_busy * (now_us - self._since_us)

    @property
    def met(self) -> NDArray[np.void]:
        """(H,) ``MET``: every node that was met, by time, if they are kept."""
        return self._met[: self._used]
