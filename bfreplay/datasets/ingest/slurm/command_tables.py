"""Tables that Slurm's commands print: a row is a line, under a header that may occur in the middle again.

An extra separator belongs to the column of free text; a broken row spoils no other.
"""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from bfreplay.datasets.ingest.delimited import CUT_END, split
from bfreplay.datasets.ingest.hostlists import expand_nodes
from bfreplay.datasets.ingest.log_file import AS_READ, JOINED_ROWS, LogFile
from bfreplay.datasets.ingest.occupancy.import_report import ImportReport
from bfreplay.datasets.ingest.slurm.slurm_cells import count_column

COMMAND_DELIMITERS = ("|", "\t", ";", ",", "^")
"""Separators of tables that Slurm's commands print, the usual one first."""

TOO_MANY_CELLS = "more cells than columns"
TOO_FEW_CELLS = "fewer cells than columns"
_AMBIGUOUS = "\0"
_MOST_SURPLUS, _MOST_ASSIGNMENTS = 200, 100
_COLUMN_FORMS = {
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

_FREE_TEXT = re.compile(r"jobname|(admin|system)?comment|submitline|workdir|reason|extra|std(in|out|err)|container")
_TEXT_WITH_COMMAS = re.compile(r"nodelist|nodenames|nodes|flags|licenses|constraints|qosreq|.*tres.*", re.DOTALL)

BLOCK_BYTES = 1 << 20
"""Text that a ``BulkReader`` gets at once: little, for rows with a name that is new in their block are read singly."""


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
    free_columns
        Columns whose text may contain a separator.
    job_column
        Column of the job number, in which no header starts with a digit; -1 if absent.
    """

    names: tuple[str, ...]
    delimiter: str
    is_trailing: bool
    free_columns: tuple[int, ...]
    job_column: int

    @classmethod
    def from_names(cls, column_names: Sequence[str], delimiter: str, is_trailing: bool = False) -> Layout:
        """Return the layout with these columns, named in any case."""
        lower_names = tuple(name.strip().lower() for name in column_names)
        free_text = [_FREE_TEXT, _TEXT_WITH_COMMAS] if delimiter == "," else [_FREE_TEXT]
        free_columns = tuple(i for i, name in enumerate(lower_names) if any(form.fullmatch(name) for form in free_text))
        job_column = next((lower_names.index(name) for name in ("jobidraw", "jobid") if name in lower_names), -1)
        return cls(lower_names, delimiter, is_trailing, free_columns, job_column)

    def index(self, *column_names: str) -> int:
        """Return the position of the first of these columns that exists, -1 if none does."""
        return next((self.names.index(column_name) for column_name in column_names if column_name in self.names), -1)

    def cells(self, line_text: str) -> list[str] | None:
        """Return the cells of a line, as many as columns; ``None`` if they cannot be assigned.

        An extra separator belongs to a column of free text. With several, the other columns tell which: all of them
        must look as Slurm writes them. If they leave it open, the columns from the first to the last of free text
        become unreadable cells, and the others are counted from both ends.
        """
        raw_cells = _split_line(line_text, self.delimiter)
        if raw_cells is None:
            return None
        if (self.is_trailing and (raw_cells.pop() or not raw_cells)) or self._n_rows(raw_cells) > 1:
            return None
        n_surplus = len(raw_cells) - len(self.names)
        if n_surplus == 0:
            return raw_cells
        if n_surplus < 0 or not self.free_columns:
            return None
        first, last = self.free_columns[0], self.free_columns[-1]
        after = last + 1 + n_surplus
        if first == last:
            return [*raw_cells[:first], self.delimiter.join(raw_cells[first:after]), *raw_cells[after:]]
        n_candidates = _MOST_ASSIGNMENTS if n_surplus <= _MOST_SURPLUS else 0
        assignments = filter(self._count_matches_list, islice(self._assignments(raw_cells, 0, 0, set()), n_candidates))
        candidates = sorted(assignments, key=self._n_empty_cells)  # by an end, a cell may be empty
        n_empty = [self._n_empty_cells(cells) for cells in candidates]
        if len(candidates) == 1 or (1 < len(candidates) < _MOST_ASSIGNMENTS and n_empty[0] < n_empty[1]):
            return candidates[0]
        return raw_cells[:first] + [_AMBIGUOUS] * (last - first + 1) + raw_cells[after:]

    def _assignments(
        self, raw_cells: Sequence[str], column: int, start: int, dead_ends: set[tuple[int, int]]
    ) -> Iterator[list[str]]:
        """Yield the cells from a column on, made of the raw cells from ``start`` on, in all ways that Slurm may write.

        Of columns without a form side by side, the first of free text gets all, for it makes no difference which does.
        ``dead_ends`` has the places from which there is none.
        """
        if column == len(self.names):
            if start == len(raw_cells):
                yield []
            return
        if (column, start) in dead_ends:
            return
        column_form = _COLUMN_FORMS.get(self.names[column])
        with_form = next((index for index in range(column - 1, -1, -1) if self.names[index] in _COLUMN_FORMS), -1)
        is_first_free = not any(index in self.free_columns for index in range(with_form + 1, column))
        takes_surplus = column in self.free_columns and is_first_free
        n_surplus = len(raw_cells) - start - (len(self.names) - column) if takes_surplus else 0
        has_assignment = False
        for cell_end in range(start + 1, start + 2 + n_surplus):
            cell_text = self.delimiter.join(raw_cells[start:cell_end])
            if column_form is None or column_form.fullmatch(cell_text):
                for following in self._assignments(raw_cells, column + 1, cell_end, dead_ends):
                    has_assignment = True
                    yield [cell_text, *following]
        if not has_assignment:
            dead_ends.add((column, start))

    def _n_empty_cells(self, cells: Sequence[str]) -> int:
        return sum(not cell_text and name in _COLUMN_FORMS for name, cell_text in zip(self.names, cells, strict=True))

    def _count_matches_list(self, cells: Sequence[str]) -> bool:
        """Return whether the number of nodes is that of the list, where there are both."""
        by_name = dict(zip(self.names, cells, strict=True))
        node_list, count_text = by_name.get("nodelist", ""), by_name.get(count_column(by_name))
        if not count_text or node_list.lower() in ("", "none assigned", "(null)"):
            return True
        try:
            return len(set(expand_nodes(node_list))) == int(count_text)
        except ValueError:
            return False

    def surplus_reason(self) -> str:
        """Return the reason to skip a row with more cells than columns, with the columns to leave out."""
        free_names = ", ".join(self.names[column_index] for column_index in self.free_columns)
        return f"{TOO_MANY_CELLS}: a separator inside {free_names or 'a cell'} (do not export it)"

    def split_joined_rows(self, line_text: str) -> tuple[int, list[str]]:
        """Return the number of rows on a line, and these rows, if it is more than one and shows where each ends.

        Each but the first begins with a job number or a header. Without a separator at the end of rows nothing tells
        where the last cell ends.
        """
        raw_cells = _split_line(line_text, self.delimiter) or []
        n_rows, n_cells = self._n_rows(raw_cells[:-1] if self.is_trailing else raw_cells), len(self.names)
        begins = range(0, n_rows * n_cells, n_cells) if n_rows > 1 and self.is_trailing else ()
        return n_rows, [self.delimiter.join([*raw_cells[begin : begin + n_cells], ""]) for begin in begins]

    def _n_rows(self, cells: list[str]) -> int:
        step = len(self.names) - (not self.is_trailing)  # the last cell of a row is joined to the first of the next
        n_rows, remainder = divmod(len(cells) - (not self.is_trailing), step) if step else (1, 0)
        if remainder or n_rows < 2 or self.job_column < 0:
            return n_rows if n_rows > 1 and not remainder and self.delimiter == "|" else 1
        job_name = self.names[self.job_column]
        starts = [cells[row_number * step + self.job_column].lower() for row_number in range(1, n_rows)]
        return n_rows if all(first_text[-1:].isdigit() or first_text.endswith(job_name) for first_text in starts) else 1

    def is_ambiguous(self, cells: Sequence[str], needed_names: Sequence[str]) -> bool:
        """Return whether a surplus separator leaves the cell of a needed column open; a list of nodes may be."""
        positions = [self.index(column_name) for column_name in needed_names if column_name != "nodelist"]
        return any(position >= 0 and cells[position] == _AMBIGUOUS for position in positions)

    def check_names_once(self, needed_names: Sequence[str], log_file: LogFile) -> None:
        """Raise ``InputError`` if a needed column occurs twice."""
        for column_name in needed_names:
            if self.names.count(column_name) > 1:
                raise log_file.error(
                    "a column occurs twice",
                    column=column_name,
                    value=self.delimiter.join(self.names),
                    expected="each column once",
                    fix="name each column once after -o (or format=)",
                )


def _split_line(line_text: str, delimiter: str) -> list[str] | None:
    if delimiter == "|" or '"' not in line_text or len(delimiter) > 1:
        return line_text.split(delimiter)
    try:
        return split(line_text, delimiter)
    except csv.Error:
        return None


def header_of(line_text: str, delimiter: str | None) -> Layout | None:
    """Return the layout of a header line, by the separator that gives most names; ``None`` without a separator."""
    layouts = []
    for candidate in (delimiter,) if delimiter else COMMAND_DELIMITERS:
        names = _split_line(line_text.lstrip("\ufeff"), candidate) or []
        if len(names) > 1:
            is_trailing = names[-1] == ""
            layouts.append(Layout.from_names(names[:-1] if is_trailing else names, candidate, is_trailing))
    return max(layouts, key=lambda layout: len(layout.names), default=None)


def find_header(log_file: LogFile, delimiter: str | None, is_header: Callable[[Layout], bool]) -> Layout | None:
    """Return the layout of a header of the wanted kind among the first 20 lines; ``None`` without one."""
    layouts = (header_of(line_text, delimiter) for line_text in log_file.head_lines()[:20])
    return next((layout for layout in layouts if layout is not None and is_header(layout)), None)


def text_lines(
    log_file: LogFile, report: ImportReport, bulk_reader: BulkReader | None = None
) -> Iterator[tuple[int, str]]:
    """Yield number (from 1) and text of each line that is not blank; warn of a last line without its end.

    Lines that ``bulk_reader`` reads are not among them.
    """
    lines = log_file.lines_with_ends() if bulk_reader is None else _lines_for_single_rows(log_file, bulk_reader)
    for line_number, line_text, is_whole in lines:
        report.read(0)  # no warning of the row before is meant
        if line_text and not line_text.isspace():
            yield line_number, line_text
        if not is_whole:
            report.warn(CUT_END, log_file.name, line_number)


class BulkReader(Protocol):
    """Reader of many rows at a time.

    Attributes
    ----------
    layout
        Columns of the next row, ``None`` before the header.
    """

    layout: Layout | None

    def read_block(self, block: bytes, first_number: int) -> Iterator[tuple[int, str]]:
        """Read the rows that it can of a block of whole lines; yield number and text of each other line, in its place.

        ``first_number`` is the number of the first line.
        """


def _lines_for_single_rows(log_file: LogFile, bulk_reader: BulkReader) -> Iterator[tuple[int, str, bool]]:
    """Yield lines as ``LogFile.lines_with_ends``, but not those that ``bulk_reader`` reads."""
    first_number = 1
    for block in log_file.blocks(BLOCK_BYTES):
        after_last_line = block.rfind(b"\n") + 1
        for line_number, line_text in bulk_reader.read_block(block[:after_last_line], first_number):
            yield line_number, line_text, True
        first_number += block.count(b"\n")
        if after_last_line < len(block):
            yield first_number, block[after_last_line:].rstrip(b"\r").decode("utf-8", "surrogateescape"), False


def rows_below_headers(
    log_file: LogFile,
    report: ImportReport,
    delimiter: str | None,
    is_header: Callable[[Layout], bool],
    needed_names: Sequence[str],
    layout: Layout | None = None,
    bulk_reader: BulkReader | None = None,
) -> Iterator[tuple[int, str, list[str], Layout]]:
    """Yield number, text, cells and columns of each row of a table printed by a Slurm command.

    Concatenated exports have a header in the middle, with other columns.

    Parameters
    ----------
    needed_names
        Needed columns, which must not occur twice.
    layout
        Columns of the rows before any header; ``None``: such lines are skipped.
    bulk_reader
        Reads rows, which are then not among the yielded ones, and must count them in ``report``.
    """
    if layout is not None:
        layout.check_names_once(needed_names, log_file)
    if bulk_reader is not None:
        bulk_reader.layout = layout
    numbered_lines = text_lines(log_file, report, bulk_reader)
    ahead: deque[tuple[int, str]] = deque()
    while following := ahead.popleft() if ahead else next(numbered_lines, None):
        number, line = following
        n_rows, row_texts = (1, []) if layout is None else layout.split_joined_rows(line)
        if n_rows > 1:
            report.read(0)
            report.warn(JOINED_ROWS, log_file.name, number, line, aside=AS_READ if row_texts else "")
            ahead.extend((number, row_text) for row_text in row_texts)
            if not row_texts:
                report.read(n_rows)
                report.skip(JOINED_ROWS, log_file.name, number, line, count=n_rows)
            continue
        cells = None if layout is None else layout.cells(line)
        if layout is None or cells is None or layout.job_column < 0 or not cells[layout.job_column][:1].isdigit():
            header = header_of(line, delimiter if layout is None else layout.delimiter)
            if header is not None and is_header(header):
                header.check_names_once(needed_names, log_file)
                layout = header
                if bulk_reader is not None:
                    bulk_reader.layout = layout
                continue
        report.read()
        if layout is None:
            report.skip("a line before the header", log_file.name, number, line)
        elif cells is None:
            many = line.count(layout.delimiter) >= len(layout.names)
            report.skip_with_warning(layout.surplus_reason() if many else TOO_FEW_CELLS, log_file.name, number, line)
        elif layout.is_ambiguous(cells, needed_names):
            report.skip_with_warning(layout.surplus_reason(), log_file.name, number, line)
        else:
            yield number, line, cells, layout
