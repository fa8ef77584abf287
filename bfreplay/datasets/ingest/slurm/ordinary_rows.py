"""Ordinary rows of ``sacct``, many at a time: jobs that ended, on known nodes, with nothing to report about them.

All other rows are left to ``sacct`` and ``sacct_rows``, one by one and in their place. So a row that is not known to be
ordinary is none, and what is wrong with it is decided and worded in one place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.datasets.ingest.known_nodes import KnownNodes
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.occupancy.spool import OPEN_END, JobIntervals, first_of_each
from bfreplay.datasets.ingest.slurm import slurm_cells as fields
from bfreplay.datasets.ingest.slurm.command_tables import Layout
from bfreplay.datasets.ingest.slurm.sacct_rows import SLACK_US, JobRows, OrdinaryJobs
from bfreplay.datasets.ingest.slurm.slurm_times import SlurmClock
from bfreplay.datasets.times import DAY_US, NOT_KNOWN_US, US

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

    def line(self, row_index: int) -> str:
        """Return the text of a line, as ``LogFile.lines`` gives it."""
        line_bytes = self.block[self.line_first[row_index] : self.line_first[row_index + 1]]
        return line_bytes.rstrip(b"\r\n").decode("utf-8", "surrogateescape")

    def cell(self, row_index: int, column: int) -> str:
        """Return the text of a cell of a whole line."""
        cell_bytes = self.block[self.cell_first[row_index, column] : self.cell_first[row_index, column + 1] - 1]
        return cell_bytes.decode("utf-8", "surrogateescape")

    def numbers(self, column: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the whole numbers in a column, and which cells are one: at most 15 digits, no zero before others."""
        return _numbers(self.bytes, self.cell_first, column, self.is_whole)

    def wall_clock_us(self, column: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return microseconds as ``local_times.wall_clock_us``, and which cells are ``YYYY-MM-DDTHH:MM:SS``."""
        cell_lengths = self.cell_first[:, column + 1] - 1 - self.cell_first[:, column]
        stamp_rows = np.flatnonzero(self.is_whole & (cell_lengths == len(_STAMP)))
        digits = self.bytes[self.cell_first[stamp_rows, column][:, None] + np.arange(len(_STAMP))] - _STAMP
        year, month, day, hour, minute, second = (digits.astype(np.int64) @ _PARTS).T
        is_stamp = (digits <= np.where(_STAMP == _ZERO, 9, 0)).all(axis=1)
        is_stamp &= (year >= _FIRST_YEAR) & (year <= _LAST_YEAR) & (month >= 1) & (month <= 12)
        is_stamp &= (hour <= 23) & (minute <= 59) & (second <= 59)
        months = (12 * (year - 1970) + month - 1).astype("datetime64[M]")
        days_of_rows = months.astype("datetime64[D]") + (day - 1)
        is_stamp &= days_of_rows.astype("datetime64[M]") == months
        wall_us, is_one = np.zeros(len(self), np.int64), np.zeros(len(self), np.bool_)
        wall_us[stamp_rows] = days_of_rows.astype(np.int64) * DAY_US + ((hour * 60 + minute) * 60 + second) * US
        is_one[stamp_rows] = is_stamp
        return np.where(is_one, wall_us, 0), is_one

    def matches(self, column: int, pattern: re.Pattern[bytes]) -> NDArray[np.bool_]:
        """Return which cells are as ``pattern``."""
        is_match = (pattern.fullmatch(self.block, *cell_place) is not None for cell_place in self._places(column))
        return self.is_whole & np.fromiter(is_match, np.bool_, len(self))

    def _places(self, column: int) -> Iterator[tuple[int, int]]:
        """Return the first byte of each cell of a column, and after the last."""
        return zip(self.cell_first[:, column].tolist(), (self.cell_first[:, column + 1] - 1).tolist(), strict=True)

    def values(
        self, column: int, read: Callable[[str], Any], value_of_text: dict[bytes, Any], otherwise: Any
    ) -> list[Any]:
        """Return ``read(text)`` of each cell of a column with few different texts, ``otherwise`` for no cell.

        ``value_of_text`` remembers earlier ones.
        """
        if len(value_of_text) > _MOST_KNOWN:
            value_of_text.clear()
        text_block, column_values = self.block, []
        for (cell_begin, cell_end), is_whole in zip(self._places(column), self.is_whole.tolist(), strict=True):
            if not is_whole:
                column_values.append(otherwise)
                continue
            cell_bytes = text_block[cell_begin:cell_end]
            if cell_bytes not in value_of_text:
                value_of_text[cell_bytes] = read(cell_bytes.decode("utf-8", "surrogateescape"))
            column_values.append(value_of_text[cell_bytes])
        return column_values


@compiled
def _split(
    text_bytes: NDArray[np.uint8],
    delimiter: int,
    line_first: NDArray[np.int64],
    cell_first: NDArray[np.int64],
    is_whole: NDArray[np.bool_],
) -> None:
    n_cells = cell_first.shape[1] - 1
    row = cell = 0
    for position in range(len(text_bytes)):
        if text_bytes[position] == delimiter:
            cell += 1
            if cell < n_cells:
                cell_first[row, cell] = position + 1
        elif text_bytes[position] == _NEWLINE:
            end = position
            while end > line_first[row] and text_bytes[end - 1] == _RETURN:
                end -= 1
            is_whole[row] = cell + 1 == n_cells
            cell_first[row, n_cells] = end + 1
            row, cell = row + 1, 0
            line_first[row] = position + 1
            if row < len(cell_first):
                cell_first[row, 0] = position + 1


@compiled
def _numbers(
    text_bytes: NDArray[np.uint8], cell_first: NDArray[np.int64], column: int, is_whole: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    numbers, is_one = np.zeros(len(is_whole), np.int64), np.zeros(len(is_whole), np.bool_)
    for row in range(len(is_whole)):
        begin, end = cell_first[row, column], cell_first[row, column + 1] - 1
        if is_whole[row] and 0 < end - begin <= _MOST_DIGITS and (text_bytes[begin] != _ZERO or end == begin + 1):
            is_one[row] = True
            for position in range(begin, end):
                digit = int(text_bytes[position]) - _ZERO
                is_one[row] &= 0 <= digit <= 9
                numbers[row] = 10 * numbers[row] + digit
    return numbers, is_one


_NONE, _UNREADABLE = -1, -2
_NO_RUN, _COMPLETED, _FINISHED = range(3)
_JOB_ID = re.compile(rb"\d+(_\d+)?")  # of a job, or of a started task of an array
_LONGEST_US = 1_000_000 * DAY_US
"""Longest running time and limit that are read here: sums with times stay far below 64 bits."""


class OrdinaryRowReader:
    """Converter of the ordinary rows of one file, for ``command_tables.rows_below_headers``.

    Parameters
    ----------
    record, rows, clock
        As for single rows.

    Attributes
    ----------
    layout
        Columns of the next row, ``None`` before the header.
    """

    def __init__(self, record: ScheduleRecord, rows: JobRows, clock: SlurmClock) -> None:
        self._record, self._rows, self._clock = record, rows, clock
        self._known_nodes = KnownNodes(record)
        self._code_of_text: dict[str, dict[bytes, int]] = {}
        self.layout: Layout | None = None

    def read_block(self, block: bytes, first_number: int) -> Iterator[tuple[int, str]]:
        """Add the ordinary rows of a block of whole lines; yield number and text of each other line, in its place.

        ``layout`` may change with each of them.
        """
        while block:
            layout = self.layout
            text_rows, jobs, n_rows = self._ordinary_jobs(block, layout)
            ordinary_row = np.empty(0, np.int64) if jobs is None else jobs.row
            is_other = np.ones(n_rows, np.bool_)
            is_other[ordinary_row] = False
            n_jobs_done = 0
            for row_index in np.flatnonzero(is_other).tolist():
                n_before = int(np.searchsorted(ordinary_row, row_index))
                self._add(jobs, n_jobs_done, n_before)
                n_jobs_done = n_before
                yield first_number + row_index, text_rows.line(row_index)
                if self.layout is not layout:
                    self._code_of_text.clear()  # what a text means may depend on the other columns
                    n_rows = row_index + 1
                    break
            else:
                self._add(jobs, n_jobs_done, len(ordinary_row))
            block, first_number = block[text_rows.line_first[n_rows] :], first_number + n_rows

    def _ordinary_jobs(self, block: bytes, layout: Layout | None) -> tuple[TextRows, OrdinaryJobs | None, int]:
        """Return the rows of a block, the ordinary jobs of the first ones, and the number of these."""
        if layout is None or len(layout.delimiter) != 1 or not layout.delimiter.isascii():
            text_rows = TextRows(block, "|", 0)
            return text_rows, None, len(text_rows)
        text_rows = TextRows(block, layout.delimiter, len(layout.names) + layout.is_trailing)
        return text_rows, *self._jobs(text_rows, layout)

    def _add(self, jobs: OrdinaryJobs | None, begin: int, end: int) -> None:
        if jobs is not None and begin < end:
            self._record.report.read(end - begin)
            self._clock.note_local()
            self._rows.add_ordinary(jobs.part(begin, end))

    def _jobs(self, text_rows: TextRows, layout: Layout) -> tuple[OrdinaryJobs | None, int]:
        """Return the ordinary jobs of the first rows, and the number of these rows."""
        column_of = {column_name: layout.index(column_name) for column_name in layout.names}
        # separators inside quotes belong to cells, except in tables of sacct's own separator
        is_quoted = layout.delimiter != "|" and b'"' in text_rows.block
        if is_quoted or not {"jobidraw", "end", "nodelist"} <= column_of.keys():
            return None, len(text_rows)
        job_numbers, is_ordinary = text_rows.numbers(column_of["jobidraw"])
        if layout.is_trailing:
            is_ordinary &= text_rows.cell_first[:, -1] - text_rows.cell_first[:, -2] == 1
        if "jobid" in column_of:
            is_ordinary &= text_rows.matches(column_of["jobid"], _JOB_ID)
        start_us, is_start = self._times(text_rows, column_of["start"])
        end_us, is_end = self._times(text_rows, column_of["end"])
        count, is_count = np.zeros(len(text_rows), np.int64), np.ones(len(text_rows), np.bool_)
        count_column = fields.count_column(column_of)
        if count_column in column_of:
            count, is_count = text_rows.numbers(column_of[count_column])
            is_count &= count > 0
        elapsed_us = self._elapsed_us(text_rows, column_of)
        off_us = np.where(elapsed_us == _NONE, 0, end_us - start_us - elapsed_us)
        limit_us = self._limit_us(text_rows, column_of)
        is_ordinary &= is_start & is_end & (end_us > start_us) & is_count & (limit_us != _UNREADABLE)
        is_ordinary &= (elapsed_us != _UNREADABLE) & (abs(off_us) <= SLACK_US)
        run_codes = self._column_codes(text_rows, column_of, "state", _run_code)
        is_ordinary &= run_codes != _NO_RUN
        is_ordinary &= self._column_codes(text_rows, column_of, "suspended", _pause_code) <= 0
        is_ordinary &= self._column_codes(text_rows, column_of, "restarts", lambda cell: int(cell != "0")) <= 0
        if "cluster" in column_of:
            ours = ("", self._rows.first_cluster)
            clusters = text_rows.values(column_of["cluster"], str, self._code_of_text.setdefault("cluster", {}), None)
            is_ordinary &= np.fromiter((cluster in ours for cluster in clusters), np.bool_, len(text_rows))
        eligible_us, is_read = self._eligible_us(text_rows, column_of)
        is_ordinary &= is_read
        job_rows = np.flatnonzero(is_ordinary)
        self._known_nodes.learn()
        list_column = column_of["nodelist"]
        first_byte, next_first = (text_rows.cell_first[job_rows, column] for column in (list_column, list_column + 1))
        n_nodes, node_ids = self._known_nodes.read_lists(text_rows.bytes, first_byte, next_first - 1, count[job_rows])
        n_rows = len(text_rows) if len(n_nodes) == len(job_rows) else int(job_rows[len(n_nodes)])
        job_rows, n_nodes = job_rows[: len(n_nodes)][n_nodes > 0], n_nodes[n_nodes > 0]
        first_node = first_of_each(n_nodes)
        limit_end_us = np.where(limit_us > 0, start_us + limit_us, OPEN_END)
        kind = self._kinds(text_rows, column_of)
        columns = start_us, end_us, limit_end_us, job_numbers, eligible_us, kind
        start_us, end_us, limit_end_us, job_numbers, eligible_us, kind = (column[job_rows] for column in columns)
        job_columns = start_us, end_us, limit_end_us, job_numbers, n_nodes, eligible_us, kind
        submit = column_of.get("submit")
        return OrdinaryJobs(
            job_rows,
            JobIntervals(*job_columns, first_node, node_ids),
            run_codes[job_rows] == _COMPLETED,
            lambda job_rows: None if submit is None else text_rows.cell(job_rows, submit),
            "restarts" in column_of,
        ), n_rows

    def _times(self, text_rows: TextRows, column: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        wall_us, is_time = text_rows.wall_clock_us(column)
        time_us, is_plain = self._clock.plain_us(wall_us)
        return time_us, is_time & is_plain

    def _eligible_us(
        self, text_rows: TextRows, column_of: Mapping[str, int]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the times from which jobs could have started, and which cells are a plain one or none."""
        column_name = fields.eligible_column(column_of)
        if column_name not in column_of:
            return np.full(len(text_rows), NOT_KNOWN_US), np.ones(len(text_rows), np.bool_)
        time_us, is_read = self._times(text_rows, column_of[column_name])
        time_us[~is_read] = NOT_KNOWN_US
        for row in np.flatnonzero(text_rows.is_whole & ~is_read).tolist():
            is_read[row] = text_rows.cell(row, column_of[column_name]).lower() in fields.ABSENT_TIMES
        return time_us, is_read

    def _kinds(self, text_rows: TextRows, column_of: Mapping[str, int]) -> NDArray[np.int64]:
        """Return the numbers of the rows' pairs of partition and QOS."""
        pairs = []
        for column_name in ("partition", "qos"):
            known = self._code_of_text.setdefault(column_name, {})
            is_there = column_name in column_of
            column = text_rows.values(column_of[column_name], str, known, "") if is_there else [""] * len(text_rows)
            pairs.append(column)
        return np.fromiter(map(self._record.kinds.of, *pairs), np.int64, len(text_rows))

    def _elapsed_us(self, text_rows: TextRows, column_of: Mapping[str, int]) -> NDArray[np.int64]:
        """Return the running times, ``_NONE`` or ``_UNREADABLE``."""
        if "elapsedraw" not in column_of:
            return self._column_codes(text_rows, column_of, "elapsed", _duration_code)
        seconds, is_number = text_rows.numbers(column_of["elapsedraw"])
        return np.where(is_number & (seconds <= _LONGEST_US // US), seconds * US, _UNREADABLE)

    def _limit_us(self, text_rows: TextRows, column_of: Mapping[str, int]) -> NDArray[np.int64]:
        """Return the time limits, ``_NONE`` or ``_UNREADABLE``: there are few, and some are words."""
        if "timelimitraw" not in column_of:
            return self._column_codes(text_rows, column_of, "timelimit", _duration_code)
        without = _UNREADABLE if "timelimit" in column_of else _NONE
        return self._column_codes(text_rows, column_of, "timelimitraw", lambda cell: _minutes_code(cell, without))

    def _column_codes(
        self, text_rows: TextRows, column_of: Mapping[str, int], column_name: str, code: Callable[[str], int]
    ) -> NDArray[np.int64]:
        """Return ``code`` of each cell of a column with few texts; ``_NONE`` for all if there is no such column."""
        if column_name not in column_of:
            return np.full(len(text_rows), _NONE)
        code_of_text = self._code_of_text.setdefault(column_name, {})
        return np.array(text_rows.values(column_of[column_name], code, code_of_text, _UNREADABLE), np.int64)


def _run_code(cell_text: str) -> int:
    state = fields.job_state(cell_text)
    return _NO_RUN if state not in fields.FINISHED_STATES else _COMPLETED if state == "COMPLETED" else _FINISHED


def _pause_code(cell_text: str) -> int:
    return fields.duration_us(cell_text) or 0


def _duration_code(cell_text: str) -> int:
    duration_us = fields.duration_us(cell_text)
    return _NONE if duration_us is None else duration_us if duration_us <= _LONGEST_US else _UNREADABLE


def _minutes_code(cell_text: str, without: int) -> int:
    minutes = fields.whole(cell_text)
    return without if minutes is None else 60 * US * minutes if minutes <= _LONGEST_US // (60 * US) else _UNREADABLE
