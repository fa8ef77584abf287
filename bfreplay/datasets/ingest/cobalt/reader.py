"""Logs of Cobalt and of the Argonne Leadership Computing Facility (ALCF), which publishes them: jobs and outages."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum

from bfreplay.datasets.ingest.cobalt.cobalt_jobs import MACHINE_SIZES, NO_LOCATION, CobaltClock, CobaltJobs, location_of
from bfreplay.datasets.ingest.delimited import Place, check_text, first_line, names_in, rows_of, split
from bfreplay.datasets.ingest.local_times import wall_clock_us
from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.import_report import NOT_OURS, UNREADABLE
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.reader import Export, ReadOptions
from bfreplay.datasets.ingest.table.table_cells import count_in
from bfreplay.datasets.ingest.table.table_jobs import Identities
from bfreplay.datasets.ingest.table.table_outages import OUTAGE_UNKNOWN, OUTAGES_UNREADABLE, skip_outage
from bfreplay.datasets.ingest.table.table_times import SKIPPED
from bfreplay.datasets.log.states import NodeState
from bfreplay.errors import InputError

PART_UNKNOWN = "reservations for repairs on blocks of unknown nodes were skipped: those nodes look idle"
PART_DOWN = "outages of parts of the machine were skipped, because the log does not name them: those nodes look idle"
OTHER_MACHINE = "outages of another machine are in the log; only one machine is read"
END_UNKNOWN = "outages of the whole machine without an end end where the next job starts"

_YES = frozenset({"1", "1.0", "true", "t", "yes", "y"})
_NO = frozenset({"0", "0.0", "false", "f", "no", "n"})
_USED = frozenset({"complete", "completed", "active", "running"})
_REPAIR_WORDS = ("hw", "maint", "pm", "repair", "outage")


class CobaltOutages:
    """Converter of machine status, maintenance periods and reservations to outages.

    Attributes
    ----------
    open_ended
        Outages of the whole machine without an end: start in UTC microseconds, file and line.
    left_out_us
        Node-microseconds of repairs on unknown nodes.
    """

    def __init__(
        self, record: ScheduleRecord, clock: CobaltClock, machine: str | None, machine_size: int | None, policy: str
    ) -> None:
        self._record, self._report, self._clock = record, record.report, clock
        self._machine, self._size, self._policy = machine, machine_size, policy
        self.open_ended: list[tuple[int, Place]] = []
        self.left_out_us = 0

    def add_status(self, cells: Mapping[str, str], row_place: Place) -> None:
        """Add a row of a MACHINESTATUS file."""
        state_word = cells["IS_ALL_MACHINE_DOWN"].strip().lower()
        if self._is_of_another(cells, row_place):
            return
        if state_word not in _YES | _NO:
            return self._unreadable(f"{state_word!r} is neither yes nor no", row_place)
        interval_us = self._times(cells["START_TIMESTAMP"], cells.get("END_TIMESTAMP", ""), row_place)
        if interval_us is None:
            return
        if state_word in _YES:
            return self._add_down(interval_us, row_place)
        skip, start_text = self._report.skip_with_warning, cells["START_TIMESTAMP"]
        reason, why = "an outage of a part of the machine", "the log does not tell how many nodes were down"
        skip(reason, *row_place, start_text, warning=PART_DOWN, why_no_amount=why)

    def add_maintenance(self, cells: Mapping[str, str], row_place: Place) -> None:
        """Add a maintenance period of the whole machine."""
        interval_us = self._times(cells["START"], cells["END"], row_place, is_maintenance=True)
        if interval_us is not None:
            self._add_down(interval_us, row_place)

    def _add_down(self, interval_us: tuple[int, int | None], row_place: Place) -> None:
        """Add an outage of the whole machine; one without an end waits for ``close``."""
        if interval_us[1] is None:
            self.open_ended.append((interval_us[0], row_place))
        else:
            self._record.add_outage(NodeState.DOWN, *interval_us, None, *row_place)

    def add_reservation(self, cells: Mapping[str, str], row_place: Place) -> None:
        """Add a reservation. Only one of the whole machine has known nodes."""
        if self._is_of_another(cells, row_place):
            return
        reservation_name = cells["RESERVATION"].removeprefix("R.").lower()
        if cells["STATUS"].lower() not in _USED:
            return self._report.skip("a reservation that was not used", *row_place, cells["STATUS"])
        is_repair = reservation_name.replace("_", ".").replace("-", ".").split(".")[0] in _REPAIR_WORDS
        is_kept_idle = not is_repair and self._policy != "reserved"
        if is_kept_idle:
            self._report.skip("a reservation that is not for repairs", *row_place, cells["RESERVATION"])
        interval_us = self._times(cells["START"], cells["END"], row_place)
        if interval_us is None:
            return
        try:
            node_count = count_in(cells["NODES"])
            blocks = [location_of(block_name, None).block_size or 0 for block_name in cells["BLOCKS"].split(",")]
        except ValueError as error:
            return self._unreadable(str(error), row_place)
        if self._size is not None and max(node_count, *blocks) >= self._size:
            if is_kept_idle:
                return self._record.add_reservation(*interval_us, None)
            state = NodeState.DOWN if is_repair else NodeState.RESERVED
            return self._record.add_outage(state, *interval_us, None, *row_place)
        if is_kept_idle:
            return
        self._report.skip("a reservation on unknown nodes", *row_place, cells["BLOCKS"])
        if is_repair:
            self._report.warn(PART_UNKNOWN, *row_place, f"{node_count} nodes: {cells['BLOCKS']}")
            self._report.set_row_amount(node_count, *interval_us)
        if interval_us[1] is not None and interval_us[1] > interval_us[0]:
            self.left_out_us += node_count * (interval_us[1] - interval_us[0])

    def close(self, next_start: list[int | None]) -> None:
        """End the outages without an end where the next job starts (``next_start``, in order of their starts)."""
        for (start_us, row_place), end_us in zip(sorted(self.open_ended), next_start, strict=True):
            self._report.read(0)
            self._report.warn(END_UNKNOWN, *row_place)
            self._record.add_outage(NodeState.DOWN, start_us, end_us, None, *row_place)

    def _times(
        self, start_text: str, end_text: str, row_place: Place, *, is_maintenance: bool = False
    ) -> tuple[int, int | None] | None:
        try:
            start_time, end_time = self._clock.read(start_text), self._clock.read(end_text)
            if start_time is None:
                raise ValueError("no start")
        except ValueError:
            self._unreadable(f"{start_text} to {end_text}", row_place)
            return None
        interval = self._clock.interval(start_time, end_time, None, row_place)
        if interval is None:
            self._report.skip(SKIPPED, *row_place, f"{start_text} to {end_text}")
            return None
        if is_maintenance:
            self._clock.saw_maintenance(start_time)
        return interval

    def _is_of_another(self, cells: Mapping[str, str], row_place: Place) -> bool:
        machine = cells.get("MACHINE_NAME", "").strip().lower()
        if self._machine is None or not machine or machine == self._machine:
            return False
        self._report.skip("an outage of another machine", *row_place, machine)
        self._report.warn(OTHER_MACHINE, *row_place, machine, aside=NOT_OURS)
        return True

    def _unreadable(self, value: str, row_place: Place) -> None:
        skip_outage(self._report, "an outage that cannot be read", row_place, value)


_ADDRESS = "https://reports.alcf.anl.gov/data/"
_HOW = f"take ANL-ALCF-DJC-<MACHINE>_<from>_<to>.csv.gz from {_ADDRESS}"


class Kind(Enum):
    """Kind of the rows of a file."""

    JOBS = "alcf jobs"
    STATUS = "alcf machine status"
    RESERVATIONS = "cobalt reservations"
    MAINTENANCE = "maintenance periods"


Add = Callable[[Mapping[str, str], Place], None]

_RAW_JOB_NAMES = (
    "QUEUED_TIMESTAMP START_TIMESTAMP END_TIMESTAMP QUEUED_DATE_ID START_DATE_ID END_DATE_ID RUNTIME_SECONDS "
    "WALLTIME_SECONDS REQUESTED_CORES USED_CORES REQUESTED_NODES USED_NODES REQUESTED_CORE_HOURS "
    "REQUESTED_CORE_SECONDS USED_CORE_HOURS USED_CORE_SECONDS COBALT_PROJECT_NAME_GENID COBALT_USER_NAME_GENID "
    "MACHINE_PARTITION EXIT_CODE QUEUE_GENID MODE MACHINE_NAME RESID DELETED_BY_GENID JOBID PROJECT_NAME_GENID"
)
RAW_JOB_COLUMNS = tuple(_RAW_JOB_NAMES.split())
"""Columns of a raw Cobalt job row."""

_RESERVATION_NAMES = (
    "START END RESERVATION MACHINE_NAME NAME CYCLE USERS RESID ACTUAL_SECONDS PLANNED_SECONDS NODES CORE_HOURS "
    "CORE_SECONDS BLOCKS INDEX STATUS"
)
RESERVATION_COLUMNS = tuple(_RESERVATION_NAMES.split())
"""Columns of a raw Cobalt reservation row. The fifth to seventh are named by their content."""

MAINTENANCE_COLUMNS = ("START", "END")
"""Columns of a list of maintenance periods."""

_DATE_ID = re.compile(r"(?:19|20)\d{6}", re.ASCII)
_WHOLE = re.compile(r"\d{1,12}", re.ASCII)
_LOOKED_AT = 5


class CobaltReader:
    """Reader of job tables of ALCF (Mira, Theta, ThetaGPU, Cooley, Polaris, Aurora), raw Cobalt rows, and outages.

    - jobs: ``ANL-ALCF-DJC-<MACHINE>_*.csv`` (DIM_JOB_COMPOSITE), or raw Cobalt job rows of 27 columns, with or without
      their header;
    - ``ANL-ALCF-MACHINESTATUS-<MACHINE>_*.csv``, maintenance periods (start, end), reservations (16 columns).

    Stamps are UTC unless ``timezone`` says otherwise; when 20 or more maintenance periods are given, the hour of their
    starts in Chicago is checked. The size of the machine follows from its name unless ``n_nodes`` says otherwise. Nodes
    are known if ``LOCATION`` lists them; blocks (Mira) give only their number, cut lists give some.
    """

    name = "cobalt"
    title = "Cobalt and ALCF's public tables: jobs, machine status, maintenance periods, reservations"
    options = ("timezone", "dst_fold", "columns", "reservations")
    exports: Sequence[Export] = (
        Export(f"{_ADDRESS}: ANL-ALCF-DJC-<MACHINE>_<from>_<to>.csv.gz", "jobs of one machine and period"),
        Export(f"{_ADDRESS}: ANL-ALCF-MACHINESTATUS-<MACHINE>_<from>_<to>.csv.gz", "when the whole machine was down"),
    )

    def recognise(self, file: LogFile) -> str | None:
        """Return the kind of ALCF file, and the evidence."""
        try:
            layout = layout_of(file)
        except InputError:  # damaged: the kind cannot be seen
            return None
        return None if layout is None else f"{layout.kind.value}: {layout.why}"

    def read(self, files: Sequence[LogFile], record: ScheduleRecord, options: ReadOptions) -> None:
        """Read jobs and outages of one machine."""
        layouts = [(log_file, _layout(log_file, options)) for log_file in files]
        if not any(layout.kind is Kind.JOBS for _, layout in layouts):
            raise files[0].error(
                "the files have no jobs: " + ", ".join(layout.kind.value for _, layout in layouts),
                expected="a table of jobs, beside machine status, maintenance periods and reservations",
                fix=f"give the jobs of the same machine and time too: {_HOW}",
            )
        is_known = options.columns is not None and all(map(layout_of, files))
        record.report.note_no_effect("--columns", "the files are known by their columns", is_known)
        machine = _machine(layouts)
        machine_size = options.n_nodes or MACHINE_SIZES.get(machine or "")
        if machine_size is not None:
            record.set_machine_size(machine_size)
            size_text = f"{machine} has {machine_size:,} nodes (--nodes for another number)"
            record.report.facts["machine size"] = f"{machine_size:,} nodes, as given" if options.n_nodes else size_text
        record.cluster = machine or record.cluster
        clock = CobaltClock(options, record.report, _HOW)
        record.timezone = options.timezone or "UTC"
        outages = CobaltOutages(record, clock, machine, machine_size, options.reservations)
        identities = Identities(record.report)

        def read_all(kind: Kind, add_row: Add) -> None:
            for log_file, layout in layouts:
                if layout.kind is kind:
                    identities.next_file()
                    record.add_format(kind.value)
                    _read_one(log_file, layout, add_row, record)

        read_all(Kind.MAINTENANCE, outages.add_maintenance)
        read_all(Kind.STATUS, outages.add_status)
        read_all(Kind.RESERVATIONS, outages.add_reservation)
        open_starts = [start_us for start_us, _ in sorted(outages.open_ended)]
        jobs, n_before = CobaltJobs(record, clock, identities, machine, machine_size, open_starts), record.jobs.n_rows
        read_all(Kind.JOBS, jobs.add)
        if record.jobs.n_rows == n_before:
            raise record.report.nothing_usable(
                "no job in these files can be used",
                "there are no rows",
                file=files[0].name,
                expected="jobs with START_TIMESTAMP, END_TIMESTAMP and NODES_USED",
                fix=f"{_HOW}, as it is",
            )
        jobs.finish()
        outages.close(jobs.next_start)
        if outages.left_out_us:
            node_hours = outages.left_out_us / 3_600_000_000
            record.report.facts["reservations skipped"] = f"{node_hours:,.0f} node-hours on unknown nodes"
        record.report.facts["time zone"] = clock.evidence()


def _layout(log_file: LogFile, options: ReadOptions) -> Layout:
    check_text(log_file)
    layout = layout_of(log_file) or (options.columns and layout_of(log_file, options.columns))
    if not layout:
        raise log_file.wrong_start(
            "this is not one of ALCF's tables",
            value=first_line(log_file)[:160],
            expected="columns START_TIMESTAMP, END_TIMESTAMP, NODES_USED (or USED_NODES), MACHINE_NAME; or 27 cells of "
            "a raw Cobalt job, 16 of a reservation, 2 of a maintenance period",
            fix=f"{_HOW}; for rows without a header: --columns START_TIMESTAMP,END_TIMESTAMP,...",
        )
    duplicates = [name for name in ("START_TIMESTAMP", "END_TIMESTAMP", "LOCATION") if layout.names.count(name) > 1]
    if duplicates:
        raise log_file.error(
            f"two columns are called {duplicates[0]}",
            row="line 1",
            expected="each column once",
            fix="remove one of them",
        )
    return layout


def _machine(layouts: Sequence[tuple[LogFile, Layout]]) -> str | None:
    """Return the machine that most of the first jobs name, in lower case."""
    machine_names: Counter[str] = Counter()
    for log_file, layout in layouts:
        if layout.kind is Kind.JOBS:
            head_lines = enumerate(log_file.head_lines(), 1)
            if layout.has_header:
                next(head_lines, None)
            for csv_row in rows_of(head_lines, ",", len(layout.names)):
                cells = {} if csv_row.cells is None else dict(zip(layout.names, csv_row.cells, strict=True))
                if machine_name := cells.get("MACHINE_NAME", "").strip().lower():
                    machine_names[machine_name] += 1
    return max(machine_names, key=lambda machine_name: (machine_names[machine_name], machine_name), default=None)


def _read_one(log_file: LogFile, layout: Layout, add_row: Add, record: ScheduleRecord) -> None:
    report, is_of_jobs, header_text = record.report, layout.kind is Kind.JOBS, first_line(log_file)
    warning, why_no_amount = (UNREADABLE, "") if is_of_jobs else (OUTAGES_UNREADABLE, OUTAGE_UNKNOWN)
    if is_of_jobs and not {"LOCATION", "MACHINE_PARTITION"} & set(layout.names):
        report.facts["nodes of jobs"] = NO_LOCATION
    lines = ((number, text.removeprefix("\ufeff") if number == 1 else text) for number, text in log_file.lines())
    is_first = layout.has_header
    for row in rows_of(lines, ",", len(layout.names)):
        if is_first:
            is_first = row.text.startswith("#")
            continue
        report.read()
        row_place = log_file.name, row.line
        if row.cells is None:
            skip_reason = "a row with another number of columns"
            report.skip_with_warning(skip_reason, *row_place, row.text, warning=warning, why_no_amount=why_no_amount)
        elif layout.has_header and row.text == header_text:
            report.skip("the header again", *row_place, row.text)
        else:
            add_row(dict(zip(layout.names, row.cells, strict=True)), row_place)


@dataclass(frozen=True, slots=True)
class Layout:
    """Kind of a file, the evidence, and its columns.

    ``names`` are upper case; ``has_header`` is true if the first line is not a row.
    """

    kind: Kind
    why: str
    names: tuple[str, ...]
    has_header: bool


def layout_of(log_file: LogFile, columns: Sequence[str] | None = None) -> Layout | None:
    """Find the layout of a file, ``None`` if not of ALCF; ``columns`` are the names for a file without a header."""
    if columns is not None:
        column_names = tuple(column_name.strip().upper() for column_name in columns)
        kind_and_columns = _by_names(column_names)
        if kind_and_columns is None:
            return None
        return Layout(kind_and_columns[0], f"the given columns have {kind_and_columns[1]}", column_names, False)
    if b"\x00" in log_file.head():
        return None
    header_text = first_line(log_file)
    column_names = tuple(column_name.upper() for column_name in names_in(header_text, ","))
    kind_and_columns = _by_names(column_names)
    if kind_and_columns is not None:
        return Layout(kind_and_columns[0], f"line 1 has {kind_and_columns[1]}", column_names, True)
    if column_names == MAINTENANCE_COLUMNS and _all_rows(log_file, 1, _is_maintenance):
        return Layout(Kind.MAINTENANCE, _MAINTENANCE_ROWS, column_names, True)
    for kind, has_shape, kind_columns, why_known in (
        (Kind.JOBS, _is_raw_job, RAW_JOB_COLUMNS, _JOB_ROWS),
        (Kind.RESERVATIONS, _is_reservation, RESERVATION_COLUMNS, _RESERVATION_ROWS),
        (Kind.MAINTENANCE, _is_maintenance, MAINTENANCE_COLUMNS, _MAINTENANCE_ROWS),
    ):
        if _all_rows(log_file, 0, has_shape):
            return Layout(kind, why_known, kind_columns, False)
    return None


_JOB_ROWS = "rows have the 27 cells of raw Cobalt jobs: three stamps, three dates as numbers, ..."
_RESERVATION_ROWS = "rows have the 16 cells of Cobalt reservations: two stamps, a name, a machine, ..., a status"
_MAINTENANCE_ROWS = "every row is a start and an end, nothing else"


def _by_names(column_names: tuple[str, ...]) -> tuple[Kind, str] | None:
    name_set = set(column_names)
    if {"START_TIMESTAMP", "IS_ALL_MACHINE_DOWN"} <= name_set:
        return Kind.STATUS, "START_TIMESTAMP and IS_ALL_MACHINE_DOWN"
    has_count = name_set & {"NODES_USED", "USED_NODES"}
    has_more = name_set & {"COBALT_JOBID", "MACHINE_NAME", "MACHINE_PARTITION", "QUEUED_TIMESTAMP"}
    if {"START_TIMESTAMP", "END_TIMESTAMP"} <= name_set and has_count and has_more:
        evidence = ["START_TIMESTAMP", "END_TIMESTAMP", *sorted(has_count), *sorted(has_more)]
        return Kind.JOBS, " and ".join([", ".join(evidence[:-1]), evidence[-1]])
    if set(RESERVATION_COLUMNS) <= name_set:
        return Kind.RESERVATIONS, "the columns of reservations"
    return None


def _all_rows(log_file: LogFile, n_header_lines: int, has_shape: Callable[[list[str]], bool]) -> bool:
    """Return whether most of the first rows have a shape; spoilt rows do not change the kind of file."""
    row_texts = log_file.first_rows()[n_header_lines : n_header_lines + _LOOKED_AT]
    n_fitting = 0
    for text in row_texts:
        with suppress(csv.Error):
            n_fitting += has_shape(split(text.removeprefix("\ufeff"), ","))
    return 2 * n_fitting > len(row_texts)


def _begins_with_stamps(cells: list[str], n_columns: int) -> bool:
    return len(cells) == n_columns and all(wall_clock_us(cell) is not None for cell in cells[:2])


def _is_raw_job(cells: list[str]) -> bool:
    return _begins_with_stamps(cells, len(RAW_JOB_COLUMNS)) and all(map(_DATE_ID.fullmatch, cells[3:5]))


def _is_reservation(cells: list[str]) -> bool:
    is_one = _begins_with_stamps(cells, len(RESERVATION_COLUMNS))
    return is_one and all(map(_WHOLE.fullmatch, cells[7:10])) and cells[15].isalpha()


def _is_maintenance(cells: list[str]) -> bool:
    return _begins_with_stamps(cells, len(MAINTENANCE_COLUMNS))
