"""Reader of delimited text, for all formats: rows with their line numbers, under a header or named columns.

A broken row spoils no other. There are two dialects: general tables (``CsvTable``), whose quoted cells may span lines;
and the tables of Slurm's commands (``rows_below_headers``), in which a row is a line, a header may occur in the middle,
and an extra separator belongs to the column of free text.
"""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Protocol

from bfreplay.datasets.ingest.hostlists import expand_nodes
from bfreplay.datasets.ingest.log_file import AS_READ, JOINED_ROWS, LogFile
from bfreplay.datasets.ingest.occupancy.import_report import ImportReport
from bfreplay.documents import refuse_other_kind

DELIMITERS = (",", "\t", ";", "|")
OF_COMMANDS = ("|", "\t", ";", ",", "^")
"""Separators of tables that Slurm's commands print, the usual one first."""

CUT_END = "the last line has no end: the file may have been cut"
TOO_MANY_CELLS = "more cells than columns"
TOO_FEW_CELLS = "fewer cells than columns"
BEFORE_HEADER = "a line before the header"
_AMBIGUOUS = "\0"
_MOST_SURPLUS, _MOST_FITS = 200, 100
_FORMS = {
    name: re.compile(form, re.ASCII)
    for form, names in (
        (r"\d+(_\d+|_\[.*\])?(\+\d+)?(\.\S+)?", "jobid jobidraw"),
        (r"\d*", "nnodes allocnodes ncpus alloccpus reqcpus restarts elapsedraw uid gid priority"),
        (r"[\d:.-]*|[A-Za-z_]*", "elapsed suspended timelimit timelimitraw"),
        (
            r"\d{4}-\d\d-\d\dT[\d:]{8}\S*|\d{1,10}|Unknown|None|N/A|\(null\)|",
            "submit eligible start end timestart timeend",
        ),
        (r"[\w+*~#$@!%^-]+( by \d+)?", "state"),
        (r"[\w.\-\[\],]*|None assigned|\(null\)", "nodelist nodename nodenames"),
        (r"[\w.-]*", "cluster"),
    )
    for name in names.split()
}
"""Forms of columns of Slurm, which tell where a surplus separator is."""

_FREE_TEXT = frozenset(
    {
        "jobname",
        "comment",
        "admincomment",
        "systemcomment",
        "submitline",
        "workdir",
        "reason",
        "extra",
        "stdout",
        "stdin",
        "stderr",
        "container",
    }
)
_WITH_COMMAS = frozenset({"nodelist", "nodenames", "nodes", "flags", "licenses", "constraints", "qosreq"})

Place = tuple[str, int]
"""File and line."""

MOST_LINES = 200
"""A quoted field over more lines than this is an unclosed quote."""

BLOCK_BYTES = 1 << 20
"""Text that a ``RowTaker`` gets at once: little, for rows with a name that is new in their block are read singly."""

_OPEN = "unexpected end of data"  # message of the csv module for an open quote


@dataclass(frozen=True, slots=True)
class Row:
    """Row: its first line (from 1), its cells (``None``: not as many as columns), its text."""

    line: int
    cells: list[str] | None
    text: str


def rows_of(lines: Iterator[tuple[int, str]], delimiter: str, n_columns: int) -> Iterator[Row]:
    """Split lines into rows of ``n_columns`` cells; blank lines are ignored.

    Quoted fields may span lines. A quote that does not close, or only by swallowing other rows, spoils only its own
    line.
    """
    ahead: deque[tuple[int, str]] = deque()
    while True:
        following = ahead.popleft() if ahead else next(lines, None)
        if following is None:
            return
        line, text = following
        if not text.strip():
            continue
        if '"' not in text:
            cells: list[str] | None = text.split(delimiter)
        else:
            try:
                cells = split(text, delimiter)
            except csv.Error as error:
                cells = _join_lines(text, ahead, lines, delimiter, n_columns) if str(error) == _OPEN else None
        yield Row(line, cells if cells is not None and len(cells) == n_columns else None, text)


def split(text: str, delimiter: str) -> list[str]:
    """Split one row into cells; ``csv.Error`` for wrong quotes."""
    return next(csv.reader([text], delimiter=delimiter, strict=True), [])


def _join_lines(
    text: str, ahead: deque[tuple[int, str]], lines: Iterator[tuple[int, str]], delimiter: str, n_columns: int
) -> list[str] | None:
    """Read on until the open quote closes; ``None``, with ``ahead`` unchanged, if that gives no row."""
    for taken in range(1, MOST_LINES):
        if len(ahead) < taken:
            more = next(lines, None)
            if more is None:
                return None
            ahead.append(more)
        part = ahead[taken - 1][1]
        if n_columns > 1 and part.count(delimiter) + 1 == n_columns:
            return None  # a row of its own
        text = f"{text}\n{part}"
        if '"' not in part:
            continue
        try:
            cells = split(text, delimiter)
        except csv.Error as error:
            if str(error) == _OPEN:
                continue
            return None
        if len(cells) != n_columns:
            return None
        for _ in range(taken):
            ahead.popleft()
        return cells
    return None


def delimiter_of(text: str) -> str:
    """Return the separator that splits a header into most columns; a comma if none does."""
    return max(DELIMITERS, key=text.count)


def names_in(text: str, delimiter: str) -> list[str]:
    """Return the column names of a header line; empty if it cannot be split."""
    try:
        return [name.strip() for name in split(text.removeprefix("\ufeff"), delimiter)]
    except csv.Error:
        return []


def first_line(file: LogFile) -> str:
    """Return the first line that is neither blank nor a ``#`` comment; empty if the first 64 KiB have none."""
    for text in file.head_lines():
        if text.strip() and not text.startswith("#"):
            return text.removeprefix("\ufeff")
    return ""


def check_text(file: LogFile) -> None:
    """Raise ``InputError`` for content other than UTF-8 text."""
    head = file.head()
    refuse_other_kind(head, file.name, "CSV or TSV in UTF-8, or Parquet")
    if b"\x00" in head:
        raise file.error(
            "the file is not text",
            value=head[:20],
            expected="CSV or TSV in UTF-8, or Parquet",
            fix="export the table as CSV or Parquet (a spreadsheet: save it as CSV)",
        )


class CsvTable:
    """CSV file with a header, or with given column names.

    Raises
    ------
    InputError
        The content is not text, or has no header.
    """

    def __init__(self, file: LogFile, delimiter: str | None, columns: Sequence[str] | None) -> None:
        check_text(file)
        self.file = file
        header = first_line(file)
        self.delimiter = delimiter_of(header) if delimiter is None else delimiter
        self._has_header = columns is None
        # "a, b, c": padded headers have padded rows
        self.is_padded = columns is None and header.count(f"{self.delimiter} ") > 1
        self.names = tuple(names_in(header, self.delimiter) if columns is None else columns)
        if not self.names:
            raise file.wrong_start(
                "the first line cannot be split into columns",
                value=header[:80],
                expected="names of columns, separated by comma, tab, semicolon or |",
                fix="check the quotes of the first line, or give --delimiter",
            )
        self._header = header
        self.is_cut = False
        self.last_line = 0

    def rows(self) -> Iterator[Row]:
        """Yield the rows below the header; ``#`` comments above it are ignored.

        Afterwards ``is_cut`` is true if the last line, ``last_line``, has no end.
        """
        lines = self._lines()
        for line, text in lines:
            if text.strip() and not text.startswith("#"):
                below = lines if self._has_header else chain([(line, text.removeprefix("\ufeff"))], lines)
                yield from rows_of(below, self.delimiter, len(self.names))

    def _lines(self) -> Iterator[tuple[int, str]]:
        """Yield lines as ``LogFile.lines``, and remember how the last one ends."""
        for number, text, is_whole in self.file.lines_with_ends():
            if not is_whole:
                self.is_cut, self.last_line = True, number
            yield number, text

    def is_header(self, row: Row) -> bool:
        """Return whether the row is the header again, as in joined files."""
        return self._has_header and row.text.removeprefix("\ufeff") == self._header


@dataclass(frozen=True, slots=True)
class Layout:
    """Columns of a table printed by a Slurm command.

    Attributes
    ----------
    names
        Names in lower case, in order.
    delimiter
        Separator of cells.
    is_trailing
        True if lines end with a separator (``sacct -p``).
    free
        Columns whose text may contain a separator.
    numbered
        Column of the job number, in which no header starts with a digit; -1 if absent.
    """

    names: tuple[str, ...]
    delimiter: str
    is_trailing: bool
    free: tuple[int, ...]
    numbered: int

    @classmethod
    def of(cls, names: Sequence[str], delimiter: str, is_trailing: bool = False) -> Layout:
        """Return the layout with these columns, named in any case."""
        lower = tuple(name.strip().lower() for name in names)
        free = tuple(
            i
            for i, name in enumerate(lower)
            if name in _FREE_TEXT or (delimiter == "," and (name in _WITH_COMMAS or "tres" in name))
        )
        numbered = next((lower.index(name) for name in ("jobidraw", "jobid") if name in lower), -1)
        return cls(lower, delimiter, is_trailing, free, numbered)

    def index(self, *names: str) -> int:
        """Return the position of the first of these columns that exists, -1 if none does."""
        return next((self.names.index(name) for name in names if name in self.names), -1)

    def cells(self, line: str) -> list[str] | None:
        """Return the cells of a line, as many as columns; ``None`` if they cannot be assigned.

        An extra separator belongs to a column of free text. With several, the other columns tell which: all of them
        must look as Slurm writes them. If they leave it open, the columns from the first to the last of free text
        become unreadable cells, and the others are counted from both ends.
        """
        found = _cells(line, self.delimiter)
        if found is None:
            return None
        if (self.is_trailing and (found.pop() or not found)) or self._n_rows(found) > 1:
            return None
        extra = len(found) - len(self.names)
        if extra == 0:
            return found
        if extra < 0 or not self.free:
            return None
        first, last = self.free[0], self.free[-1]
        if first == last:
            return [*found[:first], self.delimiter.join(found[first : first + 1 + extra]), *found[first + 1 + extra :]]
        fits = list(islice(self._fits(found, 0, 0, set()), _MOST_FITS)) if extra <= _MOST_SURPLUS else []
        fits = sorted(filter(self._lists_as_many_as_it_says, fits), key=self._n_empty)  # by an end, a cell may be empty
        if len(fits) == 1 or (1 < len(fits) < _MOST_FITS and self._n_empty(fits[0]) < self._n_empty(fits[1])):
            return fits[0]
        return found[:first] + [_AMBIGUOUS] * (last - first + 1) + found[last + 1 + extra :]

    def _fits(self, found: Sequence[str], column: int, at: int, dead: set[tuple[int, int]]) -> Iterator[list[str]]:
        """Yield the cells from a column on, made of what was found from ``at`` on, in all ways that Slurm may write.

        Of columns without a form side by side, the first of free text gets all, for it makes no difference which does.
        ``dead`` has the places from which there is none.
        """
        if column == len(self.names):
            if at == len(found):
                yield []
            return
        is_any, form = False, _FORMS.get(self.names[column])
        before = next((i for i in range(column - 1, -1, -1) if self.names[i] in _FORMS), -1)
        is_open = column in self.free and not any(i in self.free for i in range(before + 1, column))
        n_surplus = len(found) - at - (len(self.names) - column) if is_open and (column, at) not in dead else 0
        for more in range(n_surplus + 1 if (column, at) not in dead else 0):
            cell = self.delimiter.join(found[at : at + 1 + more])
            if form is None or form.fullmatch(cell):
                for rest in self._fits(found, column + 1, at + 1 + more, dead):
                    is_any = True
                    yield [cell, *rest]
        if not is_any:
            dead.add((column, at))

    def _n_empty(self, cells: Sequence[str]) -> int:
        return sum(not cell and name in _FORMS for name, cell in zip(self.names, cells, strict=True))

    def _lists_as_many_as_it_says(self, cells: Sequence[str]) -> bool:
        """Return whether the number of nodes is that of the list, where there are both."""
        found = dict(zip(self.names, cells, strict=True))
        listed, count = found.get("nodelist", ""), found.get("nnodes", found.get("allocnodes"))
        if not count or listed.lower() in ("", "none assigned", "(null)"):
            return True
        try:
            return len(set(expand_nodes(listed))) == int(count)
        except ValueError:
            return False

    def too_many(self) -> str:
        """Return the reason to skip a row with more cells than columns, with the columns to leave out."""
        free = ", ".join(self.names[i] for i in self.free)
        return f"{TOO_MANY_CELLS}: a separator inside {free or 'a cell'} (do not export it)"

    def joined_rows(self, line: str) -> tuple[int, list[str]]:
        """Return the number of rows on a line, and these rows, if it is more than one and shows where each ends.

        Each but the first begins with a job number or a header. Without a separator at the end of rows nothing tells
        where the last cell ends.
        """
        found = _cells(line, self.delimiter) or []
        n_rows, n_cells = self._n_rows(found[:-1] if self.is_trailing else found), len(self.names)
        if n_rows == 1 or not self.is_trailing:
            return n_rows, []
        return n_rows, [self.delimiter.join([*found[k * n_cells : (k + 1) * n_cells], ""]) for k in range(n_rows)]

    def _n_rows(self, cells: list[str]) -> int:
        step = len(self.names) - (not self.is_trailing)  # the last cell of a row is joined to the first of the next
        n_rows, rest = divmod(len(cells) - (not self.is_trailing), step) if step else (1, 0)
        if rest or n_rows < 2 or self.numbered < 0:
            return n_rows if n_rows > 1 and not rest and self.delimiter == "|" else 1
        starts = [cells[k * step + self.numbered].lower() for k in range(1, n_rows)]
        return n_rows if all(text[-1:].isdigit() or text.endswith(self.names[self.numbered]) for text in starts) else 1

    def check_names_once(self, used: Sequence[str], file: LogFile) -> None:
        """Raise ``InputError`` if a needed column occurs twice."""
        for name in used:
            if self.names.count(name) > 1:
                raise file.error(
                    "a column occurs twice",
                    column=name,
                    value=self.delimiter.join(self.names),
                    expected="each column once",
                    fix="name each column once after -o (or format=)",
                )


def _cells(line: str, delimiter: str) -> list[str] | None:
    if delimiter == "|" or '"' not in line or len(delimiter) > 1:
        return line.split(delimiter)
    try:
        return split(line, delimiter)
    except csv.Error:
        return None


def header_of(line: str, delimiter: str | None) -> Layout | None:
    """Return the layout of a header line, by the separator that gives most names; ``None`` without a separator."""
    layouts = []
    for candidate in (delimiter,) if delimiter else OF_COMMANDS:
        names = _cells(line.lstrip("\ufeff"), candidate) or []
        if len(names) > 1:
            is_trailing = names[-1] == ""
            layouts.append(Layout.of(names[:-1] if is_trailing else names, candidate, is_trailing))
    return max(layouts, key=lambda layout: len(layout.names), default=None)


def find_header(file: LogFile, delimiter: str | None, is_header: Callable[[Layout], bool]) -> Layout | None:
    """Return the layout of a header of the wanted kind among the first 20 lines; ``None`` without one."""
    layouts = (header_of(line, delimiter) for line in file.head_lines()[:20])
    return next((layout for layout in layouts if layout is not None and is_header(layout)), None)


def text_lines(file: LogFile, report: ImportReport) -> Iterator[tuple[int, str]]:
    """Yield number (from 1) and text of each line that is not blank; warn of a last line without its end."""
    for number, text, is_whole in file.lines_with_ends():
        report.read(0)  # no warning of the row before is meant
        if text and not text.isspace():
            yield number, text
        if not is_whole:
            report.warn(CUT_END, file.name, number)


class RowTaker(Protocol):
    """Reader of many rows at a time, which takes the rows that it can read.

    Attributes
    ----------
    layout
        Columns of the next row, ``None`` before the header.
    """

    layout: Layout | None

    def others(self, block: bytes, number: int) -> Iterator[tuple[int, str]]:
        """Take rows from a block of whole lines, of which the first is line ``number``; yield the other lines."""


def _lines_not_taken(file: LogFile, report: ImportReport, taker: RowTaker) -> Iterator[tuple[int, str]]:
    """Yield lines as ``text_lines``, but not those that ``taker`` takes."""
    number = 1
    for block in file.blocks(BLOCK_BYTES):
        end = block.rfind(b"\n") + 1
        for line, text in taker.others(block[:end], number):
            if text and not text.isspace():
                yield line, text
        number += block.count(b"\n")
        if end < len(block):
            report.read(0)
            text = block[end:].rstrip(b"\r").decode("utf-8", "surrogateescape")
            if text and not text.isspace():
                yield number, text
            report.warn(CUT_END, file.name, number)


def rows_below_headers(
    file: LogFile,
    report: ImportReport,
    delimiter: str | None,
    is_header: Callable[[Layout], bool],
    used: Sequence[str],
    layout: Layout | None = None,
    taker: RowTaker | None = None,
) -> Iterator[tuple[int, str, list[str], Layout]]:
    """Yield number, text, cells and columns of each row of a table printed by a Slurm command.

    Concatenated exports have a header in the middle, with other columns.

    Parameters
    ----------
    used
        Needed columns, which must not occur twice.
    layout
        Columns of the rows before any header; ``None``: such lines are skipped.
    taker
        Takes rows, which are then not among the yielded ones, and must count them in ``report``.
    """
    if layout is not None:
        layout.check_names_once(used, file)
    if taker is not None:
        taker.layout = layout
    lines = text_lines(file, report) if taker is None else _lines_not_taken(file, report, taker)
    ahead: deque[tuple[int, str]] = deque()
    while following := ahead.popleft() if ahead else next(lines, None):
        number, line = following
        n_rows, rows = (1, []) if layout is None else layout.joined_rows(line)
        if n_rows > 1:
            report.read(0)
            report.warn(JOINED_ROWS, file.name, number, line, aside=AS_READ if rows else "")
            ahead.extend((number, row) for row in rows)
            if not rows:
                report.read(n_rows)
                report.skip(JOINED_ROWS, file.name, number, line, n=n_rows)
            continue
        cells = None if layout is None else layout.cells(line)
        if layout is None or cells is None or layout.numbered < 0 or not cells[layout.numbered][:1].isdigit():
            header = header_of(line, delimiter if layout is None else layout.delimiter)
            if header is not None and is_header(header):
                header.check_names_once(used, file)
                layout = header
                if taker is not None:
                    taker.layout = layout
                continue
        report.read()
        if layout is None:
            report.skip(BEFORE_HEADER, file.name, number, line)
        elif cells is None:
            many = line.count(layout.delimiter) >= len(layout.names)
            report.skip_with_warning(layout.too_many() if many else TOO_FEW_CELLS, file.name, number, line)
        elif any(cells[i] == _AMBIGUOUS for name in used if (i := layout.index(name)) >= 0 and name != "nodelist"):
            report.skip_with_warning(layout.too_many(), file.name, number, line)
        else:
            yield number, line, cells, layout
