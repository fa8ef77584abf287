"""The log as a sequence of instants: all events of one time stamp together."""

from __future__ import annotations

from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets import NodeEvents
from bfreplay.replay.active import NEVER_US


class Timeline:
    """Walks through the batches of a log, holding one of them in memory."""

    def __init__(self, events: NodeEvents) -> None:
        self._batches = events.batches()
        self._starts: list[int] = []
        self._position = 0
        self.next_us = NEVER_US
        self.read_s = 0.0
        self._load()

    def _load(self) -> None:
        started = perf_counter()
        batch = next((b for b in self._batches if b.time_us.size), None)
        self.read_s += perf_counter() - started
        if batch is not None:
            self._batch = batch
            breaks = np.flatnonzero(np.diff(batch.time_us)) + 1
            self._starts = [0, *breaks.tolist(), int(batch.time_us.size)]
            self._times: list[int] = batch.time_us[self._starts[:-1]].tolist()
            self._position = 0
            self.next_us = self._times[0]
        else:
            self.next_us = NEVER_US

    def take(self) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
        """Nodes and their states after the events at ``next_us``; moves on to the next instant."""
        start, stop = self._starts[self._position], self._starts[self._position + 1]
        rows = slice(start, stop)
        node, state = self._batch.node[rows], self._batch.state[rows]
        self._position += 1
        if self._position < len(self._times):
            self.next_us = self._times[self._position]
        else:
            self._load()
        return node, state
