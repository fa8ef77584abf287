"""Rows of tables to outages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.ingest.table.cells import first_word, is_missing, nodes_in, shown
from bfreplay.datasets.ingest.table.clock import Clock, is_interval, is_number
from bfreplay.datasets.ingest.table.columns import plain
from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.occupancy.record import ScheduleRecord
from bfreplay.documents import Cell

OUTAGES_UNREADABLE = "outages that cannot be read were left out: their nodes look idle"
OUTAGES_BACKWARDS = "outages that end before they start were left out: their nodes look idle"
IN_USE = "rows of a table of outages say that nodes are in use: they were left out, and their nodes look idle"

STATE_COLUMNS = ("state", "node_state", "status", "event", "event_type", "event_state")
"""What a column of states is called in tables of outages, in lower case."""

_OF_NODES_ALONE = (
    "down", "drain", "drng", "maint", "outage", "offline", "broken", "not_responding", "reboot", "power", "resv",
    "reserved",
)  # fmt: skip
_IN_SERVICE = frozenset({"up", "free"})
_WORST_FIRST = (NodeState.DOWN, NodeState.OFF, NodeState.DRAIN, NodeState.RESERVED)
_MARKS = "*~#$@+!%-"
_OF_NODES_IN_SERVICE = frozenset({"idle", "up", "free", "alloc", "allocated", "mix", "mixed"})
_WHOLE_MACHINE = frozenset({"all", "*", "cluster", "system"})

_MOST_IDS = 4_000_000


class OutageRows:
    """Takes rows of a table of outages: start, end, a word for the state, nodes (``all``: the whole machine).

    Parameters
    ----------
    file
        Name of the file, for the report.
    has
        Roles that have a column; without ``nodes``, every outage is one of the whole machine.
    constant
        State of all rows, where there is no column of states.
    is_named
        The user said that it is a table of outages; else rows of nodes in use are a doubt.
    units
        Role -> unit of its numbers, where one was given.
    """

    def __init__(
        self,
        record: ScheduleRecord,
        clock: Clock,
        file: str,
        has: set[str],
        constant: str | None,
        *,
        is_named: bool = True,
        units: Mapping[str, str] | None = None,
    ) -> None:
        self._record, self._lint, self._clock, self._file, self._has = record, record.lint, clock, file, has
        self._lists = NodeLists(record)
        self._constant, self._is_named = constant, is_named
        self._units = {} if units is None else units

    def add(self, cells: Mapping[str, Cell], line: int) -> None:
        """Make an outage of a row, or count why not."""
        word = _word(cells.get("outage_state")) if self._constant is None else self._constant
        state = outage_state(word)
        if state is None:
            return self._dropped("an outage with a state that is not known", line, word, is_doubt=True)
        if state == NodeState.BUSY and not self._is_named:
            self._lint.doubt(IN_USE, self._file, line, word)
        if state in (NodeState.IDLE, NodeState.BUSY):
            return self._dropped("a state that is no outage", line, word, is_doubt=False)
        try:
            start, end = (self._clock.read(cells.get(role), self._units.get(role)) for role in ("start", "end"))
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
                return self._dropped(
                    "an outage that cannot be read", line, f"{shown(cells, 'nodes')}: {error}", is_doubt=True
                )
            if not text:  # written as "all" if it were the machine
                return self._dropped("an outage without nodes", line, cells["nodes"], is_doubt=True)
        if interval[1] is not None and interval[1] < interval[0]:
            self._lint.doubt(OUTAGES_BACKWARDS, self._file, line, shown(cells, "start", "end"))
        self._clock.count(start, is_number(cells["start"]))
        self._record.add_outage(state, *interval, nodes, self._file, line)

    def _dropped(self, reason: str, line: int, value: object, *, is_doubt: bool) -> None:
        self._lint.drop(reason, self._file, line, value)
        if is_doubt:
            self._lint.doubt(OUTAGES_UNREADABLE, self._file, line, value)


def _word(value: Any) -> str:
    """A state in lower case, with ``_`` for spaces; empty for a missing one, but ``unknown`` is a state."""
    text = "_".join(str(value).lower().split())
    return "" if is_missing(value) and text != "unknown" else text


def outage_column(names: Sequence[str], cells: Callable[[str], Sequence[Any]], mapped: str | None) -> str | None:
    """The column by which a table is one of outages without anybody saying so.

    One called ``outage_state``; or a column of states or events (or ``mapped``, which the user calls the state) in
    which all of the first ``cells`` are words that no scheduler has for jobs: down, drain, maintenance, ...
    """
    known: dict[str, str] = {}
    for name in names:
        known.setdefault(plain(name), name)
    if "outage_state" in known:
        return known["outage_state"]
    for column in (mapped, *(known.get(name) for name in STATE_COLUMNS)):
        if column is None or column not in names:
            continue
        words = [_word(cell) for cell in cells(column)]
        if words and all(is_outage_word(word) for word in words):
            return column
    return None


def is_outage_word(word: str) -> bool:
    """Whether a word is a state of nodes that are out, and of no job: ``failed``, say, may be either."""
    return any(part.strip("_").startswith(_OF_NODES_ALONE) for part in word.split("+"))


def is_node_word(word: str) -> bool:
    """Whether a word is a state of nodes, and of no job that ran."""
    return is_outage_word(word) or word.rstrip(_MARKS) in _OF_NODES_IN_SERVICE


def outage_state(word: str) -> NodeState | None:
    """State that a word means, of this project or as schedulers and people write it; ``None`` if nobody knows.

    Of several (``IDLE+DRAIN``) the one that keeps jobs off most.
    """
    states = [_one_state(part) for part in "_".join(word.lower().split()).split("+")]
    worst = next((state for state in _WORST_FIRST if state in states), None)
    return states[0] if worst is None else worst


def _one_state(word: str) -> NodeState | None:
    word = word.strip("_").rstrip(_MARKS)
    if word in _IN_SERVICE:
        return NodeState.IDLE
    return next((name for name, starts in _OUTAGE_WORDS if word.startswith(starts)), None)


_OUTAGE_WORDS: Sequence[tuple[NodeState, tuple[str, ...]]] = (
    (NodeState.DRAIN, ("drain", "drng", "maint_drain")),
    (NodeState.DOWN, ("down", "maint", "fail", "error", "outage", "broken", "offline", "not_responding", "reboot")),
    (NodeState.RESERVED, ("reserved", "resv")),
    (NodeState.OFF, ("off", "power")),
    (NodeState.UNKNOWN, ("unknown", "unk")),
    (NodeState.IDLE, ("idle", "resume")),
    (NodeState.BUSY, ("busy", "alloc", "mix", "comp")),
)


class NodeLists:
    """Indices of nodes in lists, which repeat; what is remembered is bounded."""

    def __init__(self, record: ScheduleRecord) -> None:
        self._record = record
        self._known: dict[str, NDArray[np.int32]] = {}
        self._n_ids = 0

    def ids(self, value: Any) -> tuple[NDArray[np.int32], str]:
        """Indices, and the list as text. ``ValueError`` if it is no list of nodes."""
        text = value if isinstance(value, str) else " ".join(map(str, value)) if isinstance(value, list) else str(value)
        known = self._known.get(text)
        if known is None:
            known = self._record.node_ids(nodes_in(value))
            if self._n_ids > _MOST_IDS:
                self._known.clear()
                self._n_ids = 0
            self._known[text] = known
            self._n_ids += len(known) + 64
        return known, text if len(known) else ""
