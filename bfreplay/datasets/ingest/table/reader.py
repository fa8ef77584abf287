"""Tables of jobs in any layout: CSV, TSV or Parquet, with a mapping of columns to roles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bfreplay.datasets.ingest.delimited import delimiter_of, first_line, names_in
from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.schedule import OUTAGE_STATES, ScheduleRecord
from bfreplay.datasets.ingest.reader import Export, ReadOptions
from bfreplay.datasets.ingest.table import open_tables, table_outages
from bfreplay.datasets.ingest.table.open_tables import Columns, check_mapping, plain, split_units
from bfreplay.datasets.ingest.table.table_jobs import RELATIVE_BEFORE_US, Identities, JobRows
from bfreplay.datasets.ingest.table.table_outages import OutageRows
from bfreplay.datasets.ingest.table.table_times import READABLE_TIMES, TableClock
from bfreplay.documents import Json
from bfreplay.errors import InputError

SMALLEST_TABLE = (
    "job,start,end,nodes",
    "101,2024-10-01T01:32:06Z,2024-10-01T02:02:41Z,cn[1-4]",
    "102,2024-10-01T02:00:00Z,,cn5",
)
"""Example table that needs no option; the second job is still running."""

PARQUET_IN_UTC = (
    "duckdb -c \"COPY (SELECT * REPLACE (start_time AT TIME ZONE 'Europe/Paris' AS start_time, "
    "end_time AT TIME ZONE 'Europe/Paris' AS end_time) FROM 'jobs.parquet') TO 'jobs-utc.parquet'\""
)
DATABASE_IN_UTC = (
    "duckdb site.db \"COPY (SELECT job_id, start_time AT TIME ZONE 'Europe/Paris' AS start_time, "
    "end_time AT TIME ZONE 'Europe/Paris' AS end_time, num_nodes, nodelist FROM jobs) TO 'jobs.parquet'\""
)
JOIN = (
    "duckdb -c \"COPY (SELECT allocation_id, begin_time, end_time, num_nodes, string_agg(node_name, ' ') AS nodelist "
    "FROM 'csm_allocation_history.csv' JOIN 'csm_allocation_node_history.csv' USING (allocation_id) "
    "GROUP BY ALL) TO 'jobs.parquet'\""
)
EXPORTS: Sequence[Export] = (
    Export(
        "\n".join(["cat > jobs.csv <<END", *SMALLEST_TABLE, "END"]),
        f"the smallest table that works (no end: still running). Times: {READABLE_TIMES}",
    ),
    Export(DATABASE_IN_UTC, "a table of jobs in a database, its local times (here of Paris) as times in UTC"),
    Export(PARQUET_IN_UTC, "the same of a Parquet file"),
    Export(JOIN, "LSF with CSM: each allocation with its nodes"),
)
_RELATIVE = "all times lie within ten years of zero: they count from the log's start"
_OWN_FORMATS = (  # columns by which other readers recognise their logs
    {"is_all_machine_down"},
    {"start_timestamp", "machine_name"},
    {"start_timestamp", "cobalt_jobid"},
    {"start_timestamp", "queued_timestamp"},
    {"starting_time", "finish_time"},
)


class TableReader:
    """Reader of CSV, TSV and Parquet files with a row for each job (or each job and node), and tables of outages.

    Options: ``mapping`` (role -> column, or column:unit; see ``mapping.ROLES``), ``timezone`` and ``dst_fold`` for
    times without a zone, ``time_unit`` for numbers and ``time_format`` for texts in the columns of times,
    ``procs_per_node`` where only processors are given, ``columns`` and ``delimiter`` for files without a header.
    Times are ISO-8601 or numbers; elapsed time and limit are seconds (or the unit given) or ``[D-]HH:MM:SS``.

    A table has outages if the user maps ``outage_state``, if it has a column of that name, or only states of nodes.

    Nodes in a separate table (CSM: ``csm_allocation_node_history``) are refused: joining two tables takes memory that
    grows with them. The message has the command that joins them beforehand.
    """

    name = "table"
    title = "Tables of jobs: CSV, TSV or Parquet, with --map role=column"
    options = (
        *("timezone", "dst_fold", "procs_per_node", "columns", "delimiter", "mapping", "time_unit", "time_format"),
        "unit",
    )
    exports: Sequence[Export] = EXPORTS

    def recognise(self, file: LogFile) -> str | None:
        """Return the columns by which this is a table of jobs, or of outages."""
        try:
            if open_tables.is_parquet(file):
                origin = "the Parquet file has"
            else:
                if b"\x00" in file.head():
                    return None
                header_text = first_line(file)
                delimiter = delimiter_of(header_text)
                if delimiter == "|" or len(names_in(header_text, delimiter)) < 3:
                    return None
                origin = "the first line has"
            table = open_tables.open_table(file)
            state = table_outages.outage_column(table, None)
            mapping = {} if state is None else {"outage_state": state}
            columns = Columns(table.names, mapping, open_tables.looks_like_count(table), is_outages=state is not None)
        except InputError:
            return None
        name_set = {plain(column_name) for column_name in columns.names}
        if columns.missing or columns.ambiguous or any(format_names <= name_set for format_names in _OWN_FORMATS):
            return None
        columns_text = ", ".join(f"{column_name} ({role})" for role, column_name in sorted(columns.by_role.items()))
        return f"{origin} the columns of a table of {'jobs' if state is None else 'outages'}: {columns_text}"

    def read(self, files: Sequence[LogFile], record: ScheduleRecord, options: ReadOptions) -> None:
        """Read tables of jobs and of outages; see the class."""
        check_mapping(options.mapping)
        tables = [open_tables.open_table(log_file, options.delimiter, options.columns) for log_file in files]
        has_parquet = any(isinstance(table, open_tables.ParquetTable) for table in tables)
        clock = TableClock(options, record.report, PARQUET_IN_UTC if has_parquet else table_outages.IN_UTC)
        identities = Identities(record.report)
        intervals = sum(record.report.kept.values())
        everywhere = {column_name for table in tables for column_name in table.names}
        mapping, units = split_units(options.mapping, everywhere, files[0].name)
        _check_outage_state(mapping.get("outage_state"), everywhere, files[0])
        for table in tables:
            identities.next_file()
            # a column in another of the tables is not missing here: jobs and outages may have different ones
            mapped = {
                role: column_name
                for role, column_name in mapping.items()
                if role == "outage_state" or column_name in table.names or column_name not in everywhere
            }
            units_here = {role: time_unit for role, time_unit in units.items() if role in mapped}
            self._read_one(table, mapped, units_here, record, options, clock, identities, len(tables) == 1)
        if sum(record.report.kept.values()) == intervals:
            raise _nothing(files, record, clock, is_parquet=has_parquet)
        counts = clock.counts
        if counts["local"]:
            record.timezone = options.timezone or record.timezone
        are_numbers = counts["numbers"] and not counts["local"] and not counts["zoned"]
        if are_numbers and record.last_stamp_us < RELATIVE_BEFORE_US:
            record.time_origin = "relative"
            record.report.facts["time origin"] = _RELATIVE
        record.report.facts["time zone"] = clock.evidence()
        note = record.report.note_no_effect
        note("--tz", "no time is local", options.timezone is not None and not counts["local"])
        note("--time-unit", "no start or end is a number", options.time_unit != "s" and not counts["numbers"])
        note("--time-format", "no start or end is text", options.time_format and not counts["formatted"])
        if has_parquet and (options.delimiter or options.columns) and all(map(open_tables.is_parquet, files)):
            record.report.facts["--delimiter, --columns"] = "have no effect: Parquet files have columns with names"
        is_unused = options.procs_per_node and not counts["by processors"]
        note("--procs-per-node", "no table gives the processors of jobs", is_unused)

    def _read_one(
        self,
        table: open_tables.Table,
        mapping: Mapping[str, str],
        units: Mapping[str, str],
        record: ScheduleRecord,
        options: ReadOptions,
        clock: TableClock,
        identities: Identities,
        is_only: bool,
    ) -> None:
        are_counts = open_tables.looks_like_count(table)
        columns = Columns(table.names, mapping, are_counts)
        _check_join(columns, table.file)
        state_option = mapping.get("outage_state")
        is_word = state_option is not None and state_option not in table.names and "job" not in columns.by_role
        word = state_option if is_word else None
        state_column = state_option if state_option in table.names else None
        if state_column is None and word is None:
            state_column = table_outages.outage_column(table, mapping.get("state"))
        state_source = state_column or word
        if state_source is not None:
            columns = Columns(table.names, {**mapping, "outage_state": state_source}, are_counts, is_outages=True)
        columns.check(table.file.name)
        table_kind = "parquet" if isinstance(table, open_tables.ParquetTable) else "csv"
        record.add_format(f"{table_kind} table of {'jobs' if state_source is None else 'outages'}")
        _note_columns(record, table.file, columns, units)
        if state_source is not None:
            is_named = state_option is not None
            OutageRows(record, clock, table, columns, word, is_named=is_named, units=units).read_all()
        else:
            has_processors = not is_only or columns.unread_processors is not None
            JobRows(record, options, clock, identities, table, columns, units, has_processors).read_all()


def _check_outage_state(state_word: str | None, column_names: set[str], log_file: LogFile) -> None:
    if state_word is None or state_word in column_names or table_outages.outage_state(state_word) in OUTAGE_STATES:
        return
    raise log_file.error(
        "outage_state is neither a column nor a state of nodes that are not usable",
        column="--map",
        value=f"outage_state={state_word}",
        expected="the name of a column with states, or one word for all rows: down, drain, reserved, off or unknown",
        fix="--map outage_state=down",
    )


def _check_join(columns: Columns, log_file: LogFile) -> None:
    name_set = {plain(column_name) for column_name in columns.names}
    if {"allocation_id", "node_name"} <= name_set and "start" not in columns.by_role:
        raise log_file.wrong_start(
            "this table has the nodes of allocations but not their times: it must be joined with the other one first",
            value=", ".join(columns.names[:60]),
            expected="one table with times and nodes",
            fix=f"join them and read jobs.parquet: {JOIN}",
        )


def _note_columns(record: ScheduleRecord, log_file: LogFile, columns: Columns, units: Mapping[str, str]) -> None:
    column_facts: dict[str, Json] = {**columns.by_role}
    column_facts |= {role: f"{name} ({units[role]})" for role, name in columns.by_role.items() if role in units}
    limit_column = columns.limit_of_unknown_unit
    if limit_column is not None:
        column_facts["not used"] = f"{limit_column}, of unknown unit: --map limit={limit_column}:min (or :s)"
    if columns.is_whole_machine:
        column_facts["nodes"] = "the whole machine, as given"
    all_facts = record.report.facts.setdefault("columns", column_facts)
    if all_facts != column_facts:
        record.report.facts[f"columns of {log_file.short_name}"] = column_facts


def _nothing(
    log_files: Sequence[LogFile], record: ScheduleRecord, clock: TableClock, *, is_parquet: bool
) -> InputError:
    example_lines = "".join(f"\n            {line_text}" for line_text in SMALLEST_TABLE)
    works = f"an export that works: {DATABASE_IN_UTC}" if is_parquet else f"a table that works:{example_lines}"
    fix = clock.how_to_read() or f"name the columns with --map role=column; {works}"
    is_unread = clock.unread and clock.likely_unit is None
    expected = f"times such as {READABLE_TIMES}" if is_unread else "rows of jobs with start, end and nodes"
    return record.report.nothing_usable(
        "no row of the table can be used", "it has only a header", file=log_files[0].name, expected=expected, fix=fix
    )
