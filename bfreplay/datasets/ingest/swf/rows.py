"""Lines of a Standard Workload Format file to columns, a block at a time.

Two functions have the same meaning: ``read_line`` defines a row, one line at a time; ``_plain_rows`` reads all lines of
a block whose used fields are whole numbers, nearly all lines of all logs.

Fields are separated by spaces or tabs. A number is ASCII digits, up to twelve before the point, with or without a
minus sign and a decimal part: ``17``, ``-1``, ``3.25``; no exponent, no plus sign, no separator. Job number and
processors are whole (``4.0`` is). Other fields than those of jobs, nodes and times may hold anything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.times import seconds_to_us

STANDARD_COLUMNS = 18
EXTENDED_COLUMNS = 21
NODE_LIST_COLUMN = 18
"""Position, from 0, of the list of nodes in the extended form."""

UNKNOWN = -1
MOST_PROCESSORS = 1 << 31

NOT_18_COLUMNS = "not 18 columns"
NO_NUMBER = "a field is not a number"
NO_NODE_LIST = "column 19 is not a list of nodes"

_USED = (0, 1, 2, 3, 4, 7, 10)  # job, submit, wait, run, processors, requested processors, status
_TIMES = (1, 2, 3)
_LONGEST = 12
_TAB, _NEWLINE, _RETURN, _SPACE, _MINUS, _ZERO, _SEMICOLON = b"\t\n\r -0;"
_TOKEN = re.compile(rb"[^ \t\r]+")
_NUMBER = re.compile(rb"-?\d{1,12}(?:\.\d{0,18})?")
_WHOLE = re.compile(rb"-?\d{1,12}(?:\.0{0,18})?")
_NODE_LIST = re.compile(rb"\{\d{1,9}(?:,\d{1,9})*\}")


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows (R) in the order of their lines, ``(R,) int64`` each.

    ``line`` counts from 1; ``submit_us``, ``wait_us`` and ``run_us`` are microseconds; ``processors``, ``requested``
    and ``status`` are as in the file, and unknown is negative. ``node_lists`` holds column 19 of the extended form,
    and is empty for standard rows.
    """

    line: NDArray[np.int64]
    job: NDArray[np.int64]
    submit_us: NDArray[np.int64]
    wait_us: NDArray[np.int64]
    run_us: NDArray[np.int64]
    processors: NDArray[np.int64]
    requested: NDArray[np.int64]
    status: NDArray[np.int64]
    node_lists: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.line)


class Block:
    """Block of whole lines of a file.

    Parameters
    ----------
    data
        The lines.
    first_line
        Number of the first one.

    Attributes
    ----------
    n_lines
        Lines in it.
    standard, extended
        Rows of 18 columns, and of the 21 of the extended form.
    comments
        Line and text of each comment.
    unreadable
        Line and reason of each invalid row.
    """

    def __init__(self, data: bytes, first_line: int) -> None:
        if first_line == 1:
            data = data.removeprefix(b"\xef\xbb\xbf")
        if not data.endswith(b"\n"):
            data += b"\n"
        self._data, self._first_line = data, first_line
        text = np.frombuffer(data, np.uint8)
        newlines = np.flatnonzero(text == _NEWLINE)
        self.n_lines = len(newlines)
        self._begin = np.concatenate([np.zeros(1, np.int64), newlines[:-1] + 1])
        self._end = newlines
        self._read(text)

    def text(self, line_number: int) -> str:
        """Return the text of a line, without its end."""
        index = line_number - self._first_line
        return self._data[self._begin[index] : self._end[index]].decode("utf-8", "surrogateescape").rstrip("\r")

    def _read(self, text_bytes: NDArray[np.uint8]) -> None:
        is_space = (text_bytes == _SPACE) | (text_bytes == _NEWLINE) | (text_bytes == _TAB) | (text_bytes == _RETURN)
        edges = np.flatnonzero(np.diff(is_space, prepend=True, append=True))
        token_begin, token_end = edges[::2], edges[1::2]
        first_token = np.searchsorted(token_begin, self._begin)
        n_tokens = np.diff(first_token, append=len(token_begin))
        has_text = np.flatnonzero(n_tokens)
        is_comment = text_bytes[token_begin[first_token[has_text]]] == _SEMICOLON
        self.comments = [(int(index) + self._first_line, self._line(index)) for index in has_text[is_comment]]
        jobs = has_text[~is_comment]
        standard = jobs[n_tokens[jobs] == STANDARD_COLUMNS]
        row_values, is_plain = _plain_rows(text_bytes, token_begin, token_end, first_token[standard])
        slow = np.sort(np.concatenate([standard[~is_plain], jobs[n_tokens[jobs] != STANDARD_COLUMNS]]))
        self._sort_out(standard[is_plain], row_values[:, is_plain], slow)

    def _sort_out(self, plain: NDArray[np.int64], plain_values: NDArray[np.int64], slow: NDArray[np.int64]) -> None:
        """Read the lines ``slow`` one by one, and put all rows in order."""
        single_rows: list[list[int]] = []
        lists_of_rows: list[list[int]] = []
        node_lists: list[str] = []
        self.unreadable: list[tuple[int, str]] = []
        for line_index in slow.tolist():
            single_row = read_line(self._line(line_index))
            if isinstance(single_row, str):
                self.unreadable.append((line_index + self._first_line, single_row))
            elif single_row[1] is None:
                single_rows.append([line_index, *single_row[0]])
            else:
                lists_of_rows.append([line_index, *single_row[0]])
                node_lists.append(single_row[1])
        more_columns = _columns(single_rows)
        all_columns = np.concatenate([np.vstack([plain[None, :], plain_values]), more_columns], axis=1)
        all_columns = all_columns[:, np.argsort(all_columns[0], kind="stable")] if more_columns.size else all_columns
        self.standard = self._rows(all_columns)
        self.extended = self._rows(_columns(lists_of_rows), tuple(node_lists))

    def _rows(self, columns: NDArray[np.int64], node_lists: tuple[str, ...] = ()) -> Rows:
        job, submit_us, wait_us, run_us, processors, request, status = columns[1:]
        line = columns[0] + self._first_line
        return Rows(line, job, submit_us, wait_us, run_us, processors, request, status, node_lists)

    def _line(self, line_index: int | np.integer) -> bytes:
        return self._data[self._begin[line_index] : self._end[line_index]]


def read_line(line_bytes: bytes) -> tuple[tuple[int, ...], str | None] | str:
    """Return the used columns of one line (times in microseconds) and its list of nodes, or why it is not a row.

    Invalid requested processors and status count as unknown: both only explain.
    """
    line_fields = _TOKEN.findall(line_bytes)
    node_list = None
    if len(line_fields) == EXTENDED_COLUMNS:
        if not _NODE_LIST.fullmatch(line_fields[NODE_LIST_COLUMN]):
            return NO_NODE_LIST
        node_list = line_fields[NODE_LIST_COLUMN].decode()
    elif len(line_fields) != STANDARD_COLUMNS:
        return NOT_18_COLUMNS
    row_values = []
    for column_index in _USED:
        field_bytes = line_fields[column_index]
        if column_index in _TIMES:
            if not _NUMBER.fullmatch(field_bytes):
                return NO_NUMBER
            row_values.append(seconds_to_us(field_bytes.decode(), exact=False))
        elif _WHOLE.fullmatch(field_bytes):
            row_values.append(int(field_bytes.partition(b".")[0]))
        elif column_index in (0, 4):
            return NO_NUMBER
        else:
            row_values.append(UNKNOWN)
    return tuple(row_values), node_list


def _columns(row_values: list[list[int]]) -> NDArray[np.int64]:
    """Return line index and values of rows, as columns."""
    return np.array(row_values, np.int64).reshape(-1, 1 + len(_USED)).T


def _plain_rows(
    text: NDArray[np.uint8], begin: NDArray[np.int64], end: NDArray[np.int64], first_token: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Read used columns ``(7, R)`` of R rows with these first tokens, and a mask of whole numbers, ``(R,)``."""
    values = np.empty((len(_USED), len(first_token)), np.int64)
    is_plain = np.ones(len(first_token), np.bool_)
    for position, column in enumerate(_USED):
        token = first_token + column
        digit_place, is_negative = begin[token], text[begin[token]] == _MINUS
        digit_place = digit_place + is_negative
        length = end[token] - digit_place
        is_plain &= (length > 0) & (length <= _LONGEST)
        value = np.zeros(len(token), np.int64)
        for index in range(min(_LONGEST, int(length.max(initial=0)))):
            inside = index < length
            # characters below "0" wrap round above 9
            digit = text[np.minimum(digit_place + index, len(text) - 1)] - np.uint8(_ZERO)
            is_plain &= ~inside | (digit <= 9)
            value = np.where(inside, value * 10 + digit, value)
        values[position] = np.where(is_negative, -value, value) * (1_000_000 if column in _TIMES else 1)
    return values, is_plain
