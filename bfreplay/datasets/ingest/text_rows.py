"""Rows of delimited text as arrays: cells by their places in a block of bytes, and compiled readers of columns.

Only the usual spelling of a value is read here. A cell in any other is left to the reader of single rows, which knows
what is wrong with it, and says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.datasets.times import DAY_US, US

_NEWLINE, _RETURN, _ZERO = ord("\n"), ord("\r"), ord("0")
_MOST_DIGITS = 15
_FIRST_YEAR, _LAST_YEAR = 1970, 2199
_STAMP = np.frombuffer(b"0000-00-00T00:00:00", np.uint8)
_PARTS = np.zeros((len(_STAMP), 6), np.int64)  # digits to year, month, day, hour, minute, second
_PARTS[:4, 0] = 1_000, 100, 10, 1
for _part, _place in enumerate((5, 8, 11, 14, 17), start=1):
    _PARTS[_place : _place + 2, _part] = 10, 1
_MOST_KNOWN = 65_536


class TextRows:
    """Rows (R) of a block of whole lines.

    Parameters
    ----------
    block
        Lines, each with its end.
    delimiter
        Byte between two cells.
    n_cells
        Cells of a row.

    Attributes
    ----------
    line_first
        Place in ``block`` of each line's first byte, and after the last line, ``(R + 1,)``.
    cell_first
        Place of each cell's first byte; each cell ends one byte before the next, ``(R, n_cells + 1)``.
    is_whole
        Whether the line has this number of cells, ``(R,)``; otherwise ``cell_first`` has no meaning.
    """

    def __init__(self, block: bytes, delimiter: str, n_cells: int) -> None:
        self.block = block
        self.bytes = np.frombuffer(block, np.uint8)
        n_rows = block.count(b"\n")
        self.line_first = np.zeros(n_rows + 1, np.int64)
        self.cell_first = np.zeros((n_rows, n_cells + 1), np.int64)
        self.is_whole = np.zeros(n_rows, np.bool_)
        _split(self.bytes, ord(delimiter), self.line_first, self.cell_first, self.is_whole)

    def __len__(self) -> int:
        return len(self.is_whole)

    def line(self, row: int) -> str:
        """Return the text of a line, as ``LogFile.lines`` gives it."""
        line = self.block[self.line_first[row] : self.line_first[row + 1]]
        return line.rstrip(b"\r\n").decode("utf-8", "surrogateescape")

    def cell(self, row: int, column: int) -> str:
        """Return the text of a cell of a whole line."""
        cell = self.block[self.cell_first[row, column] : self.cell_first[row, column + 1] - 1]
        return cell.decode("utf-8", "surrogateescape")

    def numbers(self, column: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the whole numbers in a column, and which cells are one: at most 15 digits, no zero before others."""
        return _numbers(self.bytes, self.cell_first, column, self.is_whole)

    def wall_clock_us(self, column: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return microseconds as ``clock.wall_clock_us``, and which cells are ``YYYY-MM-DDTHH:MM:SS``."""
        length = self.cell_first[:, column + 1] - 1 - self.cell_first[:, column]
        row = np.flatnonzero(self.is_whole & (length == len(_STAMP)))
        digits = self.bytes[self.cell_first[row, column][:, None] + np.arange(len(_STAMP))] - _STAMP
        year, month, day, hour, minute, second = (digits.astype(np.int64) @ _PARTS).T
        is_stamp = (digits <= np.where(_STAMP == _ZERO, 9, 0)).all(axis=1)
        is_stamp &= (year >= _FIRST_YEAR) & (year <= _LAST_YEAR) & (month >= 1) & (month <= 12)
        is_stamp &= (hour <= 23) & (minute <= 59) & (second <= 59)
        months = (12 * (year - 1970) + month - 1).astype("datetime64[M]")
        days = months.astype("datetime64[D]") + (day - 1)
        is_stamp &= days.astype("datetime64[M]") == months
        found, is_one = np.zeros(len(self), np.int64), np.zeros(len(self), np.bool_)
        found[row] = days.astype(np.int64) * DAY_US + ((hour * 60 + minute) * 60 + second) * US
        is_one[row] = is_stamp
        return np.where(is_one, found, 0), is_one

    def matches(self, column: int, pattern: re.Pattern[bytes]) -> NDArray[np.bool_]:
        """Return which cells are as ``pattern``."""
        first, after = self.cell_first[:, column].tolist(), (self.cell_first[:, column + 1] - 1).tolist()
        found = (pattern.fullmatch(self.block, *place) is not None for place in zip(first, after, strict=True))
        return self.is_whole & np.fromiter(found, np.bool_, len(self))

    def values(self, column: int, read: Callable[[str], Any], known: dict[bytes, Any], otherwise: Any) -> list[Any]:
        """Return ``read(text)`` of each cell of a column with few different texts, ``otherwise`` for no cell.

        ``known`` remembers earlier ones.
        """
        if len(known) > _MOST_KNOWN:
            known.clear()
        first, after = self.cell_first[:, column].tolist(), (self.cell_first[:, column + 1] - 1).tolist()
        block, found = self.block, []
        for begin, end, is_whole in zip(first, after, self.is_whole.tolist(), strict=True):
            if not is_whole:
                found.append(otherwise)
                continue
            cell = block[begin:end]
            if cell not in known:
                known[cell] = read(cell.decode("utf-8", "surrogateescape"))
            found.append(known[cell])
        return found


@compiled
def _split(
    text: NDArray[np.uint8],
    delimiter: int,
    line_first: NDArray[np.int64],
    cell_first: NDArray[np.int64],
    is_whole: NDArray[np.bool_],
) -> None:
    n_cells = cell_first.shape[1] - 1
    row = cell = 0
    for place in range(len(text)):
        if text[place] == delimiter:
            cell += 1
            if cell < n_cells:
                cell_first[row, cell] = place + 1
        elif text[place] == _NEWLINE:
            end = place
            while end > line_first[row] and text[end - 1] == _RETURN:
                end -= 1
            is_whole[row] = cell + 1 == n_cells
            cell_first[row, n_cells] = end + 1
            row, cell = row + 1, 0
            line_first[row] = place + 1
            if row < len(cell_first):
                cell_first[row, 0] = place + 1


@compiled
def _numbers(
    text: NDArray[np.uint8], cell_first: NDArray[np.int64], column: int, is_whole: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    found, is_one = np.zeros(len(is_whole), np.int64), np.zeros(len(is_whole), np.bool_)
    for row in range(len(is_whole)):
        begin, end = cell_first[row, column], cell_first[row, column + 1] - 1
        if is_whole[row] and 0 < end - begin <= _MOST_DIGITS and (text[begin] != _ZERO or end == begin + 1):
            is_one[row] = True
            for place in range(begin, end):
                digit = int(text[place]) - _ZERO
                is_one[row] &= 0 <= digit <= 9
                found[row] = 10 * found[row] + digit
    return found, is_one
