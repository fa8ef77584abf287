"""SampledStates: samples of the states of all nodes, one after the other, as outages of a schedule."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.times import HOUR_US, US

GAPS = "samples are missing: all nodes are unknown there"
MISSING = "nodes are missing from samples: they are unknown there"
GAP_PERIODS = 3


class SampledStates:
    """Current state of each node and its start; earlier ones go into the record.

    All nodes are unknown where no sample is for more than three times the usual ``period_us``; a node is, in samples
    that lack it.
    """

    def __init__(self, record: ScheduleRecord, period_us: int) -> None:
        self._record, self._period_us = record, period_us
        self._state: dict[str, NodeState] = {}
        self._since_us: dict[str, int] = {}
        self._ids: dict[str, NDArray[np.int32]] = {}
        self._missing: set[str] = set()
        self._first_us: int | None = None
        self._last_us = 0
        self._file = ""
        self._line: int | None = None

    def is_gap_before(self, time_us: int) -> bool:
        """Return whether samples are missing between the last one and one at this time."""
        return self._first_us is not None and time_us - self._last_us > GAP_PERIODS * self._period_us

    @property
    def last_known_us(self) -> int:
        """Time until which the last sample counts if the next one is missing."""
        return self._last_us + self._period_us

    def add(
        self,
        time_us: int,
        nodes: Collection[str],
        rows: Iterable[tuple[int, str, NodeState]],
        file: str,
        line: int | None = None,
    ) -> None:
        """Add the next sample: the nodes in it, and the times, nodes and states of changes (or of all nodes)."""
        record, self._file, self._line = self._record, file, line
        if self._first_us is None:
            self._first_us = self._last_us = time_us
        if self.is_gap_before(time_us):
            self._end_all(self.last_known_us)
            record.add_outage(NodeState.UNKNOWN, self.last_known_us, time_us, None, file, line)
            gap_text = f"{(time_us - self._last_us) // US} s without a sample, usually {self._period_us // US} s"
            node_hours = len(self._ids) * (time_us - self.last_known_us) / HOUR_US
            record.report.warn(GAPS, file, line, gap_text, node_hours=node_hours)
            self._since_us = dict.fromkeys(self._state, time_us)
        new_nodes = [node for node in nodes if node not in self._ids]
        if new_nodes:
            record.add_inventory(new_nodes)
        for node in new_nodes:
            self._ids[node] = record.node_ids([node])
            if time_us > self._first_us:
                self._state[node], self._since_us[node] = NodeState.UNKNOWN, self._first_us
                self._missing.add(node)
        for node in [node for node in self._ids if node not in nodes] if len(nodes) < len(self._ids) else []:
            is_new = self._state[node] != NodeState.UNKNOWN
            self._turn(node, NodeState.UNKNOWN, time_us)
            if is_new:
                self._missing.add(node)
        for change_us, node, state in rows:
            self._turn(node, state, change_us)
        self._last_us = time_us

    def finish(self, why_complete: str | None, *, is_open: bool = False) -> None:
        """End the states of the last sample there, or leave them open (``is_open``).

        ``why_complete`` is the reason why the log covers the time of the samples; ``None`` if it covers another.
        """
        if self._first_us is None:
            return
        self._end_all(None if is_open else self._last_us)
        self._record.stamp(self._last_us)
        if why_complete is not None and self._last_us > self._first_us:
            self._record.covers(self._first_us, self._last_us, why_complete)

    def _turn(self, node: str, state: NodeState, time_us: int) -> None:
        previous_state = self._state.get(node)
        if previous_state != state:
            if previous_state is not None:
                self._end(node, previous_state, time_us)
            self._state[node], self._since_us[node] = state, time_us

    def _end_all(self, time_us: int | None) -> None:
        for node, state in self._state.items():
            self._end(node, state, time_us)

    def _end(self, node: str, state: NodeState, time_us: int | None) -> None:
        since_us = self._since_us[node]
        if node in self._missing:
            self._missing.remove(node)
            node_hours = ((self._last_us if time_us is None else time_us) - since_us) / HOUR_US
            self._record.report.warn(MISSING, self._file, self._line, node, node_hours=node_hours)
        # an idle node is not an outage; a node first seen in this sample had no state before
        if state != NodeState.IDLE and (time_us is None or time_us > since_us):
            self._record.add_outage(state, since_us, time_us, self._ids[node], self._file, self._line)
