"""``sacctmgr show event`` and ``sacctmgr show reservation``: when nodes were down, draining, off or reserved."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bfreplay.datasets.ingest.hostlists import expand_nodes
from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.datasets.ingest.slurm.cells import duration_us, has_strange_word, node_state
from bfreplay.datasets.ingest.slurm.clock import RELATIVE, RelativeTimeError, SlurmClock, ZoneEvidence
from bfreplay.datasets.ingest.slurm.psv import (
    BEFORE_HEADER,
    TOO_FEW_CELLS,
    TOO_MANY_CELLS,
    Layout,
    check_names_once,
    header_of,
    text_lines,
)
from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.occupancy.record import ScheduleRecord
from bfreplay.datasets.occupancy.spool import OPEN_END

EVENT_COMMAND = (
    "TZ=UTC sacctmgr -P show event All_Time Start=2024-01-01 "
    "format=Cluster,NodeName,Start,End,State,Reason,User > events.psv"
)
RESERVATION_COMMAND = (
    "TZ=UTC sacctmgr -P show reservation Start=2024-01-01 format=Cluster,Name,Start,End,NodeNames,Flags > resv.psv"
)

RECENT_ONLY = (
    "all node events began in the last two days of a longer log: without All_Time and Start=, sacctmgr shows only "
    "those (with them, the row of the cluster itself is older and settles it)"
)
OPEN_ONLY = (
    "all that ended did so in the last two days, though some that are still open are older: were All_Time and Start= "
    "given to sacctmgr?"
)
OTHER_NODES = (
    "none of the nodes in the node events is one that a job used: they are of another cluster, or columns are mixed up"
)
BLANK_END = "outages have neither an end nor the word Unknown in its place: they are taken to last"
SPOILT_CLUSTER = "an event of a cluster whose name cannot be read"
STRANGE_WORD = "states of nodes have a word that is not known beside one that is: only that one counts"
UNKNOWN_STATE = "states of nodes that are not known were left out: such nodes look idle"

_NODE, _NODES = ("nodename",), ("nodenames", "nodelist", "nodes")
_STARTS, _ENDS = ("timestart", "start", "starttime"), ("timeend", "end", "endtime")
_STATES = ("state", "stateraw")
_DAY_US = 86_400_000_000
_FLAGS = re.compile(r"[,+\s]+")


def is_event_header(layout: Layout | None) -> bool:
    """Whether the columns are those of ``sacctmgr show event``."""
    return layout is not None and all(layout.index(*names) >= 0 for names in (_NODE, _STARTS, _ENDS, _STATES))


def is_reservation_header(layout: Layout | None) -> bool:
    """Whether the columns are those of ``sacctmgr show reservation``."""
    return layout is not None and all(layout.index(*names) >= 0 for names in (_NODES, _STARTS, _ENDS, ("flags",)))


def find_event_header(file: LogFile, delimiter: str | None) -> Layout | None:
    """Layout of node events or reservations that one of the first lines gives."""
    for line in file.head_lines()[:20]:
        layout = header_of(line, delimiter)
        if is_event_header(layout) or is_reservation_header(layout):
            return layout
    return None


class NodeEvents:
    """Takes the node events and reservations of all files."""

    def __init__(self, record: ScheduleRecord, options: ReadOptions, evidence: ZoneEvidence) -> None:
        self._record, self._options, self._evidence = record, options, evidence
        self._earliest_start_us = self._earliest_end_us = OPEN_END
        self._where: LogFile | None = None
        self._n_known = len(record.nodes)  # those of the jobs, which are read before
        self._nodes: set[int] = set()

    def read(self, file: LogFile) -> None:
        """Read one file.

        Raises
        ------
        InputError
            Its times are local and nobody said where.
        """
        header = find_event_header(file, self._options.delimiter)
        is_reservations = is_reservation_header(header)
        command = RESERVATION_COMMAND if is_reservations else EVENT_COMMAND
        self._record.add_format("slurm reservations" if is_reservations else "slurm node events")
        clock = SlurmClock(file, self._options, self._evidence, command)
        for line, text, cells, layout in self._rows(file):
            state = (
                self._state_of_reservation(layout, cells, file, line, text)
                if is_reservations
                else self._state_of_event(layout, cells, clock, file, line, text)
            )
            if state is not None:
                self._add(state, layout, cells, clock, file, line, text)

    def finish(self) -> None:
        """Doubt that all events are there, if they are all recent."""
        record = self._record
        if self._where is None or record.first_start_us == OPEN_END:
            return
        if self._n_known and self._nodes and min(self._nodes) >= self._n_known:
            shown = ", ".join(record.nodes[node] for node in sorted(self._nodes)[:3])
            record.lint.doubt(OTHER_NODES, self._where.name, None, shown)
        recent_us = record.last_stamp_us - 2 * _DAY_US
        if record.last_stamp_us - record.first_start_us <= 7 * _DAY_US or self._earliest_end_us <= recent_us:
            return
        if self._earliest_start_us > recent_us:
            record.lint.doubt(RECENT_ONLY, self._where.name)
        elif self._earliest_end_us != OPEN_END:
            # what is still open is shown without All_Time too: it settles little, but a right export may have no more
            record.lint.facts["node events"] = OPEN_ONLY

    def _rows(self, file: LogFile) -> Iterator[tuple[int, str, list[str], Layout]]:
        lint = self._record.lint
        layout: Layout | None = None
        for number, line in text_lines(file, lint):
            header = header_of(line, layout.delimiter if layout else self._options.delimiter)
            if header is not None and (is_event_header(header) or is_reservation_header(header)):
                check_names_once(header, (*_NODE, *_NODES, *_STARTS, *_ENDS, *_STATES, "flags"), file)
                layout = header
                continue
            lint.read()
            if layout is None:
                lint.drop(BEFORE_HEADER, file.name, number, line)
                continue
            cells = layout.cells(line)
            if cells is None:
                many = line.count(layout.delimiter) >= len(layout.names)
                lint.leave_out(TOO_MANY_CELLS if many else TOO_FEW_CELLS, file.name, number, line)
                continue
            yield number, line, cells, layout

    def _state_of_event(
        self, layout: Layout, cells: list[str], clock: SlurmClock, file: LogFile, line: int, text: str
    ) -> NodeState | None:
        lint = self._record.lint
        if not cells[layout.index(*_NODE)]:
            lint.drop("cluster event", file.name, line, text)
            self._note_cluster(cells, layout, clock, file)
            return None
        cluster = layout.index("cluster")
        if cluster >= 0 and not cells[cluster].isprintable():  # as names never are: columns may have moved
            lint.leave_out(SPOILT_CLUSTER, file.name, line, text)
            return None
        words = cells[layout.index(*_STATES)]
        state = node_state(words)
        if state is None:
            lint.drop("unknown state of a node", file.name, line, text)
            lint.doubt(UNKNOWN_STATE, file.name, line, words)
        elif has_strange_word(words):
            lint.doubt(STRANGE_WORD, file.name, line, words)
        if state in (NodeState.IDLE, NodeState.BUSY):
            lint.drop("an event that leaves its node usable", file.name, line, text)
            return None
        return state

    def _note_cluster(self, cells: list[str], layout: Layout, clock: SlurmClock, file: LogFile) -> None:
        try:
            start, end = clock.read(cells[layout.index(*_STARTS)]), clock.read(cells[layout.index(*_ENDS)])
        except ValueError:
            return  # the row holds no nodes: what spoils it spoils nothing else
        if start:
            self._note(start[0], end[0] if end else None, file)

    def _note(self, start_us: int, end_us: int | None, file: LogFile) -> None:
        self._where = file
        self._earliest_start_us = min(self._earliest_start_us, start_us)
        self._earliest_end_us = min(self._earliest_end_us, OPEN_END if end_us is None else end_us)

    def _state_of_reservation(
        self, layout: Layout, cells: list[str], file: LogFile, line: int, text: str
    ) -> NodeState | None:
        lint = self._record.lint
        if not cells[layout.index(*_NODES)]:
            lint.drop("reservation without nodes", file.name, line, text)
            return None
        if "MAINT" in _FLAGS.split(cells[layout.index("flags")].upper()):
            return NodeState.DOWN
        if self._options.reservations == "reserved":
            return NodeState.RESERVED
        lint.drop("reservation, kept idle", file.name, line, text)
        return None

    def _add(
        self,
        state: NodeState,
        layout: Layout,
        cells: list[str],
        clock: SlurmClock,
        file: LogFile,
        line: int,
        text: str,
    ) -> None:
        record, lint = self._record, self._record.lint
        try:
            names = expand_nodes(cells[layout.index(*_NODE, *_NODES)])
        except ValueError:
            names = ()
        if not names:
            lint.leave_out("unreadable names of nodes", file.name, line, text)
            return
        try:
            start, end = clock.read(cells[layout.index(*_STARTS)]), clock.read(cells[layout.index(*_ENDS)])
        except RelativeTimeError:
            lint.leave_out(RELATIVE, file.name, line, text)
            return
        except ValueError:
            lint.leave_out("unreadable time", file.name, line, text)
            return
        if start is None:
            lint.leave_out("an outage without a start", file.name, line, text)
            return
        if end is None and cells[layout.index(*_ENDS)].lower() != "unknown":
            lint.doubt(BLANK_END, file.name, line, text)
        duration = layout.index("duration")
        length_us = duration_us(cells[duration]) if duration >= 0 else None
        settled = clock.settle(start, end, length_us, lint, line, text)
        if settled is None:
            return
        start_us, end_us = settled
        if layout.index(*_NODE) >= 0:
            self._note(start_us, end_us, file)
        nodes = record.node_ids(names)
        if layout.index(*_NODE) >= 0:
            self._nodes.update(nodes.tolist())
        record.add_outage(state, start_us, end_us, nodes, file.name, line)
