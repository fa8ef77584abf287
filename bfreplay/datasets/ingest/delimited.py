"""Rows of delimited text with their line numbers, under a header or named columns; quoted cells may span lines.

A broken row spoils no other.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.documents import refuse_other_kind

DELIMITERS = (",", "\t", ";", "|")
CUT_END = "the last line has no end: the file may have been cut"
Place = tuple[str, int]
"""File and line."""

MOST_LINES = 200
"""A quoted field over more lines than this is an unclosed quote."""

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
    for n_lines in range(1, MOST_LINES):
        if len(ahead) < n_lines:
            following = next(lines, None)
            if following is None:
                return None
            ahead.append(following)
        part = ahead[n_lines - 1][1]
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
        for _ in range(n_lines):
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


def first_line(log_file: LogFile) -> str:
    """Return the first line that is neither blank nor a ``#`` comment; empty if the first 64 KiB have none."""
    texts = (text for text in log_file.head_lines() if text.strip() and not text.startswith("#"))
    return next(texts, "").removeprefix("\ufeff")


def check_text(log_file: LogFile) -> None:
    """Raise ``InputError`` for content other than UTF-8 text."""
    head_bytes = log_file.head()
    refuse_other_kind(head_bytes, log_file.name, "CSV or TSV in UTF-8, or Parquet")
    if b"\x00" in head_bytes:
        raise log_file.error(
            "the file is not text",
            value=head_bytes[:20],
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

    def __init__(self, log_file: LogFile, delimiter: str | None, columns: Sequence[str] | None) -> None:
        check_text(log_file)
        self.file = log_file
        header = first_line(log_file)
        self.delimiter = delimiter_of(header) if delimiter is None else delimiter
        self._has_header = columns is None
        # "a, b, c": padded headers have padded rows
        self.is_padded = columns is None and header.count(f"{self.delimiter} ") > 1
        self.names = tuple(names_in(header, self.delimiter) if columns is None else columns)
        if not self.names:
            raise log_file.wrong_start(
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
        for line_number, text in lines:
            if text.strip() and not text.startswith("#"):
                below = lines if self._has_header else chain([(line_number, text.removeprefix("\ufeff"))], lines)
                yield from rows_of(below, self.delimiter, len(self.names))

    def _lines(self) -> Iterator[tuple[int, str]]:
        """Yield lines as ``LogFile.lines``, and remember how the last one ends."""
        for line_number, text, is_whole in self.file.lines_with_ends():
            if not is_whole:
                self.is_cut, self.last_line = True, line_number
            yield line_number, text

    def is_header(self, row: Row) -> bool:
        """Return whether the row is the header again, as in joined files."""
        return self._has_header and row.text.removeprefix("\ufeff") == self._header
