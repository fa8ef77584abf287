"""Tables of outages: rows to outages, and a separate file for the log of any scheduler."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.ingest.delimited import Place
from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.import_report import ImportReport
from bfreplay.datasets.ingest.occupancy.schedule import NodeLists, ScheduleRecord
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.datasets.ingest.table import open_tables
from bfreplay.datasets.ingest.table.open_tables import Columns, Table, first_cells, rows_by_role
from bfreplay.datasets.ingest.table.table_cells import cell_texts, first_word, is_missing, nodes_in
from bfreplay.datasets.ingest.table.table_times import READABLE_TIMES, SKIPPED, TableClock, Wall, is_interval, is_number
from bfreplay.datasets.log.states import NodeState
from bfreplay.documents import Cell
from bfreplay.errors import InputError

OUTAGES_UNREADABLE = "outages that cannot be read were skipped: their nodes look idle"
OUTAGES_BACKWARDS = "outages that end before they start were skipped: their nodes look idle"
OUTAGE_UNKNOWN = "when it was, or of which nodes, cannot be read"
IN_USE = "rows of a table of outages say that nodes are in use: they were skipped, and their nodes look idle"

STATE_COLUMNS = ("state", "node_state", "status", "event", "event_type", "event_state")
"""Names of a column of states in tables of outages, in lower case."""

_OF_NODES_ALONE = re.compile(r"down|drain|drng|maint|outage|offline|broken|not_responding|reboot|power|resv|reserved")
_IN_SERVICE = frozenset({"up", "free"})
_WORST_FIRST = (NodeState.DOWN, NodeState.OFF, NodeState.DRAIN, NodeState.RESERVED)
_MARKS = "*~#$@+!%-"
_OF_NODES_IN_SERVICE = frozenset({"idle", "up", "free", "alloc", "allocated", "mix", "mixed"})
_WHOLE_MACHINE = frozenset({"all", "*", "cluster", "system"})


SMALLEST_FILE = (
    "node,start,end,state",
    "cn[17-18],2024-10-22T03:11:20Z,2024-11-11T00:00:00Z,down",
    "ALL,2024-12-02T06:00:00Z,2024-12-02T18:00:00Z,maint",
)
_JOBS = ("job", "job_id", "jobid", "jobidraw")
_STATES = "down, drain, maint, reserved, off or unknown"
IN_UTC = "times such as 2024-10-01T01:32:06Z"


class OutageRows:
    """Converter of rows of a table of outages: start, end, a word for the state, nodes (``all``: the whole machine).

    Parameters
    ----------
    columns
        Roles of the table's columns; without ``nodes``, every outage is of the whole machine.
    constant
        State of all rows, without a column of states.
    is_named
        True if the user gave it as a table of outages; otherwise rows of nodes in use are a warning.
    units
        Unit of numbers by role, where given.
    """

    def __init__(
        self,
        record: ScheduleRecord,
        clock: TableClock,
        table: Table,
        columns: Columns,
        constant: str | None,
        *,
        is_named: bool,
        units: Mapping[str, str],
    ) -> None:
        self._record, self._report, self._clock, self._table = record, record.report, clock, table
        self._columns, self._constant, self._is_named, self._units = columns, constant, is_named, units
        self._lists = NodeLists(record)

    def read_all(self) -> None:
        """Add the outages of all rows."""
        self._clock.use_format(first_cells(self._table, self._columns.by_role["start"]))
        for line_number, cells in rows_by_role(self._table, self._columns, self._report, OUTAGES_UNREADABLE):
            self._add(cells, line_number)

    def _add(self, cells: Mapping[str, Cell], line_number: int) -> None:
        """Add the outage of a row, or count the reason to skip it."""
        row_place = self._table.file.name, line_number
        state_word = _word(cells.get("outage_state")) if self._constant is None else self._constant
        node_state = outage_state(state_word)
        if node_state is None:
            self._report.skip("an outage with a state that is not known", *row_place, state_word)
            return self._warn(OUTAGES_UNREADABLE, row_place, state_word, cells)
        if node_state == NodeState.BUSY and not self._is_named:
            self._warn(IN_USE, row_place, state_word, cells)
        if node_state in (NodeState.IDLE, NodeState.BUSY):
            return self._report.skip("a state that is not an outage", *row_place, state_word)
        times_text = cell_texts(cells, "start", "end")
        try:
            start_time, end_time = self._times(cells)
        except (ValueError, OverflowError) as error:
            return skip_outage(self._report, "an outage that cannot be read", row_place, f"{times_text}: {error}")
        if start_time is None:
            return skip_outage(self._report, "an outage without a start", row_place, times_text)
        interval = self._clock.interval(start_time, end_time, None, row_place)
        if interval is None:
            return self._report.skip(SKIPPED, *row_place, times_text)
        node_ids: NDArray[np.int32] | None = None
        is_of_nodes = "nodes" in self._columns.by_role and first_word(cells.get("nodes")) not in _WHOLE_MACHINE
        if is_of_nodes and is_interval(*interval):
            try:
                node_ids, list_text = node_indices(cells["nodes"], self._lists)
            except ValueError as error:
                cell_value = f"{cell_texts(cells, 'nodes')}: {error}"
                return skip_outage(self._report, "an outage that cannot be read", row_place, cell_value)
            if not list_text:  # the whole machine would be "all"
                return skip_outage(self._report, "an outage without nodes", row_place, cells["nodes"])
        if interval[1] is not None and interval[1] < interval[0]:
            self._report.warn(OUTAGES_BACKWARDS, *row_place, times_text, why_no_amount=OUTAGE_UNKNOWN)
        self._clock.count(start_time, is_number(cells["start"]))
        self._record.add_outage(node_state, *interval, node_ids, *row_place)

    def _times(self, cells: Mapping[str, Cell]) -> Sequence[int | Wall | None]:
        return [self._clock.read(cells.get(role), self._units.get(role)) for role in ("start", "end")]

    def _warn(self, sentence: str, row_place: Place, value: object, cells: Mapping[str, Cell]) -> None:
        """Warn of a row that is skipped, with its nodes and times if they can be read."""
        try:
            start_time, end_time = self._times(cells)
            n_nodes = len(nodes_in(cells.get("nodes")))
        except (ValueError, OverflowError):
            start_time, end_time, n_nodes = None, None, 0
        start_us, end_us = (time.us if isinstance(time, Wall) else time for time in (start_time, end_time))
        self._report.warn(sentence, *row_place, value, why_no_amount=OUTAGE_UNKNOWN if start_us is None else "")
        if start_us is not None:
            self._report.set_row_amount(n_nodes, start_us, end_us)


def skip_outage(report: ImportReport, reason: str, row_place: Place, value: object) -> None:
    """Skip a row of an outage that cannot be read, with a warning."""
    report.skip_with_warning(reason, *row_place, value, warning=OUTAGES_UNREADABLE, why_no_amount=OUTAGE_UNKNOWN)


def _word(cell_value: Any) -> str:
    """Return a state in lower case, with ``_`` for spaces; empty if missing, but ``unknown`` is a state."""
    state_text = "_".join(str(cell_value).lower().split())
    return "" if is_missing(cell_value) and state_text != "unknown" else state_text


def outage_column(table: Table, mapped: str | None) -> str | None:
    """Return the column that marks a table as one of outages.

    A column ``outage_state``; or a column of states or events (or ``mapped``, the state given by the user) whose first
    cells are all words that no scheduler uses for jobs: down, drain, maintenance, ...
    """
    by_name = open_tables.by_plain_name(table.names)
    if "outage_state" in by_name:
        return by_name["outage_state"]
    for column in (mapped, *(by_name.get(column_name) for column_name in STATE_COLUMNS)):
        if column is None or column not in table.names:
            continue
        state_words = [_word(cell_value) for cell_value in first_cells(table, column)]
        if state_words and all(is_outage_word(state_word) for state_word in state_words):
            return column
    return None


def is_outage_word(state_word: str) -> bool:
    """Return whether a word is a state of unusable nodes, and never of jobs: ``failed`` may be either."""
    return any(_OF_NODES_ALONE.match(word_part.strip("_")) for word_part in state_word.split("+"))


def is_node_word(state_word: str) -> bool:
    """Return whether a word is a state of nodes, and never of a job that ran."""
    return is_outage_word(state_word) or state_word.rstrip(_MARKS) in _OF_NODES_IN_SERVICE


def outage_state(state_word: str) -> NodeState | None:
    """Return the state of a word, of this project or as usual elsewhere; ``None`` if unknown.

    Of several (``IDLE+DRAIN``) the most restrictive one.
    """
    states = [_one_state(word_part) for word_part in "_".join(state_word.lower().split()).split("+")]
    worst_state = next((part_state for part_state in _WORST_FIRST if part_state in states), None)
    return states[0] if worst_state is None else worst_state


def _one_state(state_word: str) -> NodeState | None:
    state_word = state_word.strip("_").rstrip(_MARKS)
    if state_word in _IN_SERVICE:
        return NodeState.IDLE
    return next((node_state for node_state, starts in _OUTAGE_WORDS if state_word.startswith(starts)), None)


_OUTAGE_WORDS: Sequence[tuple[NodeState, tuple[str, ...]]] = (
    (NodeState.DRAIN, ("drain", "drng", "maint_drain")),
    (NodeState.DOWN, ("down", "maint", "fail", "error", "outage", "broken", "offline", "not_responding", "reboot")),
    (NodeState.RESERVED, ("reserved", "resv")),
    (NodeState.OFF, ("off", "power")),
    (NodeState.UNKNOWN, ("unknown", "unk")),
    (NodeState.IDLE, ("idle", "resume")),
    (NodeState.BUSY, ("busy", "alloc", "mix", "comp")),
)


def node_indices(cell_value: Any, lists: NodeLists) -> tuple[NDArray[np.int32], str]:
    """Return the node indices of a cell, and the list as text; ``ValueError`` unless a list of nodes."""
    list_text = " ".join(map(str, cell_value)) if isinstance(cell_value, list) else str(cell_value)
    node_ids = lists.ids(list_text, lambda: nodes_in(cell_value))
    return node_ids, list_text if len(node_ids) else ""


def read_outages(log_file: LogFile, record: ScheduleRecord, options: ReadOptions) -> None:
    """Add the outages in a CSV, TSV or Parquet file to the record of a reader.

    Columns: ``node`` (or ``nodes``, ``host``, ...; a name, a list of nodes, or ``ALL``), ``start``, ``end`` (empty: out
    to the end of the log), ``state`` (down, drain, maint, reserved, off, unknown; without the column: down). Times as
    in tables of jobs, by ``timezone``, ``dst_fold``, ``time_unit`` and ``time_format`` of the options (the format only
    if the file's times have it). The other options concern the log, not this file.

    The given outages count as complete (``record.outages_known``).

    Raises
    ------
    InputError
        Another table, or no usable row.
    """
    table = open_tables.open_table(log_file)
    by_name = open_tables.by_plain_name(table.names)
    state = next((by_name[name] for name in ("outage_state", *STATE_COLUMNS) if name in by_name), None)
    if any(name in by_name for name in _JOBS) or ("id" in by_name and state is None):
        raise log_file.wrong_start(
            "this is a table of jobs, not of outages",
            value=", ".join(table.names[:60]),
            expected=f"columns node, start, end and state ({_STATES})",
            fix=_example(),
        )
    mapping = {} if state is None else {"outage_state": state}
    columns = Columns(table.names, mapping, open_tables.looks_like_count(table), is_outages=True)
    try:
        columns.check(log_file.name)
    except InputError as error:
        raise log_file.error(
            error.problem, row=error.row, value=error.value, expected=error.expected, fix=_example()
        ) from None
    report, n_before, rows_before = record.report, sum(record.report.kept.values()), record.report.rows_read
    skips_before = {reason: tally.count for reason, tally in report.skipped.items()}
    record.add_format("outage table")
    report.facts[f"columns of {log_file.short_name}"] = dict(columns.by_role)
    clock = TableClock(options, report, IN_UTC)
    OutageRows(record, clock, table, columns, None if state else "down", is_named=False, units={}).read_all()
    if report.rows_read > rows_before and sum(report.kept.values()) == n_before:
        raise _nothing(log_file, record, skips_before, clock)
    record.outages_known = True
    report.facts[f"time zone of {log_file.short_name}"] = clock.evidence()


def _nothing(log_file: LogFile, record: ScheduleRecord, skips_before: dict[str, int], clock: TableClock) -> InputError:
    counts = {reason: tally.count - skips_before.get(reason, 0) for reason, tally in record.report.skipped.items()}
    reason = max(counts, key=lambda name: (counts[name], name))
    examples = record.report.skipped[reason].examples
    example = next((example for example in examples if example.file == log_file.name), None)
    return log_file.error(
        f"no row of the table of outages can be used: {reason} ({counts[reason]:,} x)",
        row=example.row if example else None,
        value="" if example is None else example.value,
        expected=f"nodes, start, end and state ({_STATES}); times such as {READABLE_TIMES}",
        fix=clock.how_to_read() or _example(),
    )


def _example() -> str:
    return "a file that works:" + "".join(f"\n            {line_text}" for line_text in SMALLEST_FILE)
