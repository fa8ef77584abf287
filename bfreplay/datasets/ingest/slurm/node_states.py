"""States of Slurm's nodes: ``sacctmgr show event`` and ``show reservation``, and samples of ``sinfo``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, pairwise
from statistics import median_low

from bfreplay.datasets.ingest.hostlists import expand_nodes
from bfreplay.datasets.ingest.local_times import Candidates, RowPlace
from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.occupancy.spool import OPEN_END
from bfreplay.datasets.ingest.reader import ReadOptions, or_none
from bfreplay.datasets.ingest.sampled_states import SampledStates
from bfreplay.datasets.ingest.slurm.command_tables import Layout, find_header, rows_below_headers, text_lines
from bfreplay.datasets.ingest.slurm.slurm_cells import duration_us, has_strange_word, node_state, stronger
from bfreplay.datasets.ingest.slurm.slurm_times import SKIPPED, SlurmClock, TimeFormatError, ZoneEvidence
from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.times import DAY_US, HOUR_US, US

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
    has_all = all(layout.index(*alternatives) >= 0 for alternatives in (_NODES, _STARTS, _ENDS, ("flags",)))
    return has_all and layout.index(*_STATES) < 0


def is_header(layout: Layout) -> bool:
    """Return whether the columns are of ``sacctmgr show event`` or ``show reservation``."""
    is_of_events = all(layout.index(*alternatives) >= 0 for alternatives in (_NODE, _STARTS, _ENDS, _STATES))
    return is_of_events or is_reservation_header(layout)


@dataclass(frozen=True, slots=True)
class _EventRow:
    """Row of a table of node events or reservations, its place, and the clock for its times."""

    layout: Layout
    cells: list[str]
    clock: SlurmClock
    place: RowPlace

    def cell(self, *names: str) -> str:
        """Return the cell of the first of these columns that exists."""
        return self.cells[self.layout.index(*names)]

    def times(self) -> tuple[Candidates | None, Candidates | None]:
        """Return the possible starts and ends; ``ValueError`` for unreadable times."""
        return self.clock.read(self.cell(*_STARTS)), self.clock.read(self.cell(*_ENDS))


class NodeEvents:
    """Converter of the node events and reservations of all files to outages."""

    def __init__(self, record: ScheduleRecord, options: ReadOptions, evidence: ZoneEvidence) -> None:
        self._record, self._options, self._evidence = record, options, evidence
        self._earliest_start_us = self._earliest_end_us = OPEN_END
        self._where: str | None = None
        self._n_known = len(record.nodes)  # nodes of the jobs, which are read before
        self._nodes: set[int] = set()
        self._held_us = 0

    def read(self, log_file: LogFile) -> None:
        """Read one file.

        Raises
        ------
        InputError
            Local times of unknown zone.
        """
        report, delimiter = self._record.report, self._options.delimiter
        header = find_header(log_file, delimiter, is_header)
        is_reservations = header is not None and is_reservation_header(header)
        command = RESERVATION_COMMAND if is_reservations else EVENT_COMMAND
        self._record.add_format("slurm reservations" if is_reservations else "slurm node events")
        clock = SlurmClock(log_file.name, self._options, self._evidence, command)
        state_of_row = self._state_of_reservation if is_reservations else self._state_of_event
        for line_number, line_text, cells, layout in rows_below_headers(log_file, report, delimiter, is_header, _USED):
            event_row = _EventRow(layout, cells, clock, (log_file.name, line_number, line_text))
            node_state = state_of_row(event_row)
            if node_state == NodeState.IDLE:
                self._leave_idle(event_row)
            elif node_state is not None:
                self._add(node_state, event_row)

    def finish(self) -> None:
        """Warn if the events seem incomplete because all are recent."""
        record = self._record
        if self._where is None or record.first_start_us == OPEN_END:
            return
        if self._n_known and self._nodes and min(self._nodes) >= self._n_known:
            examples = ", ".join(record.nodes[node_index] for node_index in sorted(self._nodes)[:3])
            record.report.warn(OTHER_NODES, self._where, None, examples, node_hours=self._held_us / HOUR_US)
        recent_us = record.last_stamp_us - 2 * DAY_US
        if record.last_stamp_us - record.first_start_us <= 7 * DAY_US or self._earliest_end_us <= recent_us:
            return
        if self._earliest_start_us > recent_us:
            record.report.warn(RECENT_ONLY, self._where, why_no_amount=EARLIER)
        elif self._earliest_end_us != OPEN_END:
            # open events are shown without All_Time too: weak evidence, but a complete export may have no more
            record.report.facts["node events"] = OPEN_ONLY

    def _state_of_event(self, event_row: _EventRow) -> NodeState | None:
        """Return the state of a node in an event, IDLE if the node is usable or looks so; ``None``: of no node."""
        report = self._record.report
        if not event_row.cell(*_NODE):
            report.skip("cluster event", *event_row.place)
            with suppress(ValueError):  # the row holds no nodes: its faults have no effect
                start_time, end_time = event_row.times()
                if start_time:
                    self._note(start_time[0], end_time[0] if end_time else None, event_row.place[0])
            return None
        # never a node name: columns may have moved
        if event_row.layout.index("cluster") >= 0 and not event_row.cell("cluster").isprintable():
            report.skip_with_warning(SPOILT_CLUSTER, *event_row.place)
            return NodeState.IDLE
        state_words = event_row.cell(*_STATES)
        state = node_state(state_words)
        if state is None:
            report.skip("unknown state of a node", *event_row.place)
            report.warn(UNKNOWN_STATE, *event_row.place[:2], state_words)
            return NodeState.IDLE
        if has_strange_word(state_words):
            report.warn(STRANGE_WORD, *event_row.place[:2], state_words)
        if state not in (NodeState.IDLE, NodeState.BUSY):
            return state
        report.skip("an event that leaves its node usable", *event_row.place)
        return NodeState.IDLE

    def _note(self, start_us: int, end_us: int | None, file_name: str) -> None:
        self._where = file_name
        self._earliest_start_us = min(self._earliest_start_us, start_us)
        self._earliest_end_us = min(self._earliest_end_us, OPEN_END if end_us is None else end_us)

    def _state_of_reservation(self, event_row: _EventRow) -> NodeState | None:
        """Return the state of reserved nodes; ``None`` without nodes."""
        if not event_row.cell(*_NODES):
            self._record.report.skip("reservation without nodes", *event_row.place)
            return None
        if "MAINT" in _FLAGS.split(event_row.cell("flags").upper()):
            return NodeState.DOWN
        if self._options.reservations == "reserved":
            return NodeState.RESERVED
        self._record.report.skip("reservation, kept idle", *event_row.place)
        return NodeState.IDLE

    def _leave_idle(self, event_row: _EventRow) -> None:
        """Note how much a row in doubt, or a reservation, leaves idle; one that cannot be read has no effect."""
        with suppress(ValueError):
            node_names = expand_nodes(event_row.cell(*_NODES))
            start_time, end_time = event_row.times()
            if start_time:
                end_us = end_time[-1] if end_time else None
                self._record.report.set_row_amount(len(node_names), start_time[0], end_us)
                if is_reservation_header(event_row.layout):
                    self._record.add_reservation(start_time[0], end_us, node_names)

    def _add(self, state: NodeState, event_row: _EventRow) -> None:
        record, report = self._record, self._record.report
        node_names = or_none(expand_nodes, event_row.cell(*_NODES))
        if not node_names:
            return report.skip_with_warning("unreadable names of nodes", *event_row.place, why_no_amount=UNKNOWN_NODES)
        try:
            start_time, end_time = event_row.times()
        except ValueError as error:
            skip_reason = str(error) if isinstance(error, TimeFormatError) else "unreadable time"
            return report.skip_with_warning(skip_reason, *event_row.place, why_no_amount=UNKNOWN_TIMES)
        if start_time is None:
            return report.skip_with_warning("an outage without a start", *event_row.place, why_no_amount=UNKNOWN_TIMES)
        if end_time is None and event_row.cell(*_ENDS).lower() != "unknown":
            report.warn(BLANK_END, *event_row.place)
        length_us = duration_us(event_row.cell("duration")) if event_row.layout.index("duration") >= 0 else None
        times_us = event_row.clock.resolve(start_time, end_time, length_us, event_row.place)
        if times_us is None:
            return report.skip(SKIPPED, *event_row.place)
        start_us, end_us = times_us
        node_ids = record.node_ids(node_names)
        if not is_reservation_header(event_row.layout):
            self._note(start_us, end_us, event_row.place[0])
            self._nodes.update(node_ids.tolist())
            self._held_us += len(node_ids) * max((record.last_stamp_us if end_us is None else end_us) - start_us, 0)
        record.add_outage(state, start_us, end_us, node_ids, *event_row.place[:2])


SAMPLES_COMMAND = 'while sleep 60; do sinfo -a -N -h -o "$(date +%s)|%N|%T"; done >> states.txt'
"""Command to run on the cluster for the length of the log."""

KEPT = "samples of node states"
BACKWARDS = "samples out of the order of time were skipped"

_LINE = re.compile(r"([1-9]\d{8,9})(?:\.(\d{1,9}))?\|([^|]+)\|([^|]*)(?:\|.*)?", re.ASCII)
_MOST_HEAD_LINES = 200


@dataclass(frozen=True, slots=True)
class _SampleLine:
    """Line of a sample: its time, the nodes as text, and their state."""

    time_us: int
    node_list: str
    state: NodeState

    @classmethod
    def read(cls, line_text: str) -> _SampleLine | None:
        """Read a line; ``None`` if it is not of a sample with a known state."""
        line_match = _LINE.fullmatch(line_text)
        state = None if line_match is None else node_state(line_match[4])
        if line_match is None or state is None:
            return None
        return cls(int(line_match[1]) * US + int((line_match[2] or "0").ljust(6, "0")[:6]), line_match[3], state)


def share_of_samples(log_file: LogFile) -> float:
    """Return the share of the first lines that are samples."""
    lines = log_file.first_rows(_MOST_HEAD_LINES)
    return sum(_SampleLine.read(line_text) is not None for line_text in lines) / len(lines) if lines else 0.0


def read_sinfo(files: Sequence[LogFile], record: ScheduleRecord, is_alone: bool) -> None:
    """Read all files of samples as one series.

    Parameters
    ----------
    is_alone
        True if no jobs are read: the samples then determine the time that the log covers.
    """
    record.add_format("slurm sinfo samples")
    record.report.facts["sinfo times"] = "epoch seconds: no zone needed"
    files = sorted(files, key=_first_time_us)
    period_us = _median_period_us(files)
    timeline = SampledStates(record, period_us)
    for sample in _samples(files, record, period_us):
        record.report.keep(KEPT, sample.n_rows)
        rows = [(sample.time_us, node, state) for node, state in sample.states.items()]
        timeline.add(sample.time_us, sample.states, rows, sample.file.name, sample.line)
    timeline.finish("from the first to the last sample of sinfo" if is_alone else None)


def _median_period_us(log_files: Sequence[LogFile]) -> int:
    """Return the median time from one sample to the next (the lower of two), 0 for a single sample."""
    # a first reading, not counted in the progress bar
    lines = chain.from_iterable(LogFile(log_file.path, log_file.name).lines() for log_file in log_files)
    times_us = (sample.time_us for _, line_text in lines if (sample := _SampleLine.read(line_text)) is not None)
    periods_us = [after_us - before_us for before_us, after_us in pairwise(times_us) if after_us > before_us]
    return median_low(periods_us) if periods_us else 0


def _first_time_us(log_file: LogFile) -> int:
    samples = filter(None, map(_SampleLine.read, log_file.head_lines()))
    return next((sample.time_us for sample in samples), 0)


@dataclass(slots=True)
class _Sample:
    """States of nodes at one time, and the line where it begins."""

    time_us: int
    file: LogFile
    line: int
    states: dict[str, NodeState] = field(default_factory=dict)
    n_rows: int = 0

    def add(self, node_names: Sequence[str], state: NodeState) -> None:
        """Add a row; for a node in several partitions the strongest state counts."""
        self.n_rows += 1
        for node_name in node_names:
            self.states[node_name] = stronger(state, self.states.get(node_name, NodeState.IDLE))


def _samples(log_files: Sequence[LogFile], record: ScheduleRecord, period_us: int) -> Iterator[_Sample]:
    """Yield all samples in order of time; rows out of order are skipped.

    A sample is yielded when the next but one begins: if time runs backwards after a single row, that row was wrong and
    the sample before it goes on; otherwise the row that runs backwards is wrong.
    """
    report = record.report
    previous: _Sample | None = None
    current: _Sample | None = None
    for log_file in log_files:
        for line_number, text in text_lines(log_file, report):
            report.read()
            sample_line = _SampleLine.read(text)
            node_names = None if sample_line is None else or_none(expand_nodes, sample_line.node_list)
            if sample_line is None or not node_names:
                report.skip_with_warning("unreadable sample", log_file.name, line_number, text)
                report.set_row_amount(1, 0, period_us)
                continue
            time_us = sample_line.time_us
            if current is not None and time_us < current.time_us:
                is_single = current.n_rows == 1 and (previous is None or time_us >= previous.time_us)
                wrong, line = (current.file, current.line) if is_single else (log_file, line_number)
                report.skip_with_warning("a sample out of the order of time", wrong.name, line, text, warning=BACKWARDS)
                report.set_row_amount(1, 0, period_us)
                if not is_single:
                    continue
                current, previous = previous, None
            if current is None or time_us > current.time_us:
                if previous is not None:
                    yield previous
                previous, current = current, _Sample(time_us, log_file, line_number)
            current.add(node_names, sample_line.state)
    yield from filter(None, (previous, current))
