"""Tables in Parquet and CSV files: the roles of their columns, and the cells of chosen columns, row by row."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import islice
from typing import Any

from bfreplay.datasets.ingest.delimited import CUT_END, CsvTable, rows_of
from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.import_report import ImportReport
from bfreplay.datasets.ingest.table.table_cells import UNITS_OF, is_missing
from bfreplay.datasets.ingest.table.table_times import Instant, Wall
from bfreplay.documents import Cell
from bfreplay.errors import InputError

_ROLES = "job start end nodes node_count processors elapsed limit state submit partition qos gpus cores outage_state"
ROLES = tuple(_ROLES.split())
"""Roles of columns. ``outage_state`` marks a table of outages: a column with words, or one word for all rows."""

WHOLE_MACHINE = "ALL"
"""``--map nodes=ALL``: every outage of a table without a column of nodes is one of the whole machine."""


def check_mapping(mapping: Mapping[str, str]) -> None:
    """Raise ``InputError`` for an unknown role."""
    for role in mapping:
        if role not in ROLES:
            close = difflib.get_close_matches(role, ROLES, 1)
            raise InputError(
                "unknown role of a column",
                column="--map",
                value=f"{role}={mapping[role]}",
                expected="one of " + ", ".join(ROLES),
                fix=f"--map {close[0] if close else 'start'}={mapping[role]}",
            )


def split_units(
    mapping: Mapping[str, str], names: Container[str], file_name: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Return column by role, and unit by role where given; a column whose own name ends in ``:min`` is that column.

    Raises
    ------
    InputError
        Invalid unit for the role.
    """
    column_of_role, units = dict(mapping), {}
    for role, column_text in mapping.items():
        column_name, sign, unit = column_text.rpartition(":")
        if role not in UNITS_OF or not sign or column_text in names:
            continue
        if unit not in UNITS_OF[role]:
            if column_name not in names:
                continue  # an unknown column: reported as such
            raise InputError(
                f"{role} cannot be in that unit",
                file=file_name,
                column="--map",
                value=f"{role}={column_text}",
                expected=f"{role}=COLUMN:UNIT with one of the units {', '.join(UNITS_OF[role])}",
                fix=f"--map {role}={column_name}:{UNITS_OF[role][0]}",
            )
        column_of_role[role], units[role] = column_name, unit
    return column_of_role, units


def _split_names(names_by_role: Mapping[str, str]) -> dict[str, Sequence[str]]:
    return {role: names_text.split() for role, names_text in names_by_role.items()}


# Names in lower case with "_" for other characters than letters and digits; the first that exists counts.
_KNOWN = _split_names(
    {
        "job": "jobidraw job_id_raw cobalt_jobid job_id jobid allocation_id jid job id",
        "nodes": "nodelist node_list alloc_nodelist allocated_nodes exec_host hostlist host_list hosts node_names "
        "location nodes",
        "node_count": "num_nodes_alloc allocnodes nodes_alloc nnodes n_nodes nodes_used used_nodes num_nodes node_num "
        "node_count nodecount nnuma nnumr nodes_req num_nodes_req nodes_requested reqnodes nodes",
        "processors": "num_cores_alloc alloccpus ncpus cpu_num num_processors processors cores_used used_cores cnumat "
        "cnumr processors_req num_cores_req cores cpus",
        "elapsed": "elapsedraw elapsed run_time runtime runtime_seconds elapsed_s elapsed_seconds elapsed_time "
        "duration duration_s duration_seconds",
        "limit": "wallclock_req walltime_seconds",
        "state": "state job_state jobstate job_status status",
        "submit": "eligible eligible_time t_depend submit_time submit submission_time submit_timestamp "
        "queued_timestamp submitted_at time_submit t_submit qdate",
        "partition": "partition partition_name queue queue_name",
        "qos": "qos",
    }
)
# Two of these in one table are two meanings, not two spellings: only the user knows.
_TIMES = _split_names(
    {
        "start": "start_time start starttime start_timestamp begin_time time_start sdt t_run started_at time_started "
        "job_start begin",
        "end": "end_time end endtime end_timestamp finish_time time_end edt t_inactive ended_at finished_at "
        "time_ended completion_time job_end finish",
    }
)
# In a table of jobs a "host" may be where a job was submitted.
_NODES_OF_OUTAGES = (*_KNOWN["nodes"], "node", "node_name", "nodename", "hostname", "host")
_ROLES_OF_OUTAGES = ("start", "end", "nodes", "outage_state")
_CLOSE = 0.75
_REQUESTED = ("nnumr", "nodes_req", "num_nodes_req", "nodes_requested", "reqnodes")
_UNITS_UNKNOWN = ("time_limit", "timelimit", "timelimitraw", "timelimit_raw", "walltime")
_WORDS = re.compile(r"[^a-z0-9]+")


def plain(column_name: str) -> str:
    """Return a column name in lower case, with ``_`` for other characters than letters and digits."""
    return _WORDS.sub("_", column_name.strip().lower()).strip("_")


def by_plain_name(column_names: Sequence[str]) -> dict[str, str]:
    """Return names by plain name; of several columns the first."""
    return {plain(column_name): column_name for column_name in reversed(column_names)}


class Columns:
    """Roles of the columns of one table.

    Parameters
    ----------
    column_names
        Column names of the table.
    mapping
        Column name by role, as given by the user, without units.
    looks_like_count
        Returns whether a column holds plain numbers: ``nodes`` may be a list or a number.
    is_outages
        True for a table of outages: only roles of outages count, and ``node`` is the node that is out.
    """

    def __init__(
        self,
        column_names: Sequence[str],
        mapping: Mapping[str, str],
        looks_like_count: Callable[[str], bool],
        *,
        is_outages: bool = False,
    ) -> None:
        self.names = tuple(column_names)
        self.is_outages = is_outages
        self.by_role: dict[str, str] = {}
        self.ambiguous: dict[str, list[str]] = {}
        self.absent: dict[str, str] = {}
        by_plain = by_plain_name(column_names)
        of_table = [role for role in mapping if role in _ROLES_OF_OUTAGES or not is_outages]
        for role in (*(role for role in of_table if role != "outage_state"), "outage_state"):
            column_name = mapping.get(role, "")
            if column_name in self.names:
                self.by_role[role] = column_name
            elif role != "outage_state" and (role, column_name) != ("nodes", WHOLE_MACHINE):
                self.absent[role] = column_name
        for role, candidates in self._candidates().items():
            if role in self.by_role or role in self.absent:
                continue
            in_table = [by_plain[column_name] for column_name in candidates if column_name in by_plain]
            in_table = [column_name for column_name in in_table if column_name not in self.by_role.values()]
            if "nodes" in by_plain:
                is_count = looks_like_count(by_plain["nodes"])
                if (role == "nodes" and is_count) or (role == "node_count" and not is_count):
                    in_table = [column_name for column_name in in_table if column_name != by_plain["nodes"]]
            if role in _TIMES and len(in_table) > 1:
                self.ambiguous[role] = in_table
            elif in_table:
                self.by_role[role] = in_table[0]
        self.is_whole_machine = is_outages and "nodes" not in self.by_role and mapping.get("nodes") == WHOLE_MACHINE
        # only requested nodes, irrelevant beside a list of nodes held
        is_request = plain(self.by_role.get("node_count", "")) in _REQUESTED
        if "nodes" in self.by_role and "node_count" not in mapping and is_request:
            del self.by_role["node_count"]
        self.unread_processors = None
        if "node_count" in self.by_role and "processors" not in mapping:
            self.unread_processors = self.by_role.pop("processors", None)

    def _candidates(self) -> dict[str, Sequence[str]]:
        """Return the known column names by role."""
        if self.is_outages:
            return {"nodes": _NODES_OF_OUTAGES, **_TIMES}
        return {**_KNOWN, **_TIMES}

    @property
    def limit_of_unknown_unit(self) -> str | None:
        """Column of time limits of unknown unit."""
        if "limit" in self.by_role:
            return None
        return next((column_name for column_name in self.names if plain(column_name) in _UNITS_UNKNOWN), None)

    @property
    def missing(self) -> list[str]:
        """Missing parts of start, end and nodes."""
        missing = [] if "start" in self.by_role else ["start"]
        if "end" not in self.by_role and ("elapsed" not in self.by_role or self.is_outages):
            missing.append("end")
        has_nodes = any(role in self.by_role for role in ("nodes", "node_count", "processors"))
        return missing if has_nodes or self.is_whole_machine else [*missing, "nodes"]

    def check(self, file_name: str) -> None:
        """Raise ``InputError`` if a needed role has no column, or several; the fix is an option."""
        for role, name in self.absent.items():
            raise self._error(f"there is no column {name!r}, which was given as {role}", file_name, [role], name)
        duplicate = next((name for name in self.by_role.values() if self.names.count(name) > 1), None)
        if duplicate is not None:
            raise InputError(
                f"two columns are called {duplicate!r}",
                file=file_name,
                column=duplicate,
                expected="one column of that name",
                fix="rename one of them in the table, or name another column with --map",
            )
        for role, names in self.ambiguous.items():
            of_what = "outages" if self.is_outages else "jobs"
            raise self._error(f"{' and '.join(names)} could both be the {role} of {of_what}", file_name, [role], None)
        missing = self.missing
        if missing:
            problem = f"no column is known to be the {' or the '.join(missing)}"
            if missing == ["nodes"] and self.is_outages:
                problem = "this table of outages has no column of nodes"
            raise self._error(problem, file_name, missing, None)

    def _error(self, problem: str, file_name: str, roles: list[str], value: str | None) -> InputError:
        mappings: list[str] = []
        names_in_use = set(self.by_role.values())
        for role in roles:
            column = self.ambiguous[role][0] if role in self.ambiguous else self._closest(role, value, names_in_use)
            names_in_use.add(column)
            mappings.append(f"--map {role}={column}")
        names_text = ", ".join(self.names[:60]) + (", ..." if len(self.names) > 60 else "")
        fix = "name the columns: " + " ".join(mappings)
        if self.is_outages and "nodes" in roles:
            fix += f"; if the whole machine was out each time: --map nodes={WHOLE_MACHINE}"
        return InputError(
            problem,
            file=file_name,
            row="line 1",
            value=names_text,
            expected="columns for start, end and nodes (names of nodes, a list of them, or ALL) of outages"
            if self.is_outages
            else "columns for start, end (or elapsed) and nodes (or node_count, or processors) of jobs",
            fix=fix,
        )

    def _closest(self, role: str, wrong_name: str | None, names_in_use: set[str]) -> str:
        """Return the column with a name close to ``wrong_name``, or to names of that role; ``COLUMN`` if none is."""
        targets = [plain(wrong_name)] if wrong_name is not None else [role, *self._candidates().get(role, ())]
        scores = [
            (difflib.SequenceMatcher(None, target, plain(column_name)).ratio(), column_name)
            for column_name in self.names
            if column_name not in names_in_use
            for target in targets
        ]
        best_score = max(scores, key=lambda pair: pair[0], default=(0.0, ""))
        return best_score[1] if best_score[0] >= _CLOSE else "COLUMN"


MAGIC = b"PAR1"
BATCH_ROWS = 16_384
_LOOKED_AT = 50


def is_parquet(log_file: LogFile) -> bool:
    """Return whether the content begins like Parquet."""
    return log_file.head().startswith(MAGIC)


class ParquetTable:
    """Table in a Parquet file.

    Raises
    ------
    InputError
        Damaged, or compressed as a whole (Parquet must be read from its end).
    """

    def __init__(self, log_file: LogFile) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        from bfreplay.datasets.arrow_columns import text_columns

        self.file = log_file
        with log_file.path.open("rb") as stream:
            if stream.read(len(MAGIC)) != MAGIC:
                raise log_file.error(
                    "the Parquet file is compressed as a whole, so it cannot be read in pieces",
                    expected="a plain Parquet file (its columns are compressed inside)",
                    fix="unpack it first, e.g. with gunzip",
                )
        try:
            self._schema = pq.read_schema(log_file.path)
            self._parquet = pq.ParquetFile(log_file.path, read_dictionary=text_columns(self._schema))
        except (pa.ArrowException, OSError, ValueError) as error:
            raise self._damage_error(error) from error
        self.names = tuple(self._schema.names)

    def is_number(self, column_name: str) -> bool:
        """Return whether a column has numbers."""
        from bfreplay.datasets.arrow_columns import is_number

        return is_number(self._schema.field(column_name).type)

    def rows(self, column_names: Sequence[str]) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """Yield row numbers from 1, and the cells of the columns ``column_names`` in that order.

        Timestamps come as ``Instant`` (with a zone) or ``Wall`` (without), other values as Python values.

        Raises
        ------
        InputError
            The file is damaged.
        """
        import pyarrow as pa

        from bfreplay.datasets.arrow_columns import refuse_swollen_texts

        row_number = 0
        distinct_names = list(dict.fromkeys(column_names))
        batches = self._parquet.iter_batches(batch_size=BATCH_ROWS, columns=distinct_names, use_threads=False)
        while True:
            try:
                batch = next(batches, None)
                if batch is None:
                    return
                refuse_swollen_texts(batch, self.file.name)
                columns = [_values(batch.column(distinct_names.index(column_name))) for column_name in column_names]
            except (pa.ArrowException, OSError, ValueError, OverflowError) as error:  # text that is not UTF-8, too
                raise self._damage_error(error) from error
            for cells in zip(*columns, strict=True):
                row_number += 1
                yield row_number, cells

    def _damage_error(self, error: BaseException) -> InputError:
        return self.file.error(
            f"the Parquet file cannot be read: {' '.join(str(error).split())[:200]}",
            expected="a whole Parquet file",
            fix="write or copy the file again",
        )


def _values(arrow_column: Any) -> list[Any]:
    import pyarrow as pa
    import pyarrow.types as kinds

    arrow_type = arrow_column.type
    if kinds.is_timestamp(arrow_type):
        time_class = Wall if arrow_type.tz is None else Instant
        # safe=False: parts of a microsecond are cut off
        time_numbers = arrow_column.cast(pa.timestamp("us", arrow_type.tz), safe=False).cast(pa.int64()).to_pylist()
        return [None if time_number is None else time_class(time_number) for time_number in time_numbers]
    if kinds.is_duration(arrow_type):
        arrow_column = arrow_column.cast(pa.duration("us"), safe=False)
    if kinds.is_decimal(arrow_type):
        return [str(value) if isinstance(value, Decimal) else value for value in arrow_column.to_pylist()]
    return list(arrow_column.to_pylist())


Table = CsvTable | ParquetTable


def open_table(log_file: LogFile, delimiter: str | None = None, columns: Sequence[str] | None = None) -> Table:
    """Return the table in a file; ``InputError`` for another content."""
    return ParquetTable(log_file) if is_parquet(log_file) else CsvTable(log_file, delimiter, columns)


def first_cells(table: Table, column_name: str) -> list[Any]:
    """Return the first cells of a column that are not missing, at most 50."""
    if isinstance(table, ParquetTable):
        cell_values = [cells[0] for _, cells in islice(table.rows([column_name]), 2 * _LOOKED_AT)]
    else:
        place = table.names.index(column_name)
        head = enumerate(table.file.head_lines()[: 2 * _LOOKED_AT], 1)
        rows = [row for row in rows_of(head, table.delimiter, len(table.names)) if not row.text.startswith("#")]
        cell_values = [row.cells[place].strip() for row in rows if row.cells is not None and not table.is_header(row)]
    return [cell_value for cell_value in cell_values if not is_missing(cell_value)][:_LOOKED_AT]


def looks_like_count(table: Table) -> Callable[[str], bool]:
    """Return whether a column has plain numbers; in CSV, whether most of its first cells do."""
    if isinstance(table, ParquetTable):
        return table.is_number

    def are_counts(column_name: str) -> bool:
        cells = first_cells(table, column_name)
        # most of them: a spoilt cell does not change the kind of column
        return 2 * sum(1 for cell_text in cells if cell_text.isascii() and cell_text.isdigit()) > len(cells)

    return are_counts


def rows_by_role(
    table: Table, columns: Columns, report: ImportReport, unreadable: str
) -> Iterator[tuple[int, Mapping[str, Cell]]]:
    """Yield line (or row) numbers and the cells of each role; skip rows that cannot be split, with a warning."""
    roles, column_names = list(columns.by_role), list(columns.by_role.values())
    if isinstance(table, ParquetTable):
        for row_number, cell_values in table.rows(column_names):
            report.read()
            yield row_number, dict(zip(roles, cell_values, strict=True))
        return
    places = [table.names.index(column_name) for column_name in column_names]
    for csv_row in table.rows():
        report.read()
        if csv_row.cells is None:
            skip_reason = "a row with another number of columns"
            report.skip_with_warning(skip_reason, table.file.name, csv_row.line, csv_row.text, warning=unreadable)
        elif table.is_header(csv_row):
            report.skip("the header again", table.file.name, csv_row.line, csv_row.text)
        else:
            cells = [cell_text.strip() for cell_text in csv_row.cells] if table.is_padded else csv_row.cells
            yield csv_row.line, {role: cells[cell_position] for role, cell_position in zip(roles, places, strict=True)}
    if table.cut_line is not None:
        report.warn(CUT_END, table.file.name, table.cut_line)
