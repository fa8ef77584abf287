"""``sacct -P`` and ``-p``: one row a run of a job, columns by name."""

from __future__ import annotations

from collections.abc import Iterator

from bfreplay.datasets.occupancy.lint import Lint
from bfreplay.datasets.occupancy.record import ScheduleRecord
from bfreplay.datasets.scheduler_logs.log_file import LogFile
from bfreplay.datasets.scheduler_logs.options import ReadOptions
from bfreplay.datasets.scheduler_logs.slurm.clock import (
    RELATIVE,
    Candidates,
    RelativeTimeError,
    SlurmClock,
    ZoneEvidence,
)
from bfreplay.datasets.scheduler_logs.slurm.fields import (
    ABSENT_TIMES,
    JobStepError,
    duration_us,
    is_known_state,
    is_pending_array,
    job_identity,
    job_state,
    minutes_us,
    seconds_us,
    whole,
)
from bfreplay.datasets.scheduler_logs.slurm.jobs import JobRow, JobRows
from bfreplay.datasets.scheduler_logs.slurm.psv import (
    BEFORE_HEADER,
    DELIMITERS,
    TOO_FEW_CELLS,
    TOO_MANY_CELLS,
    Layout,
    check_names_once,
    drop_unreadable,
    header_of,
    text_lines,
)
from bfreplay.errors import InputError

COMMAND = (
    "TZ=UTC sacct -a -X -D -P -S 2024-01-01 -E now -o JobIDRaw,JobID,Cluster,Partition,State,Submit,Eligible,Start,End,"
    "ElapsedRaw,Suspended,TimelimitRaw,NNodes,NodeList,Reservation,Restarts > jobs.psv"
)
"""What to run on the cluster."""

EXPECTED = "the columns JobIDRaw (or JobID), State, Start, End, and NodeList (or NNodes)"

XDMOD_COLUMNS = (
    "jobid", "jobidraw", "cluster", "partition", "qos", "account", "group", "gid", "user", "uid", "submit", "eligible",
    "start", "end", "elapsed", "exitcode", "state", "nnodes", "ncpus", "reqcpus", "reqmem", "reqtres", "alloctres",
    "timelimit", "nodelist", "jobname",
)  # fmt: skip
"""The columns that XDMoD has sites export without a header, in UTC."""

_IDENTITIES = ("jobidraw", "jobid")
_HOLDINGS = ("nodelist", "nnodes", "allocnodes")
_USED = ("jobidraw", "jobid", "state", "start", "end", "nodelist", "nnodes", "allocnodes", "elapsedraw", "elapsed")
_HEAD_ROWS = 200


def is_header(layout: Layout | None) -> bool:
    """Whether the columns are those of jobs in ``sacct``."""
    if layout is None:
        return False
    names = layout.names
    return (
        any(name in names for name in _IDENTITIES)
        and {"start", "end", "state"} <= set(names)
        and any(name in names for name in _HOLDINGS)
    )


def find_header(file: LogFile, delimiter: str | None) -> Layout | None:
    """Layout that one of the first lines gives; ``None`` if none is a header of ``sacct``."""
    for line in file.head_lines()[:20]:
        layout = header_of(line, delimiter)
        if is_header(layout):
            return layout
    return None


def xdmod_layout(file: LogFile) -> Layout | None:
    """Layout of ``sacct -n`` as XDMoD has sites run it, if the first lines have its shape; ``None`` otherwise."""
    lines = [line for line in file.head_lines()[:_HEAD_ROWS] if line.strip()]
    if not lines:
        return None
    for is_trailing in (False, True):
        layout = Layout.of(XDMOD_COLUMNS, "|", is_trailing)
        fitting = sum(_is_xdmod_row(layout.cells(line)) for line in lines)
        if 2 * fitting > len(lines):
            return layout
    return None


def _is_xdmod_row(cells: list[str] | None) -> bool:
    if cells is None:
        return False
    try:
        job_identity(cells[1], cells[0])
    except JobStepError:
        pass
    except ValueError:
        return False
    return (
        all(_looks_like_time(cells[i]) for i in range(10, 14))
        and duration_us(cells[14]) is not None
        and is_known_state(job_state(cells[16]))
        and all(whole(cells[i]) is not None for i in (17, 18))
    )


def _looks_like_time(text: str) -> bool:
    return text.lower() in ABSENT_TIMES or (len(text) == 19 and text[4] == text[7] == "-" and text[13] == ":")


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
    if options.columns is not None:
        layout = _named_layout(file, options.columns, options.delimiter)
        if not is_header(layout):
            raise InputError(
                "the columns named are not enough to tell which job held which nodes when",
                file=file.name,
                column="--columns",
                value=",".join(options.columns),
                expected=EXPECTED,
                fix="name all columns in the order of the file, as after sacct -o",
            )
        return layout, False, False
    layout_or_none = xdmod_layout(file)
    if layout_or_none is not None:
        return layout_or_none, False, True
    raise InputError(
        "this text has no header line of sacct, and the shape of its rows is not known",
        file=file.name,
        row="line 1",
        value=next(iter(file.head_lines()), "")[:200],
        expected=EXPECTED,
        fix=f"name the columns with --columns, or run this on your cluster (without -n): {COMMAND}",
    )


def _named_layout(file: LogFile, columns: tuple[str, ...], delimiter: str | None) -> Layout:
    line = next((line for line in file.head_lines() if line.strip()), "")
    if delimiter is None:
        delimiter = max(DELIMITERS, key=lambda each: (line.count(each) + 1 >= len(columns), -DELIMITERS.index(each)))
    is_trailing = line.endswith(delimiter) and line.count(delimiter) >= len(columns)
    return Layout.of(columns, delimiter, is_trailing)


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
            drop_unreadable(lint, TOO_MANY_CELLS if many else TOO_FEW_CELLS, file, number, line)
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
            drop_unreadable(lint, "unreadable JobID", file, line, text)
            return None
        times: list[Candidates | None] = []
        for index, reason in ((self.start, "unreadable Start"), (self.end, "unreadable End")):
            try:
                times.append(clock.read(cells[index]))
            except RelativeTimeError:
                drop_unreadable(lint, RELATIVE, file, line, text)
                return None
            except ValueError:
                drop_unreadable(lint, reason, file, line, text)
                return None
        if times[0] is None and is_pending_array(job_id):
            lint.drop("pending array", file.name, line, text)
            return None
        return JobRow(
            job,
            job_state(cells[self.state]),
            times[0],
            times[1],
            self._elapsed_us(cells),
            duration_us(cells[self.suspended]) if self.suspended >= 0 else None,
            None if times[1] is not None else self._limit_us(cells),
            whole(cells[self.count]) if self.count >= 0 else None,
            cells[self.nodes] if self.nodes >= 0 else None,
            cells[self.cluster] if self.cluster >= 0 else None,
            whole(cells[self.restarts]) if self.restarts >= 0 else None,
            cells[self.submit] if self.submit >= 0 else None,
            line,
            text,
        )

    def _elapsed_us(self, cells: list[str]) -> int | None:
        elapsed_us = seconds_us(cells[self.elapsed_raw]) if self.elapsed_raw >= 0 else None
        if elapsed_us is None and self.elapsed >= 0:
            elapsed_us = duration_us(cells[self.elapsed])
        return elapsed_us

    def _limit_us(self, cells: list[str]) -> int | None:
        limit_us = minutes_us(cells[self.limit_raw]) if self.limit_raw >= 0 else None
        if limit_us is None and self.limit >= 0:
            limit_us = duration_us(cells[self.limit])
        return limit_us
