"""``sacctmgr show event`` and ``sacctmgr show reservation``: outages of nodes."""

from __future__ import annotations

import re

from bfreplay.datasets.ingest.clock import At
from bfreplay.datasets.ingest.delimited import Layout, find_header, rows_below_headers
from bfreplay.datasets.ingest.hostlists import expand_nodes
from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.occupancy.spool import OPEN_END
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.datasets.ingest.slurm.cells import duration_us, has_strange_word, node_state
from bfreplay.datasets.ingest.slurm.clock import SKIPPED, SlurmClock, TimeFormatError, ZoneEvidence
from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.times import DAY_US, HOUR_US

EVENT_COMMAND = (
    "TZ=UTC sacctmgr -P show event All_Time Start=2024-01-01 "
    "format=Cluster,NodeName,Start,End,State,Reason,User > outages.psv"
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
BLANK_END = "outages have neither an end nor the word Unknown in its place: they count as open"
SPOILT_CLUSTER = "an event of a cluster whose name cannot be read"
STRANGE_WORD = "states of nodes have an unknown word beside a known one: only the known one counts"
UNKNOWN_TIMES, UNKNOWN_NODES = "when it was cannot be read", "its nodes cannot be read"
EARLIER = "outages that ended before are not in the log"
UNKNOWN_STATE = "unknown states of nodes were skipped: such nodes look idle"

_NODE, _NODES = ("nodename",), ("nodename", "nodenames", "nodelist", "nodes")  # reservations have the first up to 22.05
_STARTS, _ENDS = ("timestart", "start", "starttime"), ("timeend", "end", "endtime")
_STATES = ("state", "stateraw")
_USED = (*_NODE, *_NODES, *_STARTS, *_ENDS, *_STATES, "flags")
_FLAGS = re.compile(r"[,+\s]+")


def is_reservation_header(layout: Layout) -> bool:
    """Return whether the columns are of ``sacctmgr show reservation``."""
    has_all = all(layout.index(*names) >= 0 for names in (_NODES, _STARTS, _ENDS, ("flags",)))
    return has_all and layout.index(*_STATES) < 0


def is_header(layout: Layout) -> bool:
    """Return whether the columns are of ``sacctmgr show event`` or ``show reservation``."""
    is_of_events = all(layout.index(*names) >= 0 for names in (_NODE, _STARTS, _ENDS, _STATES))
    return is_of_events or is_reservation_header(layout)


class NodeEvents:
    """Converter of the node events and reservations of all files to outages."""

    def __init__(self, record: ScheduleRecord, options: ReadOptions, evidence: ZoneEvidence) -> None:
        self._record, self._options, self._evidence = record, options, evidence
        self._earliest_start_us = self._earliest_end_us = OPEN_END
        self._where: str | None = None
        self._n_known = len(record.nodes)  # nodes of the jobs, which are read before
        self._nodes: set[int] = set()
        self._held_us = 0

    def read(self, file: LogFile) -> None:
        """Read one file.

        Raises
        ------
        InputError
            Local times of unknown zone.
        """
        header = find_header(file, self._options.delimiter, is_header)
        is_reservations = header is not None and is_reservation_header(header)
        command = RESERVATION_COMMAND if is_reservations else EVENT_COMMAND
        self._record.add_format("slurm reservations" if is_reservations else "slurm node events")
        clock = SlurmClock(file.name, self._options, self._evidence, command)
        report, delimiter = self._record.report, self._options.delimiter
        for line, text, cells, layout in rows_below_headers(file, report, delimiter, is_header, _USED):
            at = file.name, line, text
            if is_reservations:
                state = self._state_of_reservation(layout, cells, at)
            else:
                state = self._state_of_event(layout, cells, clock, at)
            if state == NodeState.IDLE:
                self._leave_idle(layout, cells, clock)
            elif state is not None:
                self._add(state, layout, cells, clock, at)

    def finish(self) -> None:
        """Warn if the events seem incomplete because all are recent."""
        record = self._record
        if self._where is None or record.first_start_us == OPEN_END:
            return
        if self._n_known and self._nodes and min(self._nodes) >= self._n_known:
            shown = ", ".join(record.nodes[node] for node in sorted(self._nodes)[:3])
            record.report.warn(OTHER_NODES, self._where, None, shown, node_hours=self._held_us / HOUR_US)
        recent_us = record.last_stamp_us - 2 * DAY_US
        if record.last_stamp_us - record.first_start_us <= 7 * DAY_US or self._earliest_end_us <= recent_us:
            return
        if self._earliest_start_us > recent_us:
            record.report.warn(RECENT_ONLY, self._where, why=EARLIER)
        elif self._earliest_end_us != OPEN_END:
            # open events are shown without All_Time too: weak evidence, but a complete export may have no more
            record.report.facts["node events"] = OPEN_ONLY

    def _state_of_event(self, layout: Layout, cells: list[str], clock: SlurmClock, at: At) -> NodeState | None:
        """Return the state of a node in an event, IDLE if the node is usable or looks so; ``None``: of no node."""
        report = self._record.report
        if not cells[layout.index(*_NODE)]:
            report.skip("cluster event", *at)
            self._note_cluster(cells, layout, clock, at[0])
            return None
        cluster = layout.index("cluster")
        if cluster >= 0 and not cells[cluster].isprintable():  # never a node name: columns may have moved
            report.skip_with_warning(SPOILT_CLUSTER, *at)
            return NodeState.IDLE
        words = cells[layout.index(*_STATES)]
        state = node_state(words)
        if state is None:
            report.skip("unknown state of a node", *at)
            report.warn(UNKNOWN_STATE, *at[:2], words)
        elif has_strange_word(words):
            report.warn(STRANGE_WORD, *at[:2], words)
        if state in (NodeState.IDLE, NodeState.BUSY):
            report.skip("an event that leaves its node usable", *at)
            return NodeState.IDLE
        return NodeState.IDLE if state is None else state

    def _note_cluster(self, cells: list[str], layout: Layout, clock: SlurmClock, file: str) -> None:
        try:
            start, end = clock.read(cells[layout.index(*_STARTS)]), clock.read(cells[layout.index(*_ENDS)])
        except ValueError:
            return  # the row holds no nodes: its faults have no effect
        if start:
            self._note(start[0], end[0] if end else None, file)

    def _note(self, start_us: int, end_us: int | None, file: str) -> None:
        self._where = file
        self._earliest_start_us = min(self._earliest_start_us, start_us)
        self._earliest_end_us = min(self._earliest_end_us, OPEN_END if end_us is None else end_us)

    def _state_of_reservation(self, layout: Layout, cells: list[str], at: At) -> NodeState | None:
        """Return the state of reserved nodes; ``None`` without nodes."""
        report = self._record.report
        if not cells[layout.index(*_NODES)]:
            report.skip("reservation without nodes", *at)
            return None
        if "MAINT" in _FLAGS.split(cells[layout.index("flags")].upper()):
            return NodeState.DOWN
        if self._options.reservations == "reserved":
            return NodeState.RESERVED
        report.skip("reservation, kept idle", *at)
        return NodeState.IDLE

    def _leave_idle(self, layout: Layout, cells: list[str], clock: SlurmClock) -> None:
        """Note how much a row in doubt, or a reservation, leaves idle; one that cannot be read has no effect."""
        try:
            names = expand_nodes(cells[layout.index(*_NODES)])
            start, end = clock.read(cells[layout.index(*_STARTS)]), clock.read(cells[layout.index(*_ENDS)])
        except ValueError:
            return
        if not start:
            return
        end_us = end[-1] if end else None
        self._record.report.hold(len(names), start[0], end_us)
        if is_reservation_header(layout):
            self._record.add_reservation(start[0], end_us, names)

    def _add(self, state: NodeState, layout: Layout, cells: list[str], clock: SlurmClock, at: At) -> None:
        record, report = self._record, self._record.report
        try:
            names = expand_nodes(cells[layout.index(*_NODES)])
        except ValueError:
            names = ()
        if not names:
            return report.skip_with_warning("unreadable names of nodes", *at, why=UNKNOWN_NODES)
        try:
            start, end = clock.read(cells[layout.index(*_STARTS)]), clock.read(cells[layout.index(*_ENDS)])
        except ValueError as error:
            reason = str(error) if isinstance(error, TimeFormatError) else "unreadable time"
            return report.skip_with_warning(reason, *at, why=UNKNOWN_TIMES)
        if start is None:
            return report.skip_with_warning("an outage without a start", *at, why=UNKNOWN_TIMES)
        if end is None and cells[layout.index(*_ENDS)].lower() != "unknown":
            report.warn(BLANK_END, *at)
        duration = layout.index("duration")
        length_us = duration_us(cells[duration]) if duration >= 0 else None
        settled = clock.settle(start, end, length_us, at)
        if settled is None:
            return report.skip(SKIPPED, *at)
        start_us, end_us = settled
        if not is_reservation_header(layout):
            self._note(start_us, end_us, at[0])
        nodes = record.node_ids(names)
        if not is_reservation_header(layout):
            self._nodes.update(nodes.tolist())
            self._held_us += len(nodes) * max((record.last_stamp_us if end_us is None else end_us) - start_us, 0)
        record.add_outage(state, start_us, end_us, nodes, *at[:2])
