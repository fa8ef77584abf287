"""Rows of Parquet files, a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from bfreplay.datasets.scheduler_logs.log_file import LogFile
from bfreplay.datasets.scheduler_logs.table.times import Instant, Wall
from bfreplay.errors import InputError

MAGIC = b"PAR1"
BATCH_ROWS = 16_384


def is_parquet(file: LogFile) -> bool:
    """Whether the content begins as Parquet does."""
    return file.head().startswith(MAGIC)


class ParquetTable:
    """A Parquet file.

    Raises
    ------
    InputError
        It is damaged, or compressed as a whole (Parquet must be read from its end).
    """

    def __init__(self, file: LogFile) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        from bfreplay.datasets.arrow_columns import text_columns

        self.file = file
        with file.path.open("rb") as stream:
            if stream.read(len(MAGIC)) != MAGIC:
                raise InputError(
                    "the Parquet file is compressed as a whole, so it cannot be read in pieces",
                    file=file.name,
                    expected="a plain Parquet file (its columns are compressed inside)",
                    fix="unpack it first, e.g. with gunzip",
                )
        try:
            self._schema = pq.read_schema(file.path)
            self._parquet = pq.ParquetFile(file.path, read_dictionary=text_columns(self._schema))
        except (pa.ArrowException, OSError, ValueError) as error:
            raise self._damaged(error) from error
        self.names = tuple(self._schema.names)

    def is_number(self, name: str) -> bool:
        """Whether the column of that name has numbers."""
        import pyarrow.types as kinds

        kind = self._schema.field(name).type
        return bool(kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind))

    def rows(self, names: Sequence[str]) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """Row numbers from 1, and the cells of the columns ``names`` in that order.

        Timestamps come as ``Instant`` (with a zone) or ``Wall`` (without), other values as Python has them.

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
            except (pa.ArrowException, OSError, ValueError, OverflowError) as error:  # text that is no UTF-8, too
                raise self._damaged(error) from error
            for cells in zip(*columns, strict=True):
                number += 1
                yield number, cells

    def _damaged(self, error: BaseException) -> InputError:
        return InputError(
            f"the Parquet file cannot be read: {' '.join(str(error).split())[:200]}",
            file=self.file.name,
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
