"""``sacct -P`` and ``-p``: one row a run of a job, columns by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from bfreplay._compiled import IS_COMPILED
from bfreplay.datasets.ingest.local_times import RowPlace
from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.node_table import tres_counts
from bfreplay.datasets.ingest.occupancy.import_report import ImportReport
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.occupancy.submissions import Submission
from bfreplay.datasets.ingest.occupancy.units import Held
from bfreplay.datasets.ingest.reader import ReadOptions, or_none
from bfreplay.datasets.ingest.slurm import slurm_cells as fields
from bfreplay.datasets.ingest.slurm.command_tables import COMMAND_DELIMITERS, Layout, find_header, rows_below_headers
from bfreplay.datasets.ingest.slurm.ordinary_rows import OrdinaryRowReader
from bfreplay.datasets.ingest.slurm.sacct_rows import RESTARTS_UNREADABLE, JobRow, JobRows
from bfreplay.datasets.ingest.slurm.slurm_times import SlurmClock, TimeFormatError, ZoneEvidence
from bfreplay.datasets.log.metadata import UNITS
from bfreplay.datasets.times import US
from bfreplay.errors import InputError

_SACCT_NAMES = (
    "JobIDRaw JobID Cluster Partition QOS State Submit Eligible Start End ElapsedRaw Suspended TimelimitRaw NNodes "
    "NodeList Reservation AllocTRES Restarts"
)
SACCT_COLUMNS = tuple(_SACCT_NAMES.split())
"""Columns of the export command in messages."""

_XDMOD_NAMES = (
    "JobID JobIDRaw Cluster Partition QOS Account Group GID User UID Submit Eligible Start End Elapsed ExitCode "
    "State NNodes NCPUS ReqCPUS ReqMem ReqTRES AllocTRES Timelimit NodeList JobName"
)
XDMOD_COLUMNS = tuple(_XDMOD_NAMES.split())
"""Columns of XDMoD exports, without a header, in UTC."""

ABSENT_COLUMNS = "columns of sacct that are not there"
_HEAD_ROWS = 200


COMMAND = (
    "TZ=UTC sacct -a -X -D -P -S 2024-01-01 -E now "
    f"-o \"$(sacct -e | grep -iowE '{'|'.join(SACCT_COLUMNS)}' | paste -sd, -)\" > jobs.psv"
)
"""Command to run on the cluster: ``sacct -e`` lists the columns that its version has."""

EXPECTED = "the columns JobIDRaw (or JobID), State, Start, End (or ElapsedRaw), and NodeList (or NNodes)"

_REQUIRED_COLUMNS = (
    ("JobIDRaw (or JobID)", ("jobidraw", "jobid")),
    ("State", ("state",)),
    ("Start", ("start",)),
    ("End", ("end", "elapsedraw", "elapsed")),
    ("NodeList (or NNodes)", ("nodelist", "nnodes", "allocnodes")),
)
_USED = tuple(name for _, names in _REQUIRED_COLUMNS for name in names)
_OF_SACCT = frozenset(name.lower() for name in (*SACCT_COLUMNS, *XDMOD_COLUMNS, "AllocNodes"))
_CORES = frozenset({"alloccpus", "ncpus"})
_LEAST_OF_SACCT = 3
_T = TypeVar("_T")


def missing_columns(column_names: Sequence[str]) -> list[str]:
    """Return the needed columns of ``sacct`` that are not among these (lower case); of alternatives the best."""
    return [label for label, any_of in _REQUIRED_COLUMNS if not any(name in column_names for name in any_of)]


def is_header(layout: Layout) -> bool:
    """Return whether the columns are of jobs in ``sacct``."""
    return not missing_columns(layout.names)


def is_part_of_header(column_names: Sequence[str]) -> bool:
    """Return whether most of these columns (lower case) are of ``sacct``; needed ones may be missing."""
    n_matches = sum(column_name in _OF_SACCT for column_name in column_names)
    return n_matches >= _LEAST_OF_SACCT and 2 * n_matches >= len(column_names)


def refuse_missing(missing: Sequence[str], column_names: Sequence[str], log_file: LogFile) -> InputError:
    """Return the error for a table of ``sacct`` without needed columns."""
    is_one = len(missing) == 1
    instead = "; ElapsedRaw, which could replace End, is missing too" if "End" in missing else ""
    return log_file.wrong_start(
        f"the {'column' if is_one else 'columns'} {', '.join(missing)} {'is' if is_one else 'are'} missing{instead}",
        value=",".join(column_names),
        expected=EXPECTED,
        fix=f"name {'it' if is_one else 'them'} too after sacct -o ({fields.HOW})",
    )


@dataclass(frozen=True, slots=True)
class KnownRows:
    """Columns of rows of a known shape.

    Attributes
    ----------
    columns
        Names of ``sacct``.
    command
        Command that writes such rows, for the report.
    is_utc
        True if that command is known to write UTC.
    """

    columns: tuple[str, ...]
    command: str
    is_utc: bool = False


def _without(*names: str) -> tuple[str, ...]:
    return tuple(column_name for column_name in SACCT_COLUMNS if column_name not in names)


_OWN = "the export command of `bfreplay ingest slurm --how`, run with -n"
_KNOWN = (
    KnownRows(XDMOD_COLUMNS, "the XDMoD export with sacct -n", is_utc=True),
    *(
        KnownRows(columns, _OWN)
        for earlier in ((), ("AllocTRES", "QOS"))  # not in the command of earlier versions
        for columns in (
            _without(*earlier),
            _without("Suspended", *earlier),
            _without("JobID", *earlier),
            _without("JobID", "Suspended", *earlier),
            tuple(sorted(_without(*earlier))),  # in the order of sacct -e
            tuple(sorted(_without("Restarts", *earlier))),
        )
    ),
)


def recognise_rows(log_file: LogFile) -> tuple[Layout, KnownRows] | None:
    """Return the layout of rows without a header, if more than half of the first ones have a known shape."""
    row_texts = log_file.first_rows(_HEAD_ROWS)
    for candidate in _KNOWN:
        for is_trailing in (True, False):  # else a last column of free text would take the separator
            layout = Layout.from_names(candidate.columns, "|", is_trailing)
            if 2 * sum(_fits(layout.cells(line_text), layout) for line_text in row_texts) > len(row_texts):
                return layout, candidate
    return None


def _fits(cells: list[str] | None, layout: Layout) -> bool:
    if cells is None:
        return False
    cells_by_name = dict(zip(layout.names, cells, strict=True))
    try:
        fields.job_identity(cells_by_name["jobidraw"], cells_by_name.get("jobid"))
    except fields.JobStepError:
        pass
    except ValueError:
        return False
    checked_values = [check(cells_by_name[name]) for name, check in _CHECKS.items() if name in cells_by_name]
    return all(checked_value is not None and checked_value is not False for checked_value in checked_values)


def _is_time(cell_text: str) -> bool:
    if len(cell_text) == 19:
        return cell_text[4] == cell_text[7] == "-" and cell_text[13] == ":"
    return cell_text.lower() in fields.ABSENT_TIMES or (len(cell_text) == 10 and fields.whole(cell_text) is not None)


_CHECKS: dict[str, Callable[[str], int | None]] = {
    **dict.fromkeys(("submit", "eligible", "start", "end"), _is_time),
    **dict.fromkeys(("nnodes", "ncpus", "restarts", "elapsedraw"), fields.whole),
    **dict.fromkeys(("elapsed", "suspended"), fields.duration_us),
    "nodelist": lambda text: not text.isdigit(),  # else the number of nodes, of a layout with other columns before it
    "state": lambda text: fields.is_known_state(fields.job_state(text)),
}


def layout_of(log_file: LogFile, options: ReadOptions) -> tuple[Layout | None, bool]:
    """Return the layout of the rows, ``None`` if a header line gives it, and whether the layout is known to be UTC.

    Raises
    ------
    InputError
        No header and no named columns, or too few of them.
    """
    if find_header(log_file, options.delimiter, is_header) is not None:
        return None, False
    known = recognise_rows(log_file)
    if options.columns is not None:
        return _layout_of_columns(log_file, options.columns, options.delimiter, known and known[1].columns), False
    if known is not None:
        return known[0], known[1].is_utc
    raise log_file.wrong_start(
        "this text has no header line of sacct, and the shape of its rows is not known",
        value=fields.short(next(iter(log_file.head_lines()), "")),
        expected=EXPECTED,
        fix=f"name the columns with --columns, or export them again with a header line (without -n): {fields.HOW}",
    )


def _layout_of_columns(
    log_file: LogFile, columns: tuple[str, ...], delimiter: str | None, known_columns: tuple[str, ...] | None
) -> Layout:
    row_texts = log_file.first_rows(_HEAD_ROWS)
    line_text = next(iter(row_texts), "")
    if delimiter is None:
        delimiter = max(COMMAND_DELIMITERS, key=lambda candidate: min(line_text.count(candidate) + 1, len(columns)))
    is_trailing = line_text.endswith(delimiter) and line_text.count(delimiter) >= len(columns)
    layout = Layout.from_names(columns, delimiter, is_trailing)
    if row_texts and all(layout.cells(line_text) is None for line_text in row_texts):
        n_cells = Counter(line_text.count(delimiter) + 1 for line_text in row_texts).most_common(1)[0][0]
        raise log_file.error(
            f"--columns does not fit the rows: {n_cells} cells, {len(columns)} names",
            row="line 1",
            column="--columns",
            value=fields.short(line_text),
            expected="a name for each cell",
            fix=f"leave --columns out: by their shape these rows are {','.join(known_columns)}"
            if known_columns
            else f"give {n_cells} names, in the order of the cells, as after sacct -o",
        )
    if missing := missing_columns(layout.names):
        raise log_file.error(
            "the named columns do not give jobs, nodes and times: "
            f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing",
            column="--columns",
            value=",".join(columns),
            expected=EXPECTED,
            fix="name all columns in the order of the file, as after sacct -o",
        )
    return layout


def read_sacct(
    log_file: LogFile, record: ScheduleRecord, options: ReadOptions, rows: JobRows, evidence: ZoneEvidence
) -> None:
    """Read one file of ``sacct`` text into ``rows``.

    Raises
    ------
    InputError
        Unknown columns, or local times of unknown zone.
    """
    layout, is_utc = layout_of(log_file, options)
    clock = SlurmClock(log_file.name, options, evidence, COMMAND, is_utc)
    record.add_format("slurm sacct")
    header = layout or find_header(log_file, options.delimiter, is_header)
    if record.units is not None:
        _check_has_units(log_file, () if header is None else header.names, record.units.kind)
    ordinary = OrdinaryRowReader(record, rows, clock) if IS_COMPILED and record.units is None else None
    for line_number, line_text, cells, row_layout in rows_below_headers(
        log_file, record.report, options.delimiter, is_header, _USED, layout, ordinary
    ):
        # backwards: of two columns of one name the first counts
        by_name = dict(zip(reversed(row_layout.names), reversed(cells), strict=True))
        job_row = _row(by_name, (log_file.name, line_number, line_text), clock, record.report)
        if job_row is not None:
            rows.add(job_row, clock)
    rows.finish_file(log_file)
    if options.columns is not None and layout is None:
        record.report.facts["--columns"] = f"has no effect on {log_file.short_name}, which has a header line"
    checked = (name for name in SACCT_COLUMNS if name != "AllocTRES" and header is not None)
    absent_columns = [name for name in checked if header is not None and name.lower() not in header.names]
    if absent_columns:
        record.report.facts[ABSENT_COLUMNS] = f"{', '.join(absent_columns)}: what they tell is not checked"


def _check_has_units(log_file: LogFile, column_names: Sequence[str], unit: str) -> None:
    """Raise ``InputError`` for a table without the columns for ``--unit``."""
    if "alloctres" not in column_names and (unit == "gpu" or not _CORES.intersection(column_names)):
        raise log_file.error(
            f"--unit {unit} needs the column AllocTRES",
            value=",".join(column_names),
            expected=f"how many {UNITS[unit]}s each job held, in AllocTRES"
            + (" or AllocCPUS" if unit == "core" else ""),
            fix=f"add it to sacct -o ({fields.HOW})",
        )


def _held(cells: Mapping[str, str]) -> Held:
    gpus, cores = tres_counts(cells.get("alloctres", ""))
    others = (fields.whole(cells[name]) for name in ("alloccpus", "ncpus") if name in cells)
    return Held(gpus, next(others, None) if cores is None else cores)


def _row(cells: Mapping[str, str], row_place: RowPlace, clock: SlurmClock, report: ImportReport) -> JobRow | None:
    """Return the row, or ``None`` if it was skipped: a step, an array that waits, or unreadable."""
    skip_reason = "unreadable JobID"
    try:
        job_identity = fields.job_identity(cells.get("jobidraw"), cells.get("jobid"))
        skip_reason = "unreadable Start"
        start_time = _of_cell(cells, "start", clock.read)
        skip_reason = "unreadable End"
        end_time = _of_cell(cells, "end", clock.read)
    except fields.JobStepError:
        report.skip("job step", *row_place)
        return None
    except ValueError as error:
        report.skip_with_warning(str(error) if isinstance(error, TimeFormatError) else skip_reason, *row_place)
        _note_row_amount(cells, report)
        return None
    if start_time is None and "_[" in cells.get("jobid", ""):  # array tasks that have not started: 123_[5-9%2]
        report.skip("pending array", *row_place)
        return None
    restarts = _of_cell(cells, "restarts", fields.whole)
    if restarts is None and cells.get("restarts"):
        report.warn(RESTARTS_UNREADABLE, *row_place)
    count_column = fields.count_column(cells)
    return JobRow(
        job_identity,
        fields.job_state(cells["state"]),
        start_time,
        end_time,
        _span_us(cells, "elapsedraw", US, "elapsed"),
        _of_cell(cells, "suspended", fields.duration_us),
        _span_us(cells, "timelimitraw", 60 * US, "timelimit"),
        _of_cell(cells, count_column, fields.whole),
        cells.get("nodelist"),
        cells.get("cluster"),
        restarts,
        cells.get("submit"),
        row_place,
        has_count=count_column in cells,
        has_end="end" in cells,
        submission=_submission(cells, clock),
    )


def _submission(cells: Mapping[str, str], clock: SlurmClock) -> Submission:
    return Submission(_eligible_us(cells, clock), cells.get("partition", ""), cells.get("qos", ""), _held(cells))


def _eligible_us(cells: Mapping[str, str], clock: SlurmClock) -> int | None:
    """Return the time from which a job could have started, the first of two in the night when clocks go back."""
    eligible_times = or_none(clock.read, cells.get(fields.eligible_column(cells), ""))
    return eligible_times[0] if eligible_times else None


def _note_row_amount(cells: Mapping[str, str], report: ImportReport) -> None:
    """Note how much a row concerns that cannot be read otherwise, if it has a number of nodes and a running time."""
    n_nodes = _of_cell(cells, fields.count_column(cells), fields.whole)
    span_us = _span_us(cells, "elapsedraw", US, "elapsed")
    if n_nodes is not None and span_us is not None:
        report.set_row_amount(n_nodes, 0, span_us)


def _of_cell(cells: Mapping[str, str], column_name: str, read: Callable[[str], _T | None]) -> _T | None:
    """Return a cell read by ``read``; ``None`` if the table has no such column."""
    return read(cells[column_name]) if column_name in cells else None


def _span_us(cells: Mapping[str, str], raw_column: str, unit_us: int, text_column: str) -> int | None:
    """Return the microseconds of ``raw_column`` if a whole number (not UNLIMITED), else of ``text_column``."""
    whole_number = _of_cell(cells, raw_column, fields.whole)
    return _of_cell(cells, text_column, fields.duration_us) if whole_number is None else whole_number * unit_us
