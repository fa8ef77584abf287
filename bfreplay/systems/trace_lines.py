"""Traces in Gavel's original format: tab-separated text without a header, one line a job, by arrival."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bfreplay import checks
from bfreplay.datasets.log.metadata import SourceFile
from bfreplay.datasets.readers_by_ending import check_is_file
from bfreplay.datasets.times import seconds_to_us
from bfreplay.documents import not_utf8
from bfreplay.errors import InputError
from bfreplay.workload import Colocation, ElasticJob, JobSet

NO_SLO = -1.0
"""Value that stands for no deadline."""

_FIX = "correct the line"
_FIRST_BYTES = 65_536
_MOST_DIGITS = 16


@dataclass(frozen=True, slots=True)
class AskedJob:
    """Job of a trace or a generator: type, nodes, steps, arrival, weight, deadline factor, rule of its batch sizes."""

    job_type: str
    gang: int
    steps: float
    arrival_us: int
    weight: float = 1.0
    slo: float | None = None
    mode: str = "static"


def split_job_type(job_type: str) -> tuple[str, int]:
    """Return ``("LM", 10)`` of the job type ``"LM (batch size 10)"``; the size is 0 where it has another form."""
    model, _, remainder = job_type.partition(" (batch size ")
    size = remainder.removesuffix(")")
    return model, int(size) if size.isascii() and size.isdigit() else 0


def job_names(n_jobs: int) -> list[str]:
    """Return the names of jobs in order of arrival: ``job0000``, ``job0001``, ..."""
    digits = max(4, len(str(n_jobs - 1)))
    return [f"job{job_index:0{digits}}" for job_index in range(n_jobs)]


def sourced_set(
    jobs: Sequence[ElasticJob], sources: Sequence[SourceFile | None], colocation: Colocation | None = None
) -> JobSet:
    """Return jobs whose submit times count from the start of the window as a set; a source may be missing."""
    digests = [(source.name, source.sha256) for source in sources if source is not None]
    return JobSet(jobs, submit_is_relative=True, sources=digests, colocation=colocation)


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
    for number, line_text in enumerate(line_texts, start=1):
        line = TraceLine(file, number, line_text, columns, layouts)
        arrival_us = line.arrival_us()
        if arrival_us < previous_us:
            expected = f"{previous_us / 1e6:g} s, that of the line before, or later"
            problem, fix = "the jobs are not in order of arrival", "sort the lines by arrival"
            raise line.error(problem, "arrival", arrival_us / 1e6, expected, fix)
        previous_us = arrival_us
        yield line


class TraceLine:
    """Cells of one line, read by column name; every reader raises ``InputError`` for a bad cell.

    Parameters
    ----------
    file, number, line_text
        File, line number and text.
    columns
        Names of its columns.
    layouts
        Layouts of the format, for the error.
    """

    def __init__(
        self, file: Path, number: int, line_text: str, columns: Sequence[str], layouts: Sequence[Sequence[str]]
    ) -> None:
        cells = line_text.split("\t")
        self.columns = columns
        self.number = number
        self._file = file
        if len(cells) != len(columns):
            current_layout, *old_layouts = layouts
            layout_text = f"{len(current_layout)} columns: {', '.join(current_layout)}"
            raise self.error(
                f"a line of the trace has {len(cells)} column{'s' if len(cells) > 1 else ''}",
                None,
                line_text,
                f"{len(columns)} columns as in line 1: {', '.join(columns)}"
                if number > 1
                else "; or the old ".join(
                    [layout_text, *(f"{len(old_layout)}: {', '.join(old_layout)}" for old_layout in old_layouts)]
                ),
                "separate the columns by tabs" if "\t" not in line_text else "complete the line",
            )
        self._cells = dict(zip(columns, (cell.strip() for cell in cells), strict=True))

    def request(self, modes: Sequence[str] = ()) -> AskedJob:
        """Return the job of this line; ``modes`` are the rules of batch sizes, in a layout with them."""
        self._word("needs data directory", ("0", "1"), "a flag is neither 0 nor 1", "check the order of the columns")
        if not self._cells["job type"]:
            raise self.error("a job has no type", "job type", "", "a job type of the throughput file")
        weight, slo = (self._weight(), self._slo()) if "SLO" in self.columns else (1.0, None)
        return AskedJob(
            self._cells["job type"],
            self._whole("scale factor"),
            self._whole("total steps"),
            self.arrival_us(),
            weight,
            slo,
            self._word("mode", modes, "the mode is unknown") if "mode" in self.columns else "static",
        )

    def _slo(self) -> float | None:
        slo = self._number("SLO", "times the duration, > 0; or -1 for none")
        if not (slo > 0 or slo == NO_SLO):
            problem = "the SLO is not a factor of a duration"
            raise self.error(problem, "SLO", slo, "a number > 0, or -1 for none", "write -1 for none")
        return None if slo == NO_SLO else slo

    def _weight(self) -> float:
        weight = self._number("priority weight", "a number > 0")
        if not weight > 0:
            raise self.error("the priority weight is not positive", "priority weight", weight, "a number > 0")
        return weight

    def _word(self, column: str, allowed_words: Sequence[str], problem: str, fix: str = _FIX) -> str:
        word = self._cells[column]
        if word not in allowed_words:
            expected = f"one of {', '.join(allowed_words)}" if column == "mode" else " or ".join(allowed_words)
            raise self.error(problem, column, word, expected, fix)
        return word

    def _whole(self, column: str) -> int:
        cell = self._cells[column]
        if not (cell.isascii() and cell.isdigit() and len(cell) <= _MOST_DIGITS and 1 <= int(cell) <= checks.LARGEST):
            problem = f"the {column} {'are' if column.endswith('s') else 'is'} not a whole number >= 1"
            raise self.error(problem, column, cell, "a whole number >= 1, in digits")
        return int(cell)

    def arrival_us(self) -> int:
        """Return the arrival in microseconds."""
        cell = self._cells["arrival"]
        try:
            arrival_us = seconds_to_us(cell, exact=False)
        except ValueError as error:
            problem = f"the arrival is not a time: {error}"
            raise self.error(problem, "arrival", cell, "seconds from the start of the trace") from error
        if arrival_us < 0:
            raise self.error("the arrival is before the start", "arrival", cell, "seconds >= 0")
        return arrival_us

    def _number(self, column: str, expected: str) -> float:
        cell = self._cells[column]
        try:
            number = checks.decimal(cell)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise self.error(f"the {column} is not a number", column, cell, expected)
        return number

    def error(self, problem: str, column: str | None, value: object, expected: str, fix: str = _FIX) -> InputError:
        """Return the error for a cell of this line."""
        return InputError(
            problem, file=self._file, row=f"line {self.number}", column=column, value=value, expected=expected, fix=fix
        )
