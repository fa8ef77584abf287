"""The reader of delimited text, for all formats: rows with the lines they stand on, under a header or named columns.

A row that is broken takes no other with it. There are two dialects: tables of one's own (``CsvTable``), whose quoted
cells may run over lines; and the tables of Slurm's commands (``rows_below_headers``), in which a row is a line, a
header may stand in the middle, and a separator too many belongs to the column of free text.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.import_report import ImportReport
from bfreplay.documents import refuse_other_kind

DELIMITERS = (",", "\t", ";", "|")
OF_COMMANDS = ("|", "\t", ";", ",", "^")
"""Separators of tables that Slurm's commands print, the usual one first."""

CUT_END = "the last line has no end: the file may have been cut"
TOO_MANY_CELLS = "more cells than columns (a separator inside JobName or Comment: do not export those)"
TOO_FEW_CELLS = "fewer cells than columns"
BEFORE_HEADER = "a line before the header"
_AMBIGUOUS = "\0"
_FREE_TEXT = frozenset(
    {"jobname", "comment", "admincomment", "systemcomment", "submitline", "workdir", "reason", "extra", "stdout",
     "stdin", "stderr", "container"}
)  # fmt: skip
_WITH_COMMAS = frozenset({"nodelist", "nodenames", "nodes", "flags", "licenses", "constraints", "qosreq"})

Place = tuple[str, int]
"""File and line."""

MOST_LINES = 200
"""A quoted field that runs over more lines than this is a quote that somebody forgot to close."""

_OPEN = "unexpected end of data"  # how the csv module says that a quote is still open


@dataclass(frozen=True, slots=True)
class Row:
    """A row: its first line (from 1), its cells (``None``: not as many as there are columns), its text."""

    line: int
    cells: list[str] | None
    text: str


def rows_of(lines: Iterator[tuple[int, str]], delimiter: str, n_columns: int) -> Iterator[Row]:
    """Split lines into rows of ``n_columns`` cells; blank lines are passed over.

    Quoted fields may run over lines. A quote that does not close, or only by swallowing what are rows themselves,
    spoils the line it stands on and no other.
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
                cells = _joined(text, ahead, lines, delimiter, n_columns) if str(error) == _OPEN else None
        yield Row(line, cells if cells is not None and len(cells) == n_columns else None, text)


def split(text: str, delimiter: str) -> list[str]:
    """Split one row into cells; ``csv.Error`` where quotes are not as they should be."""
    return next(csv.reader([text], delimiter=delimiter, strict=True), [])


def _joined(
    text: str, ahead: deque[tuple[int, str]], lines: Iterator[tuple[int, str]], delimiter: str, n_columns: int
) -> list[str] | None:
    """Read on until the open quote closes; ``None``, with nothing taken from ``ahead``, if that gives no row."""
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
    """The separator that splits a header into most columns; a comma if none does."""
    return max(DELIMITERS, key=text.count)


def names_in(text: str, delimiter: str) -> list[str]:
    """Column names of a header line; empty if it cannot be split."""
    try:
        return [name.strip() for name in split(text.removeprefix("\ufeff"), delimiter)]
    except csv.Error:
        return []


def first_line(file: LogFile) -> str:
    """First line with something on it that is no ``#`` comment; empty if there is none in the first 64 KiB."""
    for text in file.head_lines():
        if text.strip() and not text.startswith("#"):
            return text.removeprefix("\ufeff")
    return ""


def check_text(file: LogFile) -> None:
    """Raise ``InputError`` for what is no text in UTF-8."""
    head = file.head()
    refuse_other_kind(head, file.name, "CSV or TSV in UTF-8, or Parquet")
    if b"\x00" in head:
        raise file.error(
            "the file is no text",
            value=head[:20],
            expected="CSV or TSV in UTF-8, or Parquet",
            fix="export the table as CSV or Parquet (a spreadsheet: save it as CSV)",
        )


class CsvTable:
    """A CSV file with its header, or with names given for its columns.

    Raises
    ------
    InputError
        It is no text, or has no header.
    """

    def __init__(self, file: LogFile, delimiter: str | None, columns: Sequence[str] | None) -> None:
        check_text(file)
        self.file = file
        header = first_line(file)
        self.delimiter = delimiter_of(header) if delimiter is None else delimiter
        self._has_header = columns is None
        # "a, b, c": whoever pads the header pads the rows
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
        """Rows below the header. Comments (``#``) above it are passed over.

        Afterwards ``is_cut`` says whether the last line, ``last_line``, has no end.
        """
        lines = self._lines()
        for line, text in lines:
            if text.strip() and not text.startswith("#"):
                below = lines if self._has_header else chain([(line, text.removeprefix("\ufeff"))], lines)
                yield from rows_of(below, self.delimiter, len(self.names))

    def _lines(self) -> Iterator[tuple[int, str]]:
        """As ``LogFile.lines``, and remember how the last one ends."""
        for number, text, is_whole in self.file.lines_with_ends():
            if not is_whole:
                self.is_cut, self.last_line = True, number
            yield number, text

    def is_header(self, row: Row) -> bool:
        """Whether the row is the header again, as where files were joined."""
        return self._has_header and row.text.removeprefix("\ufeff") == self._header


@dataclass(frozen=True, slots=True)
class Layout:
    """Columns of a table that a command of Slurm's prints.

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
    numbered
        Column of the job's number, in which no header has a digit first; -1 if there is none.
    """

    names: tuple[str, ...]
    delimiter: str
    is_trailing: bool
    free: tuple[int, int] | None
    numbered: int

    @classmethod
    def of(cls, names: Sequence[str], delimiter: str, is_trailing: bool = False) -> Layout:
        """Return the layout with these columns, named in any case."""
        lower = tuple(name.strip().lower() for name in names)
        free = [
            i
            for i, name in enumerate(lower)
            if name in _FREE_TEXT or (delimiter == "," and (name in _WITH_COMMAS or "tres" in name))
        ]
        numbered = next((lower.index(name) for name in ("jobidraw", "jobid") if name in lower), -1)
        return cls(lower, delimiter, is_trailing, (free[0], free[-1]) if free else None, numbered)

    def index(self, *names: str) -> int:
        """Position of the first of these columns that is there, -1 if none is."""
        return next((self.names.index(name) for name in names if name in self.names), -1)

    def cells(self, line: str) -> list[str] | None:
        """Cells of a line, as many as columns; ``None`` if it cannot be told which is which.

        A separator too many belongs to the column of free text, if there is one; where there are several, those and
        what is between them become unreadable cells, and the others are told from both ends.
        """
        found = _cells(line, self.delimiter)
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

    def check_names_once(self, used: Sequence[str], file: LogFile) -> None:
        """Raise ``InputError`` if a column that matters is there twice."""
        for name in used:
            if self.names.count(name) > 1:
                raise file.error(
                    "a column is there twice",
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
    """Layout that a header line gives, by the separator under which it has most names; ``None`` without a separator."""
    layouts = []
    for candidate in (delimiter,) if delimiter else OF_COMMANDS:
        names = _cells(line.lstrip("\ufeff"), candidate) or []
        if len(names) > 1:
            is_trailing = names[-1] == ""
            layouts.append(Layout.of(names[:-1] if is_trailing else names, candidate, is_trailing))
    return max(layouts, key=lambda layout: len(layout.names), default=None)


def find_header(file: LogFile, delimiter: str | None, is_header: Callable[[Layout], bool]) -> Layout | None:
    """Layout that one of the first 20 lines gives; ``None`` if none is a header of the kind that is looked for."""
    layouts = (header_of(line, delimiter) for line in file.head_lines()[:20])
    return next((layout for layout in layouts if layout is not None and is_header(layout)), None)


def text_lines(file: LogFile, report: ImportReport) -> Iterator[tuple[int, str]]:
    """Number from 1 and text of each line that is not blank; a last line without its end is warned of."""
    for number, text, is_whole in file.lines_with_ends():
        if text and not text.isspace():
            yield number, text
        if not is_whole:
            report.warn(CUT_END, file.name, number)


def rows_below_headers(
    file: LogFile,
    report: ImportReport,
    delimiter: str | None,
    is_header: Callable[[Layout], bool],
    used: Sequence[str],
    layout: Layout | None = None,
) -> Iterator[tuple[int, str, list[str], Layout]]:
    """Number, text, cells and columns of each row of a table that a command of Slurm's printed.

    Exports that were put one after the other have a header in the middle, with columns of their own.

    Parameters
    ----------
    used
        Columns that matter, which must not be there twice.
    layout
        Columns of the rows before any header; ``None``: such lines are skipped.
    """
    if layout is not None:
        layout.check_names_once(used, file)
    for number, line in text_lines(file, report):
        cells = None if layout is None else layout.cells(line)
        if layout is None or cells is None or layout.numbered < 0 or not cells[layout.numbered][:1].isdigit():
            header = header_of(line, delimiter if layout is None else layout.delimiter)
            if header is not None and is_header(header):
                header.check_names_once(used, file)
                layout = header
                continue
        report.read()
        if layout is None:
            report.skip(BEFORE_HEADER, file.name, number, line)
        elif cells is None:
            many = line.count(layout.delimiter) >= len(layout.names)
            report.skip_with_warning(TOO_MANY_CELLS if many else TOO_FEW_CELLS, file.name, number, line)
        else:
            yield number, line, cells, layout
