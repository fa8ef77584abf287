"""Traces in Gavel's original format: tab-separated text without a header, one line a job, by arrival."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from bfreplay import checks
from bfreplay.datasets.readers_by_ending import check_is_file
from bfreplay.datasets.times import seconds_to_us
from bfreplay.documents import not_utf8
from bfreplay.errors import InputError

NO_SLO = -1.0
"""Value that stands for no deadline."""

_FIRST_BYTES = 65_536
_MOST_DIGITS = 16
_LARGEST = 2**53  # whole numbers up to here are exact as floating-point numbers


def n_columns(file: Path) -> int:
    """Number of tab-separated columns of the first line; 0 for a file of JSON."""
    with file.open("rb") as stream:
        line = stream.read(_FIRST_BYTES).partition(b"\n")[0]
    return 0 if line.strip().startswith(b"{") else line.count(b"\t") + 1


def trace_lines(file: Path, layouts: Sequence[Sequence[str]]) -> Iterator[TraceLine]:
    """Return the lines of a trace, in order of arrival.

    Parameters
    ----------
    file
        The trace.
    layouts
        Names of the columns of each layout of the format, the present one first; the first line decides.

    Raises
    ------
    InputError
        Empty file or no text, a line with another number of columns, or jobs not in order of arrival.
    """
    check_is_file(file)
    try:
        line_texts = file.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise not_utf8(file) from error
    while line_texts and not line_texts[-1].strip():
        line_texts.pop()
    if not line_texts:
        raise InputError("the trace is empty", file=file, expected="a line for each job", fix="check what wrote it")
    n_first = line_texts[0].count("\t") + 1
    columns = next((layout for layout in layouts if len(layout) == n_first), layouts[0])
    previous_us = 0
    for number, text in enumerate(line_texts, start=1):
        line = TraceLine(file, number, text, columns, layouts)
        arrival_us = line.arrival_us()
        if arrival_us < previous_us:
            raise InputError(
                "the jobs are not in order of arrival",
                file=file,
                row=f"line {number}",
                column="arrival",
                value=arrival_us / 1e6,
                expected=f"{previous_us / 1e6:g} s, that of the line before, or later",
                fix="sort the lines by arrival",
            )
        previous_us = arrival_us
        yield line


class TraceLine:
    """Cells of one line, read by column name; every reader raises ``InputError`` for a bad cell.

    Parameters
    ----------
    file, number, text
        File, line number and text.
    columns
        Names of its columns.
    layouts
        Layouts of the format, for the error.
    """

    def __init__(
        self, file: Path, number: int, text: str, columns: Sequence[str], layouts: Sequence[Sequence[str]]
    ) -> None:
        cells = text.split("\t")
        self.columns = columns
        self.number = number
        self._file = file
        if len(cells) != len(columns):
            current_layout, *old_layouts = layouts
            layout_text = f"{len(current_layout)} columns: {', '.join(current_layout)}"
            raise self.error(
                f"a line of the trace has {len(cells)} column{'s' if len(cells) > 1 else ''}",
                None,
                text,
                f"{len(columns)} columns as in line 1: {', '.join(columns)}"
                if number > 1
                else "; or the old ".join(
                    [layout_text, *(f"{len(old_layout)}: {', '.join(old_layout)}" for old_layout in old_layouts)]
                ),
                "separate the columns by tabs" if "\t" not in text else "complete the line",
            )
        self._cells = dict(zip(columns, (cell.strip() for cell in cells), strict=True))

    def job_type(self) -> str:
        """Return the job type, which is not empty."""
        job_type = self._cells["job type"]
        if not job_type:
            raise self.error("a job has no type", "job type", job_type, "a job type of the throughput file", None)
        return job_type

    def check_flag(self, column: str) -> None:
        """Refuse a flag that is neither 0 nor 1."""
        if self._cells[column] not in ("0", "1"):
            raise self.error(
                "a flag is neither 0 nor 1", column, self._cells[column], "0 or 1", "check the order of the columns"
            )

    def slo(self) -> float | None:
        """Return the deadline as a factor of the duration; ``None`` for none."""
        slo = self._number("SLO", "times the duration, > 0; or -1 for none")
        if not (slo > 0 or slo == NO_SLO):
            raise self.error(
                "the SLO is not a factor of a duration", "SLO", slo, "a number > 0, or -1 for none", "write -1 for none"
            )
        return None if slo == NO_SLO else slo

    def weight(self) -> float:
        """Return the priority weight."""
        weight = self._number("priority weight", "a number > 0")
        if not weight > 0:
            raise self.error("the priority weight is not positive", "priority weight", weight, "a number > 0", None)
        return weight

    def word(self, column: str, allowed_words: Sequence[str]) -> str:
        """Return a cell that is one of ``allowed_words``."""
        cell_text = self._cells[column]
        if cell_text not in allowed_words:
            raise self.error(f"the {column} is unknown", column, cell_text, f"one of {', '.join(allowed_words)}", None)
        return cell_text

    def whole(self, column: str) -> int:
        """Return a whole number of at least 1."""
        text = self._cells[column]
        if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS and 1 <= int(text) <= _LARGEST):
            raise self.error(
                f"the {column} {'are' if column.endswith('s') else 'is'} not a whole number >= 1",
                column,
                text,
                "a whole number >= 1, in digits",
                None,
            )
        return int(text)

    def arrival_us(self) -> int:
        """Return the arrival in microseconds."""
        text = self._cells["arrival"]
        try:
            arrival_us = seconds_to_us(text, exact=False)
        except ValueError as error:
            raise self.error(
                f"the arrival is not a time: {error}", "arrival", text, "seconds from the start of the trace", None
            ) from error
        if arrival_us < 0:
            raise self.error("the arrival is before the start", "arrival", text, "seconds >= 0", None)
        return arrival_us

    def _number(self, column: str, expected: str) -> float:
        text = self._cells[column]
        try:
            number = checks.decimal(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise self.error(f"the {column} is not a number", column, text, expected, None)
        return number

    def error(self, problem: str, column: str | None, value: object, expected: str, fix: str | None) -> InputError:
        """Return the error for a cell of this line."""
        return InputError(
            problem,
            file=self._file,
            row=f"line {self.number}",
            column=column,
            value=value,
            expected=expected,
            fix=fix or "correct the line",
        )
