"""``sacct -P`` and ``-p``: one row a run of a job, columns by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.datasets.ingest.slurm.cells import (
    JobStepError,
    duration_us,
    is_pending_array,
    job_identity,
    job_state,
    minutes_us,
    seconds_us,
    whole,
)
from bfreplay.datasets.ingest.slurm.clock import (
    RELATIVE,
    Candidates,
    RelativeTimeError,
    SlurmClock,
    ZoneEvidence,
)
from bfreplay.datasets.ingest.slurm.job_rows import RESTARTS_UNREADABLE, JobRow, JobRows
from bfreplay.datasets.ingest.slurm.psv import (
    BEFORE_HEADER,
    DELIMITERS,
    HOW,
    SACCT_COLUMNS,
    TOO_FEW_CELLS,
    TOO_MANY_CELLS,
    XDMOD_COLUMNS,
    Layout,
    check_names_once,
    header_of,
    known_rows,
    short,
    text_lines,
)
from bfreplay.datasets.occupancy.lint import Lint
from bfreplay.datasets.occupancy.record import ScheduleRecord
from bfreplay.errors import InputError

COMMAND = f"TZ=UTC sacct -a -X -D -P -S 2024-01-01 -E now -o {','.join(SACCT_COLUMNS)} > jobs.psv"
"""What to run on the cluster."""

EXPECTED = "the columns JobIDRaw (or JobID), State, Start, End (or ElapsedRaw), and NodeList (or NNodes)"

_NEEDED = (
    ("JobIDRaw (or JobID)", ("jobidraw", "jobid")),
    ("State", ("state",)),
    ("Start", ("start",)),
    ("End", ("end", "elapsedraw", "elapsed")),
    ("NodeList (or NNodes)", ("nodelist", "nnodes", "allocnodes")),
)
_USED = tuple(name for _, names in _NEEDED for name in names)
_OF_SACCT = frozenset(name.lower() for name in (*SACCT_COLUMNS, *XDMOD_COLUMNS, "AllocNodes"))
_LEAST_OF_SACCT = 3
_HEAD_ROWS = 200


def missing_columns(names: Sequence[str]) -> list[str]:
    """Which columns ``sacct`` has to give are not among ``names`` (lower case); where there are several, the best."""
    return [shown for shown, any_of in _NEEDED if not any(name in names for name in any_of)]


def is_header(layout: Layout | None) -> bool:
    """Whether the columns are those of jobs in ``sacct``."""
    return layout is not None and not missing_columns(layout.names)


def is_part_of_header(names: Sequence[str]) -> bool:
    """Whether these columns (lower case) are of ``sacct`` for the greater part; needed ones may be missing."""
    known = sum(name in _OF_SACCT for name in names)
    return known >= _LEAST_OF_SACCT and 2 * known >= len(names)


def refuse_missing(missing: Sequence[str], names: Sequence[str], file: LogFile) -> InputError:
    """Return the error for a table of ``sacct`` without columns that are needed."""
    is_one = len(missing) == 1
    instead = "; End can be told from ElapsedRaw too, which is not there either" if "End" in missing else ""
    return file.wrong_start(
        f"the {'column' if is_one else 'columns'} {', '.join(missing)} {'is' if is_one else 'are'} missing{instead}",
        value=",".join(names),
        expected=EXPECTED,
        fix=f"name {'it' if is_one else 'them'} too after sacct -o ({HOW})",
    )


def find_header(file: LogFile, delimiter: str | None) -> Layout | None:
    """Layout that one of the first lines gives; ``None`` if none is a header of ``sacct``."""
    for line in file.head_lines()[:20]:
        layout = header_of(line, delimiter)
        if is_header(layout):
            return layout
    return None


def layout_of(file: LogFile, options: ReadOptions) -> tuple[Layout, bool, bool]:
    """Layout, whether a header line gives it, and whether the layout is known to be written in UTC.

    Raises
    ------
    InputError
        There is no header, and nobody named the columns; or the columns named are not enough.
    """
    header = find_header(file, options.delimiter)
    if header is not None:
        return header, True, False
    known = known_rows(file)
    if options.columns is not None:
        return _named_layout(file, options.columns, options.delimiter, known and known[1].columns), False, False
    if known is not None:
        return known[0], False, known[1].is_utc
    raise file.wrong_start(
        "this text has no header line of sacct, and the shape of its rows is not known",
        value=short(next(iter(file.head_lines()), "")),
        expected=EXPECTED,
        fix=f"name the columns with --columns, or export them again with a header line (without -n): {HOW}",
    )


def _named_layout(
    file: LogFile, columns: tuple[str, ...], delimiter: str | None, known: tuple[str, ...] | None
) -> Layout:
    lines = [line for line in file.head_lines()[:_HEAD_ROWS] if line.strip()]
    line = next(iter(lines), "")
    if delimiter is None:
        delimiter = max(DELIMITERS, key=lambda each: (min(line.count(each) + 1, len(columns)), -DELIMITERS.index(each)))
    is_trailing = line.endswith(delimiter) and line.count(delimiter) >= len(columns)
    layout = Layout.of(columns, delimiter, is_trailing)
    if lines and all(layout.cells(each) is None for each in lines):
        n_cells = Counter(each.count(delimiter) + 1 for each in lines).most_common(1)[0][0]
        raise InputError(
            f"--columns does not fit the rows: {n_cells} cells, {len(columns)} names",
            file=file.name,
            row="line 1",
            column="--columns",
            value=short(line),
            expected="a name for each cell",
            fix=f"leave --columns out: by their shape these rows are {','.join(known)}"
            if known
            else f"give {n_cells} names, in the order of the cells, as after sacct -o",
        )
    if missing := missing_columns(layout.names):
        raise InputError(
            "the columns named are not enough to tell which job held which nodes when: "
            f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing",
            file=file.name,
            column="--columns",
            value=",".join(columns),
            expected=EXPECTED,
            fix="name all columns in the order of the file, as after sacct -o",
        )
    return layout


def read_sacct(
    file: LogFile, record: ScheduleRecord, options: ReadOptions, rows: JobRows, evidence: ZoneEvidence
) -> None:
    """Read one file of ``sacct`` text into ``rows``.

    Raises
    ------
    InputError
        Its columns are not known, or its times are local and nobody said where.
    """
    layout, has_header, is_utc = layout_of(file, options)
    clock = SlurmClock(file, options, evidence, COMMAND, is_utc)
    record.add_format("slurm sacct")
    for line, text, cells, columns in _rows(file, record.lint, layout, options.delimiter, has_header):
        row = columns.row(cells, line, text, clock, record.lint)
        if row is not None:
            rows.add(row, file, clock)
    rows.finish_file(file)


def _rows(
    file: LogFile, lint: Lint, layout: Layout, delimiter: str | None, has_header: bool
) -> Iterator[tuple[int, str, list[str], _Columns]]:
    columns = _Columns(layout, file)
    waits_for_header = has_header
    for number, line in text_lines(file, lint):
        cells = layout.cells(line)
        # exports that were put one after the other have a header in the middle, with columns of their own
        if waits_for_header or cells is None or not cells[columns.identity][:1].isdigit():
            header = header_of(line, delimiter if waits_for_header else layout.delimiter)
            if header is not None and is_header(header):
                layout, columns, waits_for_header = header, _Columns(header, file), False
                continue
        lint.read()
        if waits_for_header:
            lint.drop(BEFORE_HEADER, file.name, number, line)
        elif cells is None:
            many = line.count(layout.delimiter) >= len(layout.names)
            lint.leave_out(TOO_MANY_CELLS if many else TOO_FEW_CELLS, file.name, number, line)
        else:
            yield number, line, cells, columns


class _Columns:
    """Where in a row is what, and what it says."""

    def __init__(self, layout: Layout, file: LogFile) -> None:
        check_names_once(layout, _USED, file)
        self._file = file
        self.raw, self.job_id = layout.index("jobidraw"), layout.index("jobid")
        self.identity = self.raw if self.raw >= 0 else self.job_id
        self.state, self.start, self.end = (layout.index(name) for name in ("state", "start", "end"))
        self.elapsed_raw, self.elapsed = layout.index("elapsedraw"), layout.index("elapsed")
        self.suspended, self.submit = layout.index("suspended"), layout.index("submit")
        self.limit_raw, self.limit = layout.index("timelimitraw"), layout.index("timelimit")
        self.count, self.nodes = layout.index("nnodes", "allocnodes"), layout.index("nodelist")
        self.cluster, self.restarts = layout.index("cluster"), layout.index("restarts")

    def row(self, cells: list[str], line: int, text: str, clock: SlurmClock, lint: Lint) -> JobRow | None:
        """Return the row, or ``None`` if it was dropped: a step, an array that waits, or unreadable."""
        file = self._file
        job_id = cells[self.job_id] if self.job_id >= 0 else None
        try:
            job = job_identity(cells[self.raw] if self.raw >= 0 else None, job_id)
        except JobStepError:
            lint.drop("job step", file.name, line, text)
            return None
        except ValueError:
            lint.leave_out("unreadable JobID", file.name, line, text)
            return None
        times: list[Candidates | None] = []
        for index, reason in ((self.start, "unreadable Start"), (self.end, "unreadable End")):
            try:
                times.append(clock.read(cells[index]) if index >= 0 else None)
            except RelativeTimeError:
                lint.leave_out(RELATIVE, file.name, line, text)
                return None
            except ValueError:
                lint.leave_out(reason, file.name, line, text)
                return None
        if times[0] is None and is_pending_array(job_id):
            lint.drop("pending array", file.name, line, text)
            return None
        restarts = whole(cells[self.restarts]) if self.restarts >= 0 else None
        if restarts is None and self.restarts >= 0 and cells[self.restarts]:
            lint.doubt(RESTARTS_UNREADABLE, file.name, line, text)
        nodes = cells[self.nodes] if self.nodes >= 0 else None
        count = whole(cells[self.count]) if self.count >= 0 else None
        return JobRow(
            job,
            job_state(cells[self.state]),
            times[0],
            times[1],
            self._span_us(cells, self.elapsed_raw, seconds_us, self.elapsed),
            duration_us(cells[self.suspended]) if self.suspended >= 0 else None,
            self._span_us(cells, self.limit_raw, minutes_us, self.limit),
            count,
            nodes,
            cells[self.cluster] if self.cluster >= 0 else None,
            restarts,
            cells[self.submit] if self.submit >= 0 else None,
            line,
            text,
            self.count >= 0,
            self.end >= 0,
        )

    def _span_us(self, cells: list[str], raw: int, read: Callable[[str], int | None], other: int) -> int | None:
        """Microseconds in the cell ``raw``, as ``read`` has it, or else in the cell ``other``."""
        span_us = read(cells[raw]) if raw >= 0 else None
        return duration_us(cells[other]) if span_us is None and other >= 0 else span_us
