"""Job intervals from rows of tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeVar

from bfreplay.datasets.ingest.delimited import Place
from bfreplay.datasets.ingest.hostlists import MOST_NODES
from bfreplay.datasets.ingest.occupancy.import_report import UNREADABLE, WHICH_NODES, ImportReport
from bfreplay.datasets.ingest.occupancy.schedule import NodeLists, ScheduleRecord
from bfreplay.datasets.ingest.occupancy.submissions import Submission
from bfreplay.datasets.ingest.occupancy.units import Held
from bfreplay.datasets.ingest.reader import ReadOptions, or_none
from bfreplay.datasets.ingest.table import table_cells as values
from bfreplay.datasets.ingest.table.open_tables import Columns, Table, rows_by_role
from bfreplay.datasets.ingest.table.table_cells import cell_texts, is_missing
from bfreplay.datasets.ingest.table.table_outages import is_node_word, node_indices
from bfreplay.datasets.ingest.table.table_times import SKIPPED, TableClock, Wall, is_interval, is_number
from bfreplay.datasets.log.metadata import UNITS
from bfreplay.datasets.times import HOUR_US, iso_utc
from bfreplay.documents import Cell
from bfreplay.errors import InputError

LISTS_UNREADABLE = "node lists that cannot be read were replaced by the number of nodes, which are assigned by rule"
ELAPSED_DIFFERS = "the running time in the log is not the end minus the start; start and end are used"
ELAPSED_UNREADABLE = "running times that cannot be read: nothing confirms the start and the end beside them"
ENDS_BY_ELAPSED = "rows have no end: their end is start plus running time"
WRITTEN_AT = (
    "running jobs disagree on when the table was written (start plus running time): a start or a running time is wrong"
)
WHOLE_HOURS = "running time and start-to-end differ by whole hours: the time zone (--tz) may be wrong"
BACKWARDS = "jobs that end before they start were skipped: their nodes look idle"
BACKWARDS_BY_LESS_THAN_AN_HOUR = (
    "jobs that end less than an hour before they start were skipped: clocks may have been set back in between, which "
    "the given zone does not do, so --tz may be wrong"
)
NO_START = "jobs with nodes and an end but without a start were skipped: their nodes look idle"
NO_NODES = "jobs that ran without nodes in the table were skipped"
NODE_STATES = (
    "rows of jobs have states of nodes (down, drain, idle, ...) and count as jobs; outages go into a table of their own"
)
OVER_WITHOUT_END = "finished jobs have no end: they count as running"
NO_JOB = "rows without a job's name or number were kept: in two files they count twice"

RELATIVE_BEFORE_US = 10 * 365 * 86_400_000_000
"""Times before 1980 count from the start of a log."""

PENDING = frozenset(
    {"pending", "pd", "queued", "q", "held", "hold", "waiting", "submitted", "requeue_hold", "configuring"}
)
RUNNING = frozenset({"running", "r", "run", "completing", "suspended"})
_CONDOR_RUNNING = dict.fromkeys("267", "running")  # also while it moves its output, and suspended
_WRITING_TAKES_US = 600_000_000
_MOST_WRITTEN = 100_000
_STEP = re.compile(r"(\d+(?:_\d+|\+\d+)?)\.(batch|extern|interactive|\d+)", re.ASCII)

_TIMES, _NODES = ("start", "end"), ("nodes", "node_count", "processors")
_T = TypeVar("_T")

MOST_REMEMBERED = 65_536
SEVERAL_TASKS = (
    "rows of the same job with the same start are taken as tasks of an array, each with nodes of its own; "
    "if they are one row written twice, its nodes count twice"
)


class JobRows:
    """Converter of the rows of a table of jobs.

    Parameters
    ----------
    columns
        Roles of the table's columns.
    units
        Unit of numbers by role, where given.
    has_processors
        True if a column that is not read, or another table, has processors.

    Raises
    ------
    InputError
        The table has only processors, and their number per node is not known; or it has none, and that is given.
    """

    def __init__(
        self,
        record: ScheduleRecord,
        options: ReadOptions,
        clock: TableClock,
        identities: Identities,
        table: Table,
        columns: Columns,
        units: Mapping[str, str],
        has_processors: bool = False,
    ) -> None:
        self._record, self._report, self._options, self._clock = record, record.report, options, clock
        self._identities, self._table, self._file, self._columns = identities, table, table.file.name, columns
        self._column_of = column_of = columns.by_role
        self._units, self._units_in_names = units, _units_in_names(column_of, units, options.time_unit)
        is_condor = {column_of.get("state"), column_of.get("nodes")} <= {"JobStatus", "LastRemoteHost", "RemoteHost"}
        self._state_codes = _CONDOR_RUNNING if is_condor else {}
        self._lists = NodeLists(record)
        self._parent = ""
        self._written: list[tuple[int, int, int, int]] = []  # when, line, start, nodes
        if record.units is not None and f"{record.units.kind}s" not in column_of:
            raise InputError(
                f"--unit {record.units.kind} needs a column with the {UNITS[record.units.kind]}s of each job",
                file=self._file,
                column="--map",
                value=", ".join(table.names[:60]),
                expected=f"{record.units.kind}s=COLUMN",
                fix=f"--map {record.units.kind}s=COLUMN",
            )
        if "node_count" not in column_of and "nodes" not in column_of and not options.procs_per_node:
            raise InputError(
                "the table has processors of jobs, and the processors of a node are not known",
                file=self._file,
                expected="the number of processors of one node",
                fix="give it: --procs-per-node 48",
            )
        if options.procs_per_node and "processors" not in column_of and not has_processors:
            column = column_of.get("node_count", column_of.get("nodes"))
            raise InputError(
                f"the number of processors of a node is given, and the column {column!r} is read as "
                + ("a number of nodes" if "node_count" in column_of else "a list of nodes"),
                file=self._file,
                column="--procs-per-node",
                value=options.procs_per_node,
                expected="a column of processors, to be divided by it",
                fix=f"if the column holds processors: --map processors={column!r}; otherwise omit --procs-per-node",
            )

    def read_all(self) -> None:
        """Add the intervals of all rows."""
        self._clock.use_format()
        for line_number, cells in rows_by_role(self._table, self._columns, self._report, UNREADABLE):
            self._add(cells, line_number)
            if self._report.needs_row_amount:
                self._note_row_amount(cells)
        self._warn_of_writing_times()

    def _note_row_amount(self, cells: Mapping[str, Cell]) -> None:
        """Note how much a skipped row concerns, if its nodes and its running time can be read; else the mean job."""
        with suppress(KeyError, TypeError, ValueError, OverflowError):
            n_nodes = self._count(cells) or len(values.nodes_in(cells["nodes"]))
            self._report.set_row_amount(n_nodes, 0, values.span_us(cells["elapsed"], self._units.get("elapsed", "s")))

    def _add(self, cells: Mapping[str, Cell], line_number: int) -> None:
        row_place, report = (self._file, line_number), self._report
        state = values.first_word(cells.get("state"))
        state = self._state_codes.get(state, state)
        job = self._job(cells.get("job"))
        if job and self._is_step(job):
            return report.skip("job step", *row_place, job)
        if state in PENDING:
            return report.skip("never started (pending)", *row_place, job)
        try:
            start_time = self._clock.read(cells.get("start"), self._units.get("start"))
            end_time = None if state in RUNNING else self._clock.read(cells.get("end"), self._units.get("end"))
        except (ValueError, OverflowError) as error:
            cell_value = f"{cell_texts(cells, *_TIMES)}: {error}"
            return report.skip_with_warning("a time that cannot be read", *row_place, cell_value)
        try:
            elapsed = self._elapsed_us(cells, end_time, row_place)
        except (ValueError, OverflowError) as error:
            cell_value = f"{cell_texts(cells, 'elapsed')}: {error}"
            return report.skip_with_warning("a running time that cannot be read", *row_place, cell_value)
        if end_time is not None and _us(end_time) == 0:
            end_time = None
        # an export that writes 0 for "not yet": only in logs that count from zero can a job start there
        if start_time is None or (_us(start_time) == 0 and (end_time is None or _us(end_time) > RELATIVE_BEFORE_US)):
            has_nodes = end_time is not None and not is_missing(cells.get("nodes"))
            if has_nodes and elapsed != 0 and not state.startswith("cancel"):
                report.warn(NO_START, *row_place, f"{job} {cell_texts(cells, *_TIMES)}")
            return report.skip("never started", *row_place, job)
        try:
            node_count = self._count(cells)
        except ValueError:
            cell_value = cell_texts(cells, *_NODES)
            return report.skip_with_warning("a number of nodes that cannot be read", *row_place, cell_value)
        slack = values.span_slack_us(cells.get("elapsed"), self._units.get("elapsed", "s"))
        interval = self._clock.interval(start_time, end_time, elapsed, row_place, slack)
        if interval is None:
            return report.skip(SKIPPED, *row_place, cell_texts(cells, *_TIMES))
        start_us, end_us = interval[0], self._end(cells, state, interval, elapsed, row_place)
        if state and is_node_word(state):
            report.warn(NODE_STATES, *row_place, state)
        if end_us is not None and elapsed is not None and end_time is not None:
            self._check_running_time(cells, end_us - start_us, elapsed, slack, isinstance(start_time, Wall), row_place)
        if not is_interval(start_us, end_us):
            if end_us is not None and end_us < start_us:
                is_less = isinstance(start_time, Wall) and start_us - end_us < HOUR_US
                sentence = BACKWARDS_BY_LESS_THAN_AN_HOUR if is_less else BACKWARDS
                report.warn(sentence, *row_place, cell_texts(cells, *_TIMES))
            return self._record.add_job(job, start_us, end_us, None, 1, None, *row_place)  # which counts the reason
        node_ids, list_text = None, ""
        if not is_missing(cells.get("nodes")):
            try:
                node_ids, list_text = node_indices(cells["nodes"], self._lists)
            except ValueError as error:
                cell_value = cell_texts(cells, *_NODES)
                if not node_count:
                    skip_reason = "a list of nodes that cannot be read"
                    return report.skip_with_warning(skip_reason, *row_place, f"{cell_value}: {error}")
                report.warn(LISTS_UNREADABLE, *row_place, cell_value, aside=WHICH_NODES)
        if not node_count and not list_text:
            report.warn(NO_NODES, *row_place, job)
            return report.skip("a job without nodes", *row_place, job)
        if not job and "job" in self._column_of:
            report.warn(NO_JOB, *row_place)
        self._clock.count(start_time, is_number(cells["start"]))
        self._parent = job
        identity = self._identities.of(job or f"{self._file} line {line_number}", start_us, list_text, *row_place)
        self._check_unit("limit", cells.get("limit"), row_place)
        time_limit_us = values.limit_us(cells.get("limit"), self._units.get("limit", "s"))
        limit_end_us = None if time_limit_us is None else start_us + time_limit_us
        eligible_us = self._eligible_us(cells, start_us - _us(start_time))
        partition, qos = (str(cells.get(role) or "") for role in ("partition", "qos"))
        held = Held(or_none(values.count_in, cells.get("gpus")), or_none(values.count_in, cells.get("cores")))
        self._record.add_job(
            identity,
            start_us,
            end_us,
            node_ids,
            node_count,
            limit_end_us,
            *row_place,
            submission=Submission(eligible_us, partition, qos, held),
        )
        if end_us is None and elapsed and len(self._written) < _MOST_WRITTEN:
            n_nodes = node_count or (0 if node_ids is None else len(node_ids))
            self._written.append((start_us + elapsed, line_number, start_us, n_nodes))

    def _eligible_us(self, cells: Mapping[str, Cell], offset_us: int) -> int | None:
        """Return the time from which a job waited, on the clock of its start, which is off by ``offset_us``."""
        with suppress(ValueError, OverflowError):
            eligible_time = self._clock.read(cells.get("submit"), self._units.get("submit"))
            return None if eligible_time is None or _us(eligible_time) == 0 else _us(eligible_time) + offset_us
        return None

    def _end(
        self,
        cells: Mapping[str, Cell],
        state: str,
        interval: tuple[int, int | None],
        running_us: int | None,
        row_place: Place,
    ) -> int | None:
        """Return the end of a job; without one, start plus running time of a finished job."""
        start_us, end_us = interval
        if end_us is None and state not in RUNNING:
            if running_us is not None and (state or "end" not in self._column_of):
                if "end" in self._column_of:
                    self._report.warn(ENDS_BY_ELAPSED, *row_place, f"{cell_texts(cells, 'job')} {state}")
                return start_us + running_us
            if state:
                self._report.warn(OVER_WITHOUT_END, *row_place, f"{cell_texts(cells, 'job')} {state}")
        return end_us

    def _check_running_time(
        self, cells: Mapping[str, Cell], span_us: int, elapsed_us: int, slack_us: int, is_local: bool, row_place: Place
    ) -> None:
        off_us = span_us - elapsed_us
        if span_us < 0 or abs(off_us) <= slack_us:
            return
        is_whole_hours = (off_us + slack_us) % HOUR_US <= 2 * slack_us < HOUR_US
        sentence = WHOLE_HOURS if is_local and is_whole_hours else ELAPSED_DIFFERS
        self._report.warn(sentence, *row_place, cell_texts(cells, "start", "end", "elapsed"))

    def _warn_of_writing_times(self) -> None:
        """Warn of running jobs whose start plus running time differs from the most frequent one."""
        written_times = sorted(time for time, *_ in self._written)
        middle = written_times[len(written_times) // 2] if written_times else 0
        late_rows = [written_row for time, *written_row in self._written if abs(time - middle) > _WRITING_TAKES_US]
        if 2 * len(late_rows) < len(written_times):
            for line, start_us, n_nodes in late_rows:
                hours = n_nodes * max(middle - start_us, 0) / HOUR_US
                self._report.warn(WRITTEN_AT, self._file, line, f"most of them: {iso_utc(middle)}", node_hours=hours)

    def _count(self, cells: Mapping[str, Cell]) -> int | None:
        if not is_missing(cells.get("node_count")):
            node_count = values.count_in(cells["node_count"])
        elif is_missing(cells.get("processors")) or not self._options.procs_per_node:
            return None
        else:
            self._clock.counts["by processors"] = 1
            node_count = -(-values.count_in(cells["processors"]) // self._options.procs_per_node)
        if node_count > MOST_NODES:
            raise ValueError("more nodes than any machine has")
        return node_count

    def _elapsed_us(self, cells: Mapping[str, Cell], end_time: int | Wall | None, row_place: Place) -> int | None:
        """Return the running time; if there is an end, an unreadable one is only a warning."""
        if is_missing(cells.get("elapsed")):
            return None
        self._check_unit("elapsed", cells["elapsed"], row_place)
        try:
            return values.span_us(cells["elapsed"], self._units.get("elapsed", "s"))
        except (ValueError, OverflowError):
            if end_time is None:
                raise
            self._report.warn(ELAPSED_UNREADABLE, *row_place, cell_texts(cells, "elapsed"))
            return None

    def _check_unit(self, role: str, cell_value: Any, row_place: Place) -> None:
        """Refuse a number without a unit from a column that seems not to be in seconds."""
        time_unit = self._units_in_names.get(role)
        if time_unit is None or not values.is_plain_number(cell_value):
            return
        column_name = self._column_of[role]
        raise InputError(
            f"the numbers of {column_name!r} would be read as seconds, and seem to be in another unit",
            file=row_place[0],
            row=f"line {row_place[1]}",
            column=column_name,
            value=cell_value,
            expected=f"the unit of the column: {', '.join(values.SPAN_UNITS)}",
            fix=f"give it: --map {role}={column_name}:{time_unit} (or --map {role}={column_name}:s)",
        )

    def _job(self, cell_value: Any) -> str:
        if is_missing(cell_value):
            return ""
        return str(int(cell_value)) if isinstance(cell_value, float) and cell_value.is_integer() else str(cell_value)

    def _is_step(self, job_id: str) -> bool:
        """Return whether a row is a job step; ``12.0`` is one only below ``12``, else a number that became a float."""
        step_match = _STEP.fullmatch(job_id)
        return step_match is not None and (not step_match[2].isdigit() or step_match[1] == self._parent)


def _units_in_names(columns: Mapping[str, str], units: Mapping[str, str], time_unit: str) -> dict[str, str]:
    """Return units other than seconds by role, guessed from names, where the user gave none."""
    units_by_role = {}
    for role in ("elapsed", "limit"):
        if role not in columns or role in units:
            continue
        unit = values.unit_in_name(columns[role])
        if unit is None and role == "elapsed" and "end" not in columns and time_unit != "s":
            unit = time_unit  # a start in it, and no end to check it
        if unit not in (None, "s"):
            units_by_role[role] = str(unit)
    return units_by_role


def _us(time: int | Wall) -> int:
    return time.us if isinstance(time, Wall) else time


class Identities:
    """Identities of intervals: distinct for different ones, equal for duplicates in overlapping exports.

    Rows of the same job and start with different nodes are parts of the job. Rows without lists are counted: the second
    such row of a file is the second task, also if another file repeats it. Only the last 65,536 jobs are remembered, as
    rows of one job and start are close in any order of time.
    """

    def __init__(self, report: ImportReport) -> None:
        self._report = report
        self._listed: dict[tuple[str, int], str] = {}
        self._counted: dict[tuple[str, int], int] = {}

    def next_file(self) -> None:
        """Begin a new file: count tasks from the first again."""
        self._counted.clear()

    def of(self, job_id: str, start_us: int, list_text: str, file_name: str, line_number: int) -> str:
        """Return the identity of an interval; ``list_text`` is the raw list, empty without one."""
        run_key = (job_id, start_us)
        if list_text:
            if run_key not in self._listed:
                _make_room(self._listed)
            return job_id if self._listed.setdefault(run_key, list_text) == list_text else f"{job_id} on {list_text}"
        n_earlier = self._counted.get(run_key, 0)
        if not n_earlier:
            _make_room(self._counted)
        self._counted[run_key] = n_earlier + 1
        if n_earlier:
            self._report.warn(SEVERAL_TASKS, file_name, line_number, job_id)
        return f"{job_id} task {n_earlier + 1}" if n_earlier else job_id


def _make_room(memory: dict[tuple[str, int], _T]) -> None:
    if len(memory) >= MOST_REMEMBERED:
        del memory[next(iter(memory))]
