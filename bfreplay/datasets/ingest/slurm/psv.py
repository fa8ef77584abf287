"""Tables of Slurm's commands: a header or a known shape, a separator, one row a line; and what spoils them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.slurm.cells import (
    ABSENT_TIMES,
    JobStepError,
    duration_us,
    is_known_state,
    job_identity,
    job_state,
    whole,
)
from bfreplay.datasets.occupancy.lint import Lint
from bfreplay.errors import InputError

HOW = "`bfreplay ingest slurm --how` prints the command to run on your cluster"
"""For messages about single rows or small mistakes, in which the command itself would take most of the space."""

DELIMITERS = ("|", "\t", ";", ",", "^")
CUT_END = "the last line has no end: the file may have been cut"
TOO_MANY_CELLS = "more cells than columns (a separator inside JobName or Comment: do not export those)"
TOO_FEW_CELLS = "fewer cells than columns"
BEFORE_HEADER = "a line before the header"
_AMBIGUOUS = "\0"
_FREE_TEXT = frozenset(
    {"jobname", "comment", "admincomment", "systemcomment", "submitline", "workdir", "reason", "extra", "stdout",
     "stdin", "stderr", "container"}
)  # fmt: skip
_LONGEST_SHOWN = 100
_WITH_COMMAS = frozenset({"nodelist", "nodenames", "nodes", "flags", "licenses", "constraints", "qosreq"})

SACCT_COLUMNS = (
    "JobIDRaw", "JobID", "Cluster", "Partition", "State", "Submit", "Eligible", "Start", "End", "ElapsedRaw",
    "Suspended", "TimelimitRaw", "NNodes", "NodeList", "Reservation", "Restarts",
)  # fmt: skip
"""The columns of the command that the messages give."""

XDMOD_COLUMNS = (
    "JobID", "JobIDRaw", "Cluster", "Partition", "QOS", "Account", "Group", "GID", "User", "UID", "Submit", "Eligible",
    "Start", "End", "Elapsed", "ExitCode", "State", "NNodes", "NCPUS", "ReqCPUS", "ReqMem", "ReqTRES", "AllocTRES",
    "Timelimit", "NodeList", "JobName",
)  # fmt: skip
"""The columns that XDMoD has sites export without a header, in UTC."""

_HEAD_ROWS = 200


@dataclass(frozen=True, slots=True)
class Layout:
    """Columns of a table.

    Attributes
    ----------
    names
        In lower case, in order.
    delimiter
        What separates the cells.
    is_trailing
        A separator stands at the end of each line too (``sacct -p``).
    free
        First and last of the columns whose text may hold a separator.
    """

    names: tuple[str, ...]
    delimiter: str
    is_trailing: bool = False
    free: tuple[int, int] | None = None

    @classmethod
    def of(cls, names: Sequence[str], delimiter: str, is_trailing: bool = False) -> Layout:
        """Return the layout with these columns, named in any case."""
        lower = tuple(name.strip().lower() for name in names)
        free = [
            i
            for i, name in enumerate(lower)
            if name in _FREE_TEXT or (delimiter == "," and (name in _WITH_COMMAS or "tres" in name))
        ]
        return cls(lower, delimiter, is_trailing, (free[0], free[-1]) if free else None)

    def index(self, *names: str) -> int:
        """Position of the first of these columns that is there, -1 if none is."""
        return next((self.names.index(name) for name in names if name in self.names), -1)

    def cells(self, line: str) -> list[str] | None:
        """Cells of a line, as many as columns; ``None`` if it cannot be told which is which.

        A separator too many belongs to the column of free text, if there is one; where there are several, those and
        what is between them become unreadable cells, and the others are told from both ends.
        """
        found = _split(line, self.delimiter)
        if found is None:
            return None
        if self.is_trailing and (found.pop() or not found):
            return None
        extra = len(found) - len(self.names)
        if extra == 0:
            return found
        if extra < 0 or self.free is None:
            return None
        first, last = self.free
        middle = found[first : last + 1 + extra]
        joined = [self.delimiter.join(middle)] if first == last else [_AMBIGUOUS] * (last - first + 1)
        return found[:first] + joined + found[last + 1 + extra :]


def _split(line: str, delimiter: str) -> list[str] | None:
    if delimiter == "|" or '"' not in line or len(delimiter) > 1:
        return line.split(delimiter)
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=True))
    except (csv.Error, StopIteration):
        return None


def header_of(line: str, delimiter: str | None) -> Layout | None:
    """Layout that a header line gives, by the separator under which it has most names; ``None`` without a separator."""
    best: Layout | None = None
    for candidate in (delimiter,) if delimiter else DELIMITERS:
        names = _split(line.lstrip("\ufeff"), candidate)
        if names is None or len(names) < 2:
            continue
        is_trailing = names[-1] == ""
        layout = Layout.of(names[:-1] if is_trailing else names, candidate, is_trailing)
        if best is None or len(layout.names) > len(best.names):
            best = layout
    return best


def check_names_once(layout: Layout, used: Sequence[str], file: LogFile) -> None:
    """Raise ``InputError`` if a column that matters is there twice."""
    for name in used:
        if layout.names.count(name) > 1:
            raise InputError(
                "a column is there twice",
                file=file.name,
                column=name,
                value=layout.delimiter.join(layout.names),
                expected="each column once",
                fix="name each column once after -o (or format=)",
            )


def text_lines(file: LogFile, lint: Lint) -> Iterator[tuple[int, str]]:
    """Number from 1 and text of each line that is not blank; a last line without its end is doubted."""
    for number, text, is_whole in file.lines_with_ends():
        if text and not text.isspace():
            yield number, text
        if not is_whole:
            lint.doubt(CUT_END, file.name, number)


def short(text: str) -> str:
    """Return the beginning of a row, for messages."""
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "..."


@dataclass(frozen=True, slots=True)
class KnownRows:
    """Columns that rows have by their shape.

    Attributes
    ----------
    columns
        As ``sacct`` calls them.
    command
        Whose they are, for the report.
    is_utc
        Whether that command is known to write UTC.
    """

    columns: tuple[str, ...]
    command: str
    is_utc: bool = False


def _without(*names: str) -> tuple[str, ...]:
    return tuple(name for name in SACCT_COLUMNS if name not in names)


_OWN = "the export command of `bfreplay ingest slurm --how`, run with -n"
_KNOWN = (
    KnownRows(XDMOD_COLUMNS, "what XDMoD has sites export with sacct -n", is_utc=True),
    KnownRows(SACCT_COLUMNS, _OWN),
    KnownRows(_without("Suspended"), _OWN),
    KnownRows(_without("JobID"), _OWN),
    KnownRows(_without("JobID", "Suspended"), _OWN),
)


def known_rows(file: LogFile) -> tuple[Layout, KnownRows] | None:
    """Layout of rows without a header, if more than half of the first ones have a known shape; ``None`` otherwise."""
    lines = [line for line in file.head_lines()[:_HEAD_ROWS] if line.strip()]
    for known in _KNOWN:
        for is_trailing in (False, True):
            layout = Layout.of(known.columns, "|", is_trailing)
            fitting = sum(_fits(layout.cells(line), layout) for line in lines)
            if 2 * fitting > len(lines):
                return layout, known
    return None


def _fits(cells: list[str] | None, layout: Layout) -> bool:
    if cells is None:
        return False
    found = dict(zip(layout.names, cells, strict=True))
    try:
        job_identity(found["jobidraw"], found.get("jobid"))
    except JobStepError:
        pass
    except ValueError:
        return False
    values = [check(found[name]) for name, check in _CHECKS.items() if name in found]
    return all(value is not None and value is not False for value in values)


def _is_time(text: str) -> bool:
    is_epoch = len(text) == 10 and whole(text) is not None
    return (
        is_epoch or text.lower() in ABSENT_TIMES or (len(text) == 19 and text[4] == text[7] == "-" and text[13] == ":")
    )


def _is_state(text: str) -> bool:
    return is_known_state(job_state(text))


_CHECKS: dict[str, Callable[[str], int | None]] = {
    **dict.fromkeys(("submit", "eligible", "start", "end"), _is_time),
    **dict.fromkeys(("nnodes", "ncpus", "restarts", "elapsedraw"), whole),
    **dict.fromkeys(("elapsed", "suspended"), duration_us),
    "state": _is_state,
}
