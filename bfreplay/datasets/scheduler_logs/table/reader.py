"""Tables of jobs of any make: CSV, TSV or Parquet, with a mapping of what each column is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from bfreplay.datasets.occupancy.record import OUTAGE_STATES, ScheduleRecord
from bfreplay.datasets.scheduler_logs.log_file import LogFile
from bfreplay.datasets.scheduler_logs.options import ReadOptions
from bfreplay.datasets.scheduler_logs.reader import Export
from bfreplay.datasets.scheduler_logs.table.cells import is_missing
from bfreplay.datasets.scheduler_logs.table.columns import Columns, check_mapping, plain
from bfreplay.datasets.scheduler_logs.table.csv_rows import CsvTable, delimiter_of, first_line, names_in, rows_of
from bfreplay.datasets.scheduler_logs.table.identity import Identities
from bfreplay.datasets.scheduler_logs.table.jobs import RELATIVE_BEFORE_US, UNREADABLE, JobRows
from bfreplay.datasets.scheduler_logs.table.outages import OutageRows, outage_state
from bfreplay.datasets.scheduler_logs.table.parquet_rows import ParquetTable, is_parquet
from bfreplay.datasets.scheduler_logs.table.times import Clock
from bfreplay.errors import InputError

_EXPORT = (
    "duckdb site.db \"COPY (SELECT job_id, start_time AT TIME ZONE 'Europe/Paris' AS start_time, "
    "end_time AT TIME ZONE 'Europe/Paris' AS end_time, num_nodes, nodelist FROM jobs) TO 'jobs.parquet'\""
)
_JOIN = (
    "duckdb -c \"COPY (SELECT allocation_id, begin_time, end_time, num_nodes, string_agg(node_name, ' ') AS nodelist "
    "FROM 'csm_allocation_history.csv' JOIN 'csm_allocation_node_history.csv' USING (allocation_id) "
    "GROUP BY ALL) TO 'jobs.parquet'\""
)
_LOOKED_AT = 50
_OWN_FORMATS = (  # columns by which other readers know their logs
    {"is_all_machine_down"},
    {"start_timestamp", "machine_name"},
    {"start_timestamp", "cobalt_jobid"},
    {"start_timestamp", "queued_timestamp"},
    {"starting_time", "finish_time"},
)


class TableReader:
    """CSV, TSV and Parquet files with a row for each job (or each job and node), and tables of outages.

    Options: ``mapping`` (role -> column; see ``columns.ROLES``), ``timezone`` and ``dst_fold`` for times without a
    zone, ``time_unit`` for numbers, ``procs_per_node`` where only processors are given, ``columns`` and ``delimiter``
    for files without a header. Times are ISO-8601 or numbers; elapsed time and limit are seconds or ``[D-]HH:MM:SS``.

    Nodes in a table of their own (CSM: ``csm_allocation_node_history``) are refused: joining two tables takes memory
    that grows with them. The message has the command that joins them beforehand.
    """

    name = "table"
    title = "Tables of jobs: CSV, TSV or Parquet, with --map role=column"
    exports: Sequence[Export] = (
        Export(_EXPORT, "a table of jobs in a database, its local times (here of Paris) as times in UTC"),
        Export(_JOIN, "LSF with CSM: each allocation with the nodes it had"),
    )

    def recognise(self, file: LogFile) -> str | None:
        """Say by which columns this is a table of jobs."""
        try:
            if is_parquet(file):
                parquet = ParquetTable(file)
                columns = Columns(parquet.names, {}, parquet.is_number)
                where = "the Parquet file has"
            else:
                if b"\x00" in file.head():
                    return None
                header = first_line(file)
                delimiter = delimiter_of(header)
                names = names_in(header, delimiter)
                if delimiter == "|" or len(names) < 3:
                    return None
                columns = Columns(names, {}, _counts_in_head(file, names, delimiter))
                where = "the first line has"
        except InputError:
            return None
        found = {plain(name) for name in columns.names}
        if not columns.is_table_of_jobs or columns.ambiguous or any(own <= found for own in _OWN_FORMATS):
            return None
        shown = ", ".join(f"{name} ({role})" for role, name in sorted(columns.by_role.items()))
        return f"{where} the columns of a table of jobs: {shown}"

    def read(self, files: Sequence[LogFile], record: ScheduleRecord, options: ReadOptions) -> None:
        """Read tables of jobs and of outages; see the class."""
        check_mapping(options.mapping)
        clock = Clock(options, record.lint, _EXPORT)
        identities = Identities(record.lint)
        intervals = sum(record.lint.kept.values())
        tables = [_opened(file, options) for file in files]
        everywhere = {name for table in tables for name in table.names}
        _check_outage_state(options.mapping.get("outage_state"), everywhere, files[0])
        for table in tables:
            identities.next_file()
            # a column that another of the tables has is not missing here: jobs and outages need not have the same
            mapping = {
                role: name
                for role, name in options.mapping.items()
                if role == "outage_state" or name in table.names or name not in everywhere
            }
            self._read_one(table, mapping, record, options, clock, identities)
        if sum(record.lint.kept.values()) == intervals:
            raise _nothing(files, record, clock)
        if clock.n_local:
            record.timezone = options.timezone or record.timezone
        if clock.n_numbers and not clock.n_local and not clock.n_zoned and record.last_stamp_us < RELATIVE_BEFORE_US:
            record.time_origin = "relative"
            record.lint.facts["time origin"] = "all times lie within ten years of zero: they count from the log's start"
        record.lint.facts["time zone"] = clock.evidence(options.timezone)

    def _read_one(
        self,
        table: CsvTable | ParquetTable,
        mapping: Mapping[str, str],
        record: ScheduleRecord,
        options: ReadOptions,
        clock: Clock,
        identities: Identities,
    ) -> None:
        file = table.file
        if isinstance(table, ParquetTable):
            columns = Columns(table.names, mapping, table.is_number)
            record.add_format("parquet table of jobs")
        else:
            columns = Columns(table.names, mapping, _counts_in_head(file, table.names, table.delimiter))
            record.add_format("csv table of jobs")
        constant = mapping.get("outage_state")
        is_constant = constant is not None and outage_state(constant) is not None
        is_outages = "outage_state" in columns.by_role or (is_constant and "job" not in columns.by_role)
        _check_join(columns, file)
        columns.check(file.name, outages=is_outages)
        roles = [role for role in columns.by_role if is_outages or role != "outage_state"]
        if is_outages and columns.by_role.get("nodes") is None and "node_count" in columns.by_role:
            roles.remove("node_count")
        _note_columns(record, file, columns, roles)
        rows: JobRows | OutageRows
        if is_outages:
            word = constant if "outage_state" not in columns.by_role else None
            rows = OutageRows(record, clock, file.name, set(roles), word)
        else:
            rows = JobRows(record, options, clock, identities, file.name, set(roles))
        for line, cells in _cells(table, columns, roles, record):
            rows.add(cells, line)


def _opened(file: LogFile, options: ReadOptions) -> CsvTable | ParquetTable:
    return ParquetTable(file) if is_parquet(file) else CsvTable(file, options.delimiter, options.columns)


def _cells(
    table: CsvTable | ParquetTable, columns: Columns, roles: Sequence[str], record: ScheduleRecord
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Line (or row) numbers and the cells of each role; rows that cannot be split are counted."""
    lint = record.lint
    names = [columns.by_role[role] for role in roles]
    if isinstance(table, ParquetTable):
        for number, values in table.rows(names):
            lint.read()
            yield number, dict(zip(roles, values, strict=True))
        return
    places = [table.names.index(name) for name in names]
    for row in table.rows():
        lint.read()
        if row.cells is None:
            lint.drop("a row with another number of columns", table.file.name, row.line, row.text)
            lint.doubt(UNREADABLE, table.file.name, row.line, row.text)
        elif table.is_header(row):
            lint.drop("the header again", table.file.name, row.line, row.text)
        elif table.is_padded:
            yield row.line, {role: row.cells[place].strip() for role, place in zip(roles, places, strict=True)}
        else:
            yield row.line, {role: row.cells[place] for role, place in zip(roles, places, strict=True)}


def _counts_in_head(file: LogFile, names: Sequence[str], delimiter: str) -> Callable[[str], bool]:
    """Tell of a column whether most of its first cells are plain numbers."""

    def are_counts(name: str) -> bool:
        place = list(names).index(name)
        rows = rows_of(enumerate(file.head_lines()[: 2 * _LOOKED_AT], 1), delimiter, len(names))
        cells = [row.cells[place].strip() for row in rows if row.cells is not None and not row.text.startswith("#")]
        cells = [cell for cell in cells if cell != name and not is_missing(cell)][:_LOOKED_AT]
        # most of them: a cell that is spoilt does not change what the column is
        return 2 * sum(cell.isascii() and cell.isdigit() for cell in cells) > len(cells)

    return are_counts


def _check_outage_state(word: str | None, names: set[str], file: LogFile) -> None:
    if word is None or word in names or outage_state(word) in OUTAGE_STATES:
        return
    raise InputError(
        "outage_state is neither a column nor a state of nodes that are not usable",
        file=file.name,
        column="--map",
        value=f"outage_state={word}",
        expected="the name of a column with states, or one word for all rows: down, drain, reserved, off or unknown",
        fix="--map outage_state=down",
    )


def _check_join(columns: Columns, file: LogFile) -> None:
    found = {plain(name) for name in columns.names}
    if {"allocation_id", "node_name"} <= found and "start" not in columns.by_role:
        raise InputError(
            "this table has the nodes of allocations but not their times: it must be joined with the other one first",
            file=file.name,
            row="line 1",
            value=", ".join(columns.names[:60]),
            expected="one table with times and nodes",
            fix=f"join them and read jobs.parquet: {_JOIN}",
        )


def _note_columns(record: ScheduleRecord, file: LogFile, columns: Columns, roles: Sequence[str]) -> None:
    taken: dict[str, Any] = {role: columns.by_role[role] for role in roles}
    limit = columns.limit_of_unknown_unit
    if limit is not None:
        taken["not used"] = f"{limit}: minutes or seconds? If seconds: --map limit={limit}"
    known = record.lint.facts.setdefault("columns", taken)
    if known != taken:
        record.lint.facts[f"columns of {file.name}"] = taken


def _nothing(files: Sequence[LogFile], record: ScheduleRecord, clock: Clock) -> InputError:
    dropped = sorted(record.lint.dropped.items(), key=lambda item: (-item[1].count, item[0]))
    reasons = "; ".join(f"{reason} ({tally.count:,} x)" for reason, tally in dropped[:3])
    example = next((tally.examples[0] for _, tally in dropped if tally.examples), None)
    fix = "say which column is what with --map role=column; an export that works: " + _EXPORT
    if clock.likely_unit is not None:
        fix = f"the numbers look like times in {clock.likely_unit}: --time-unit {clock.likely_unit}"
    return InputError(
        "no row of the table can be used" + (f": {reasons}" if reasons else ": it has only a header"),
        file=example.file if example is not None and example.file else files[0].name,
        row=None if example is None or example.line is None else f"line {example.line}",
        value=example.value if example is not None else "",
        expected="rows of jobs with start, end and nodes",
        fix=fix,
    )
