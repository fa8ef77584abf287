"""Which of the kinds of ALCF files a file is: by its columns, or by the shape of its rows."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from bfreplay.datasets.scheduler_logs.local_times import wall_clock_us
from bfreplay.datasets.scheduler_logs.log_file import LogFile
from bfreplay.datasets.scheduler_logs.table.csv_rows import first_line, names_in, split

RAW_JOB_COLUMNS = (
    "QUEUED_TIMESTAMP", "START_TIMESTAMP", "END_TIMESTAMP", "QUEUED_DATE_ID", "START_DATE_ID", "END_DATE_ID",
    "RUNTIME_SECONDS", "WALLTIME_SECONDS", "REQUESTED_CORES", "USED_CORES", "REQUESTED_NODES", "USED_NODES",
    "REQUESTED_CORE_HOURS", "REQUESTED_CORE_SECONDS", "USED_CORE_HOURS", "USED_CORE_SECONDS",
    "COBALT_PROJECT_NAME_GENID", "COBALT_USER_NAME_GENID", "MACHINE_PARTITION", "EXIT_CODE", "QUEUE_GENID", "MODE",
    "MACHINE_NAME", "RESID", "DELETED_BY_GENID", "JOBID", "PROJECT_NAME_GENID",
)  # fmt: skip
"""Columns of a raw Cobalt job row."""

RESERVATION_COLUMNS = (
    "START", "END", "RESERVATION", "MACHINE_NAME", "NAME", "CYCLE", "USERS", "RESID", "ACTUAL_SECONDS",
    "PLANNED_SECONDS", "NODES", "CORE_HOURS", "CORE_SECONDS", "BLOCKS", "INDEX", "STATUS",
)  # fmt: skip
"""Columns of a raw Cobalt reservation row. The fifth to seventh are named by what stands in them."""

MAINTENANCE_COLUMNS = ("START", "END")
"""Columns of a list of maintenance periods."""

_DATE_ID = re.compile(r"(?:19|20)\d{6}", re.ASCII)
_WHOLE = re.compile(r"\d{1,12}", re.ASCII)
_LOOKED_AT = 5


class Kind(Enum):
    """What the rows of a file are."""

    JOBS = "jobs"
    STATUS = "machine status"
    RESERVATIONS = "reservations"
    MAINTENANCE = "maintenance periods"


@dataclass(frozen=True, slots=True)
class Layout:
    """What a file is, how one can see it, and where its columns are.

    ``names`` are upper case; ``has_header`` says whether the first line is no row.
    """

    kind: Kind
    why: str
    names: tuple[str, ...]
    has_header: bool

    @property
    def places(self) -> Mapping[str, int]:
        """Column name -> position."""
        return {name: i for i, name in enumerate(self.names)}


def layout_of(file: LogFile, columns: Sequence[str] | None = None) -> Layout | None:
    """Tell what ``file`` is, ``None`` for nothing of ALCF's; ``columns`` are the names for a file without a header."""
    if columns is not None:
        names = tuple(name.strip().upper() for name in columns)
        named = _by_names(names)
        return None if named is None else Layout(named[0], f"the given columns have {named[1]}", names, False)
    if b"\x00" in file.head():
        return None
    header = first_line(file)
    names = tuple(name.upper() for name in names_in(header, ","))
    named = _by_names(names)
    if named is not None:
        return Layout(named[0], f"line 1 has {named[1]}", names, True)
    if names == MAINTENANCE_COLUMNS and _all_rows(file, 1, _is_maintenance):
        return Layout(Kind.MAINTENANCE, "every row is a start and an end, nothing else", MAINTENANCE_COLUMNS, True)
    for kind, shape, columns_of in (
        (Kind.JOBS, _is_raw_job, RAW_JOB_COLUMNS),
        (Kind.RESERVATIONS, _is_reservation, RESERVATION_COLUMNS),
        (Kind.MAINTENANCE, _is_maintenance, MAINTENANCE_COLUMNS),
    ):
        if _all_rows(file, 0, shape):
            return Layout(kind, _WHY[kind], columns_of, False)
    return None


_WHY = {
    Kind.JOBS: "rows have the 27 cells of raw Cobalt jobs: three stamps, three dates as numbers, ...",
    Kind.RESERVATIONS: "rows have the 16 cells of Cobalt reservations: two stamps, a name, a machine, ..., a status",
    Kind.MAINTENANCE: "every row is a start and an end, nothing else",
}


def _by_names(names: tuple[str, ...]) -> tuple[Kind, str] | None:
    found = set(names)
    if {"START_TIMESTAMP", "IS_ALL_MACHINE_DOWN"} <= found:
        return Kind.STATUS, "START_TIMESTAMP and IS_ALL_MACHINE_DOWN"
    has_count = found & {"NODES_USED", "USED_NODES"}
    has_more = found & {"COBALT_JOBID", "MACHINE_NAME", "MACHINE_PARTITION", "QUEUED_TIMESTAMP"}
    if {"START_TIMESTAMP", "END_TIMESTAMP"} <= found and has_count and has_more:
        shown = ["START_TIMESTAMP", "END_TIMESTAMP", *sorted(has_count), *sorted(has_more)]
        return Kind.JOBS, " and ".join([", ".join(shown[:-1]), shown[-1]])
    if set(RESERVATION_COLUMNS) <= found:
        return Kind.RESERVATIONS, "the columns of reservations"
    return None


def _all_rows(file: LogFile, skipped: int, has_shape: Callable[[list[str]], bool]) -> bool:
    """Whether most of the first rows have a shape: one that is spoilt does not change what the file is."""
    rows = [text for text in file.head_lines() if text.strip()][skipped : skipped + _LOOKED_AT]
    good = 0
    for text in rows:
        try:
            good += has_shape(split(text.removeprefix("\ufeff"), ","))
        except csv.Error:
            continue
    return 2 * good > len(rows)


def _is_raw_job(cells: list[str]) -> bool:
    return (
        len(cells) == len(RAW_JOB_COLUMNS)
        and all(wall_clock_us(cell) is not None for cell in cells[:2])
        and all(_DATE_ID.fullmatch(cell) is not None for cell in cells[3:5])
    )


def _is_reservation(cells: list[str]) -> bool:
    return (
        len(cells) == len(RESERVATION_COLUMNS)
        and all(wall_clock_us(cell) is not None for cell in cells[:2])
        and all(_WHOLE.fullmatch(cell) is not None for cell in cells[7:10])
        and cells[15].isalpha()
    )


def _is_maintenance(cells: list[str]) -> bool:
    return len(cells) == 2 and all(wall_clock_us(cell) is not None for cell in cells)
