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


def rows_of(numbered_lines: Iterator[tuple[int, str]], delimiter: str, n_columns: int) -> Iterator[Row]:
    """Split lines into rows of ``n_columns`` cells; blank lines are ignored.

    Quoted fields may span lines. A quote that does not close, or only by swallowing other rows, spoils only its own
    line.
    """
    ahead: deque[tuple[int, str]] = deque()
    while True:
        next_line = ahead.popleft() if ahead else next(numbered_lines, None)
        if next_line is None:
            return
        line_number, text = next_line
        if not text.strip():
            continue
        if '"' not in text:
            cells: list[str] | None = text.split(delimiter)
        else:
            try:
                cells = split(text, delimiter)
            except csv.Error as error:
                cells = _join_lines(text, ahead, numbered_lines, delimiter, n_columns) if str(error) == _OPEN else None
        yield Row(line_number, cells if cells is not None and len(cells) == n_columns else None, text)


def split(row_text: str, delimiter: str) -> list[str]:
    """Split one row into cells; ``csv.Error`` for wrong quotes."""
    return next(csv.reader([row_text], delimiter=delimiter, strict=True), [])


def _join_lines(
    row_text: str, ahead: deque[tuple[int, str]], lines: Iterator[tuple[int, str]], delimiter: str, n_columns: int
) -> list[str] | None:
    """Read on until the open quote closes; ``None``, with ``ahead`` unchanged, if that gives no row."""
    for n_lines in range(1, MOST_LINES):
        if len(ahead) < n_lines:
            next_line = next(lines, None)
            if next_line is None:
                return None
            ahead.append(next_line)
        next_text = ahead[n_lines - 1][1]
        if n_columns > 1 and next_text.count(delimiter) + 1 == n_columns:
            return None  # a row of its own
        row_text = f"{row_text}\n{next_text}"
        if '"' not in next_text:
            continue
        try:
            cells = split(row_text, delimiter)
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


def delimiter_of(header_text: str) -> str:
    """Return the separator that splits a header into most columns; a comma if none does."""
    return max(DELIMITERS, key=header_text.count)


def names_in(header_text: str, delimiter: str) -> list[str]:
    """Return the column names of a header line; empty if it cannot be split."""
    try:
        return [column_name.strip() for column_name in split(header_text.removeprefix("\ufeff"), delimiter)]
    except csv.Error:
        return []


def first_line(log_file: LogFile) -> str:
    """Return the first line that is neither blank nor a ``#`` comment; empty if the first 64 KiB have none."""
    line_texts = (line_text for line_text in log_file.first_rows() if not line_text.startswith("#"))
    return next(line_texts, "").removeprefix("\ufeff")


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

    def __init__(self, log_file: LogFile, delimiter: str | None, column_names: Sequence[str] | None) -> None:
        check_text(log_file)
        self.file = log_file
        header_text = first_line(log_file)
        self.delimiter = delimiter_of(header_text) if delimiter is None else delimiter
        self._has_header = column_names is None
        # "a, b, c": padded headers have padded rows
        self.is_padded = column_names is None and header_text.count(f"{self.delimiter} ") > 1
        self.names = tuple(names_in(header_text, self.delimiter) if column_names is None else column_names)
        if not self.names:
            raise log_file.wrong_start(
                "the first line cannot be split into columns",
                value=header_text[:80],
                expected="names of columns, separated by comma, tab, semicolon or |",
                fix="check the quotes of the first line, or give --delimiter",
            )
        self._header = header_text
        self.cut_line: int | None = None

    def rows(self) -> Iterator[Row]:
        """Yield the rows below the header; ``#`` comments above it are ignored.

        Afterwards ``cut_line`` is the number of the last line if that has no end.
        """
        lines = self._lines()
        for line_number, line_text in lines:
            if line_text.strip() and not line_text.startswith("#"):
                below = lines if self._has_header else chain([(line_number, line_text.removeprefix("\ufeff"))], lines)
                yield from rows_of(below, self.delimiter, len(self.names))

    def _lines(self) -> Iterator[tuple[int, str]]:
        """Yield lines as ``LogFile.lines``, and remember how the last one ends."""
        for line_number, line_text, is_whole in self.file.lines_with_ends():
            if not is_whole:
                self.cut_line = line_number
            yield line_number, line_text

    def is_header(self, csv_row: Row) -> bool:
        """Return whether the row is the header again, as in joined files."""
        return self._has_header and csv_row.text.removeprefix("\ufeff") == self._header
