"""Tables in Parquet and CSV files: first cells, and the cells of chosen columns, row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import islice
from typing import Any

from bfreplay.datasets.ingest.delimited import CUT_END, CsvTable, rows_of
from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.import_report import ImportReport
from bfreplay.datasets.ingest.table.cells import is_missing
from bfreplay.datasets.ingest.table.clock import Instant, Wall
from bfreplay.datasets.ingest.table.columns import Columns
from bfreplay.documents import Cell
from bfreplay.errors import InputError

MAGIC = b"PAR1"
BATCH_ROWS = 16_384
_LOOKED_AT = 50


def is_parquet(file: LogFile) -> bool:
    """Return whether the content begins like Parquet."""
    return file.head().startswith(MAGIC)


class ParquetTable:
    """Table in a Parquet file.

    Raises
    ------
    InputError
        Damaged, or compressed as a whole (Parquet must be read from its end).
    """

    def __init__(self, file: LogFile) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        from bfreplay.datasets.arrow_columns import text_columns

        self.file = file
        with file.path.open("rb") as stream:
            if stream.read(len(MAGIC)) != MAGIC:
                raise file.error(
                    "the Parquet file is compressed as a whole, so it cannot be read in pieces",
                    expected="a plain Parquet file (its columns are compressed inside)",
                    fix="unpack it first, e.g. with gunzip",
                )
        try:
            self._schema = pq.read_schema(file.path)
            self._parquet = pq.ParquetFile(file.path, read_dictionary=text_columns(self._schema))
        except (pa.ArrowException, OSError, ValueError) as error:
            raise self._damage_error(error) from error
        self.names = tuple(self._schema.names)

    def is_number(self, name: str) -> bool:
        """Return whether a column has numbers."""
        import pyarrow.types as kinds

        kind = self._schema.field(name).type
        return bool(kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind))

    def rows(self, names: Sequence[str]) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """Yield row numbers from 1, and the cells of the columns ``names`` in that order.

        Timestamps come as ``Instant`` (with a zone) or ``Wall`` (without), other values as Python values.

        Raises
        ------
        InputError
            The file is damaged.
        """
        import pyarrow as pa

        from bfreplay.datasets.arrow_columns import refuse_swollen_texts

        number = 0
        wanted = list(dict.fromkeys(names))
        batches = self._parquet.iter_batches(batch_size=BATCH_ROWS, columns=wanted, use_threads=False)
        while True:
            try:
                batch = next(batches, None)
                if batch is None:
                    return
                refuse_swollen_texts(batch, self.file.name)
                columns = [_values(batch.column(wanted.index(name))) for name in names]
            except (pa.ArrowException, OSError, ValueError, OverflowError) as error:  # text that is not UTF-8, too
                raise self._damage_error(error) from error
            for cells in zip(*columns, strict=True):
                number += 1
                yield number, cells

    def _damage_error(self, error: BaseException) -> InputError:
        return self.file.error(
            f"the Parquet file cannot be read: {' '.join(str(error).split())[:200]}",
            expected="a whole Parquet file",
            fix="write or copy the file again",
        )


def _values(column: Any) -> list[Any]:
    import pyarrow as pa
    import pyarrow.types as kinds

    kind = column.type
    if kinds.is_timestamp(kind):
        made = Wall if kind.tz is None else Instant
        # safe=False: parts of a microsecond are cut off
        numbers = column.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64()).to_pylist()
        return [None if number is None else made(number) for number in numbers]
    if kinds.is_duration(kind):
        column = column.cast(pa.duration("us"), safe=False)
    if kinds.is_decimal(kind):
        return [str(value) if isinstance(value, Decimal) else value for value in column.to_pylist()]
    return list(column.to_pylist())


Table = CsvTable | ParquetTable


def open_table(file: LogFile, delimiter: str | None = None, columns: Sequence[str] | None = None) -> Table:
    """Return the table in a file; ``InputError`` for another content."""
    return ParquetTable(file) if is_parquet(file) else CsvTable(file, delimiter, columns)


def first_cells(table: Table, name: str) -> list[Any]:
    """Return the first cells of a column that are not missing, at most 50."""
    if isinstance(table, ParquetTable):
        values = [cells[0] for _, cells in islice(table.rows([name]), 2 * _LOOKED_AT)]
    else:
        place = table.names.index(name)
        head = enumerate(table.file.head_lines()[: 2 * _LOOKED_AT], 1)
        rows = [row for row in rows_of(head, table.delimiter, len(table.names)) if not row.text.startswith("#")]
        values = [row.cells[place].strip() for row in rows if row.cells is not None and not table.is_header(row)]
    return [value for value in values if not is_missing(value)][:_LOOKED_AT]


def looks_like_count(table: Table) -> Callable[[str], bool]:
    """Return whether a column has plain numbers; in CSV, whether most of its first cells do."""
    if isinstance(table, ParquetTable):
        return table.is_number

    def are_counts(name: str) -> bool:
        cells = first_cells(table, name)
        # most of them: a spoilt cell does not change the kind of column
        return 2 * sum(1 for cell in cells if cell.isascii() and cell.isdigit()) > len(cells)

    return are_counts


def rows_by_role(
    table: Table, columns: Columns, roles: Sequence[str], report: ImportReport, unreadable: str
) -> Iterator[tuple[int, Mapping[str, Cell]]]:
    """Yield line (or row) numbers and the cells of each role; skip rows that cannot be split, with a warning."""
    names = [columns.by_role[role] for role in roles]
    if isinstance(table, ParquetTable):
        for number, values in table.rows(names):
            report.read()
            yield number, dict(zip(roles, values, strict=True))
        return
    places = [table.names.index(name) for name in names]
    for row in table.rows():
        report.read()
        if row.cells is None:
            report.skip_with_warning(
                "a row with another number of columns", table.file.name, row.line, row.text, warning=unreadable
            )
        elif table.is_header(row):
            report.skip("the header again", table.file.name, row.line, row.text)
        else:
            cells = [cell.strip() for cell in row.cells] if table.is_padded else row.cells
            yield row.line, {role: cells[place] for role, place in zip(roles, places, strict=True)}
    if table.is_cut:
        report.warn(CUT_END, table.file.name, table.last_line)
