"""Tables in files, CSV or Parquet alike: their first cells, and the cells of the columns that matter, row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from bfreplay.datasets.occupancy.lint import Lint
from bfreplay.datasets.scheduler_logs.log_file import LogFile
from bfreplay.datasets.scheduler_logs.table.cells import is_missing
from bfreplay.datasets.scheduler_logs.table.columns import Columns
from bfreplay.datasets.scheduler_logs.table.csv_rows import CsvTable, rows_of
from bfreplay.datasets.scheduler_logs.table.parquet_rows import ParquetTable, is_parquet
from bfreplay.documents import Cell

CUT_END = "the last line has no end: the file may have been cut"
_LOOKED_AT = 50

Table = CsvTable | ParquetTable


def open_table(file: LogFile, delimiter: str | None = None, columns: Sequence[str] | None = None) -> Table:
    """Return the table in a file. ``InputError`` if it is none."""
    return ParquetTable(file) if is_parquet(file) else CsvTable(file, delimiter, columns)


def first_cells(table: Table, name: str) -> list[Any]:
    """The first cells of a column that are not missing, at most 50."""
    if isinstance(table, ParquetTable):
        values = [cells[0] for _, cells in islice(table.rows([name]), 2 * _LOOKED_AT)]
    else:
        place = table.names.index(name)
        head = enumerate(table.file.head_lines()[: 2 * _LOOKED_AT], 1)
        rows = [row for row in rows_of(head, table.delimiter, len(table.names)) if not row.text.startswith("#")]
        values = [row.cells[place].strip() for row in rows if row.cells is not None and not table.is_header(row)]
    return [value for value in values if not is_missing(value)][:_LOOKED_AT]


def looks_like_count(table: Table) -> Callable[[str], bool]:
    """Tell of a column whether it has plain numbers: in CSV, whether most of its first cells are."""
    if isinstance(table, ParquetTable):
        return table.is_number

    def are_counts(name: str) -> bool:
        cells = first_cells(table, name)
        # most of them: a cell that is spoilt does not change what the column is
        return 2 * sum(1 for cell in cells if cell.isascii() and cell.isdigit()) > len(cells)

    return are_counts


def rows_by_role(
    table: Table, columns: Columns, roles: Sequence[str], lint: Lint, unreadable: str
) -> Iterator[tuple[int, Mapping[str, Cell]]]:
    """Line (or row) numbers and the cells of each role; rows that cannot be split are dropped and doubted."""
    names = [columns.by_role[role] for role in roles]
    if isinstance(table, ParquetTable):
        for number, values in table.rows(names):
            lint.read()
            yield number, dict(zip(roles, values, strict=True))
        return
    places = [table.names.index(name) for name in names]
    for row in table.rows():
        lint.read()
        if row.cells is None:
            lint.drop("a row with another number of columns", table.file.name, row.line, row.text)
            lint.doubt(unreadable, table.file.name, row.line, row.text)
        elif table.is_header(row):
            lint.drop("the header again", table.file.name, row.line, row.text)
        elif table.is_padded:
            yield row.line, {role: row.cells[place].strip() for role, place in zip(roles, places, strict=True)}
        else:
            yield row.line, {role: row.cells[place] for role, place in zip(roles, places, strict=True)}
    if table.is_cut:
        lint.doubt(CUT_END, table.file.name, table.last_line)
