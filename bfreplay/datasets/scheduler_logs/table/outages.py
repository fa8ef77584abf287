"""Rows of tables to outages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.occupancy.record import ScheduleRecord
from bfreplay.datasets.scheduler_logs.table.cells import first_word, shown
from bfreplay.datasets.scheduler_logs.table.node_lists import NodeLists
from bfreplay.datasets.scheduler_logs.table.times import Clock, is_interval

OUTAGES_UNREADABLE = "outages that cannot be read were left out: their nodes look idle"

_WHOLE_MACHINE = frozenset({"all", "*", "cluster", "system"})


class OutageRows:
    """Takes rows of a table of outages: start, end, a word for the state, nodes (``all`` or nothing: the machine)."""

    def __init__(self, record: ScheduleRecord, clock: Clock, file: str, has: set[str], constant: str | None) -> None:
        self._record, self._lint, self._clock, self._file, self._has = record, record.lint, clock, file, has
        self._lists = NodeLists(record)
        self._constant = constant

    def add(self, cells: Mapping[str, Any], line: int) -> None:
        """Make an outage of a row, or count why not."""
        word = first_word(cells.get("outage_state")) if self._constant is None else self._constant
        state = outage_state(word)
        if state is None:
            return self._dropped("an outage with a state that is not known", line, word, is_doubt=True)
        if state in (NodeState.IDLE, NodeState.BUSY):
            return self._dropped("a state that is no outage", line, word, is_doubt=False)
        try:
            start, end = self._clock.read(cells.get("start")), self._clock.read(cells.get("end"))
        except (ValueError, OverflowError) as error:
            value = f"{shown(cells, 'start', 'end')}: {error}"
            return self._dropped("an outage that cannot be read", line, value, is_doubt=True)
        if start is None:
            return self._dropped("an outage without a start", line, shown(cells, "start", "end"), is_doubt=True)
        interval = self._clock.interval(start, end, None, self._file, line)
        if isinstance(interval, str):
            return self._dropped(interval, line, shown(cells, "start", "end"), is_doubt=False)
        nodes: NDArray[np.int32] | None = None
        if is_interval(*interval) and "nodes" in self._has and first_word(cells.get("nodes")) not in _WHOLE_MACHINE:
            try:
                nodes, text = self._lists.ids(cells["nodes"])
            except ValueError as error:
                return self._dropped("an outage that cannot be read", line, f"{cells['nodes']}: {error}", is_doubt=True)
            if not text:  # written as "all" if it were the machine
                return self._dropped("an outage without nodes", line, cells["nodes"], is_doubt=True)
        self._record.add_outage(state, *interval, nodes, self._file, line)

    def _dropped(self, reason: str, line: int, value: object, *, is_doubt: bool) -> None:
        self._lint.drop(reason, self._file, line, value)
        if is_doubt:
            self._lint.doubt(OUTAGES_UNREADABLE, self._file, line, value)


def outage_state(word: str) -> NodeState | None:
    """State that a word means, of this project or as schedulers and people write it; ``None`` if nobody knows."""
    word = word.strip().lower().rstrip("*~#$@+!%-").replace(" ", "_")
    for name, starts in _OUTAGE_WORDS:
        if word.startswith(starts):
            return name
    return None


_OUTAGE_WORDS: Sequence[tuple[NodeState, tuple[str, ...]]] = (
    (NodeState.DRAIN, ("drain", "drng", "maint_drain")),
    (NodeState.DOWN, ("down", "maint", "fail", "error", "outage", "broken", "offline", "not_responding", "reboot")),
    (NodeState.RESERVED, ("reserved", "resv")),
    (NodeState.OFF, ("off", "power")),
    (NodeState.UNKNOWN, ("unknown", "unk")),
    (NodeState.IDLE, ("idle", "up", "free", "resume")),
    (NodeState.BUSY, ("busy", "alloc", "mix", "comp")),
)
