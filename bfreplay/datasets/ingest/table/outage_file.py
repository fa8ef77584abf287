"""A file of outages beside the log of any scheduler: which nodes were out, from when to when."""

from __future__ import annotations

from collections.abc import Sequence

from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.reader import Export, ReadOptions
from bfreplay.datasets.ingest.table.clock import READABLE_TIMES, Clock, how_to_read
from bfreplay.datasets.ingest.table.columns import Columns, plain
from bfreplay.datasets.ingest.table.open_tables import first_cells, looks_like_count, open_table, rows_by_role
from bfreplay.datasets.ingest.table.outages import OUTAGES_UNREADABLE, STATE_COLUMNS, OutageRows
from bfreplay.datasets.occupancy.record import ScheduleRecord
from bfreplay.errors import InputError

SMALLEST_FILE = (
    "node,start,end,state",
    "cn[17-18],2024-10-22T03:11:20Z,2024-11-11T00:00:00Z,down",
    "ALL,2024-12-02T06:00:00Z,2024-12-02T18:00:00Z,maint",
)
_JOBS = ("job", "job_id", "jobid", "jobidraw")
_STATES = "down, drain, maint, reserved, off or unknown"

SMALLEST_TABLE = (
    "job,start,end,nodes",
    "101,2024-10-01T01:32:06Z,2024-10-01T02:02:41Z,cn[1-4]",
    "102,2024-10-01T02:00:00Z,,cn5",
)
"""A table of jobs that needs no option; the second job is still running."""

IN_UTC = "times such as 2024-10-01T01:32:06Z"
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
    Export(JOIN, "LSF with CSM: each allocation with the nodes it had"),
)


def read_outages(file: LogFile, record: ScheduleRecord, options: ReadOptions) -> None:
    """Add the outages in a CSV, TSV or Parquet file to what a reader has read.

    Columns: ``node`` (or ``nodes``, ``host``, ...; a name, a list of nodes, or ``ALL``), ``start``, ``end`` (empty: out
    to the end of the log), ``state`` (down, drain, maint, reserved, off, unknown; without the column: down). Times as
    in tables of jobs, by ``timezone``, ``dst_fold``, ``time_unit`` and ``time_format`` of the options (the format only
    if the file's times are in it). The other options are about the log, not about this file.

    The outages given count as all that there were (``record.outages_known``).

    Raises
    ------
    InputError
        It is no such table, or none of its rows can be used.
    """
    table = open_table(file)
    known = {plain(name): name for name in reversed(table.names)}
    state = next((known[name] for name in ("outage_state", *STATE_COLUMNS) if name in known), None)
    if any(name in known for name in _JOBS) or ("id" in known and state is None):
        raise file.wrong_start(
            "this is a table of jobs, and should be one of outages",
            value=", ".join(table.names[:60]),
            expected=f"columns node, start, end and state ({_STATES})",
            fix=_example(),
        )
    columns = Columns(
        table.names, {} if state is None else {"outage_state": state}, looks_like_count(table), is_outages=True
    )
    try:
        columns.check(file.name)
    except InputError as error:
        raise InputError(
            error.problem, file=file.name, row=error.row, value=error.value, expected=error.expected, fix=_example()
        ) from None
    lint, kept, read = record.lint, sum(record.lint.kept.values()), record.lint.rows_read
    before = {reason: tally.count for reason, tally in lint.dropped.items()}
    record.add_format("outage table")
    short = file.name.rsplit("/", 1)[-1]
    lint.facts[f"columns of {short}"] = dict(columns.by_role)
    clock = Clock(options, lint, IN_UTC)
    clock.use_format_if_it_fits(first_cells(table, columns.by_role["start"]))
    roles = list(columns.by_role)
    rows = OutageRows(record, clock, file.name, set(roles), "down" if state is None else None, is_named=False)
    for line, cells in rows_by_role(table, columns, roles, lint, OUTAGES_UNREADABLE):
        rows.add(cells, line)
    if lint.rows_read > read and sum(lint.kept.values()) == kept:
        raise _nothing(file, record, before, clock)
    record.outages_known = True
    lint.facts[f"time zone of {short}"] = clock.evidence(options.timezone)


def _nothing(file: LogFile, record: ScheduleRecord, before: dict[str, int], clock: Clock) -> InputError:
    counts = {reason: tally.count - before.get(reason, 0) for reason, tally in record.lint.dropped.items()}
    reason = max(counts, key=lambda name: (counts[name], name))
    example = next((each for each in record.lint.dropped[reason].examples if each.file == file.name), None)
    fix = _example()
    if clock.likely_unit is not None:
        fix = f"the numbers look like times in {clock.likely_unit}: --time-unit {clock.likely_unit}"
    elif clock.unread:
        fix = how_to_read(clock.unread)
    return InputError(
        f"no row of the table of outages can be used: {reason} ({counts[reason]:,} x)",
        file=file.name,
        row=example.row if example else None,
        value="" if example is None else example.value,
        expected=f"nodes, start, end and state ({_STATES}); times such as {READABLE_TIMES}",
        fix=fix,
    )


def _example() -> str:
    return "a file that works:" + "".join(f"\n            {line}" for line in SMALLEST_FILE)


def works(*, is_parquet: bool) -> str:
    """End of a ``fix``: what works, for owners of Parquet files or of CSV."""
    if is_parquet:
        return "an export that works: " + DATABASE_IN_UTC
    return "a table that works:" + "".join(f"\n            {line}" for line in SMALLEST_TABLE)
