"""Logs in Parquet: read in batches, written with a snapshot, the window and the inventory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bfreplay.datasets.arrow_columns import refuse_swollen_texts, text_columns
from bfreplay.datasets.log.event_tables import PARQUET_KEY, LogHeader, empty_log, read_columns, table_events
from bfreplay.datasets.log.events import DEFAULT_BATCH_ROWS, NodeEvents
from bfreplay.datasets.log.states import STATE_WORDS, EventBatch
from bfreplay.errors import InputError

CAUSES = ("window_begin",)


def read_parquet(path: Path) -> NodeEvents:
    """Return a log over a Parquet file, own or foreign; rows are read pass by pass.

    Raises
    ------
    InputError
        The file is not Parquet, cut or damaged, empty, or has other columns.
    """
    with open_parquet(path) as parquet:
        columns, texts = parquet.schema_arrow.names, text_columns(parquet.schema_arrow)
        text = (parquet.schema_arrow.metadata or {}).get(PARQUET_KEY)
        if parquet.metadata.num_rows == 0:
            raise empty_log(path)
    header = None if text is None else LogHeader.from_text(text, path)
    read = read_columns(columns)
    return table_events(path, columns, partial(_record_batches, path, read, texts), header, "parquet")


def open_parquet(path: Path, as_dictionary: Sequence[str] = ()) -> Any:
    """Open a Parquet file; raise ``InputError`` if it is none."""
    try:
        # buffered pages and no read-ahead: memory stays that of one batch, however long the file is
        return pq.ParquetFile(path, read_dictionary=as_dictionary, buffer_size=1 << 20, pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        raise _read_error(path, error, rows=0) from error


def _record_batches(path: Path, columns: list[str], texts: list[str], rows: int) -> Iterator[Any]:
    for batch in read_batches(path, columns, texts, rows):
        time = batch.column("time")
        if pa.types.is_dictionary(time.type):
            batch = batch.set_column(batch.schema.get_field_index("time"), "time", time.dictionary_decode())
        yield batch


def read_batches(path: Path, columns: Sequence[str], texts: Sequence[str], rows: int) -> Iterator[Any]:
    """Yield columns of a Parquet file in batches of about ``rows`` rows, those in ``texts`` as dictionaries.

    Raises
    ------
    InputError
        The file is not Parquet, cut or damaged, or has texts that are far too long.
    """
    done = 0
    with open_parquet(path, texts) as parquet:
        batches = parquet.iter_batches(batch_size=rows, columns=columns, use_threads=False)
        while True:
            try:
                batch = next(batches, None)
            except (pa.ArrowException, OSError) as error:
                raise _read_error(path, error, done) from error
            if batch is None:
                return
            refuse_swollen_texts(batch, path)
            yield batch
            done += batch.num_rows


def _read_error(path: Path, error: Exception, rows: int) -> InputError:
    if isinstance(error, FileNotFoundError):
        return InputError("there is no such file", file=path, fix="check the path")
    with path.open("rb") as stream:
        starts_right = stream.read(4) == b"PAR1"
    if not starts_right:
        return InputError(
            "the file is not Parquet",
            file=path,
            expected="a Parquet file, which starts with the bytes PAR1",
            fix="check the name of the file: its ending decides how it is read",
        )
    return InputError(
        f"the Parquet file is cut or damaged: {' '.join(str(error).split())}",
        file=path,
        row=f"after row {rows}",
        expected="a whole Parquet file",
        fix="copy or write the file again",
    )


def write_parquet(events: NodeEvents, path: Path) -> None:
    """Write a log in the neutral schema to ``path``, replacing it if it exists."""
    schema = pa.schema(
        [
            ("time", pa.timestamp("us", tz="UTC")),
            ("node", pa.dictionary(pa.int32(), pa.string())),
            ("state", pa.dictionary(pa.int8(), pa.string())),
            ("cause", pa.dictionary(pa.int8(), pa.string())),
        ],
        metadata={PARQUET_KEY: LogHeader.of(events).to_text()},
    )
    words = [pa.array(events.nodes, pa.string()), pa.array(STATE_WORDS, pa.string()), pa.array(CAUSES, pa.string())]
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for group, is_snapshot in _row_groups(events.batches()):
            causes = pa.array(np.zeros(len(group), dtype=np.int8), mask=~is_snapshot)
            columns = [
                pa.array(group.time_us, pa.int64()).cast(schema.field("time").type),
                pa.DictionaryArray.from_arrays(group.node, words[0]),
                pa.DictionaryArray.from_arrays(group.state, words[1]),
                pa.DictionaryArray.from_arrays(causes, words[2]),
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))


def _row_groups(batches: Iterator[EventBatch]) -> Iterator[tuple[EventBatch, Any]]:
    """Yield the snapshot together with the first events, then one row group a batch, none of them tiny."""
    held: list[EventBatch] = []
    n_held = n_snapshot = 0
    for batch in batches:
        if not held and n_snapshot == 0:
            n_snapshot = len(batch)
        elif n_held + len(batch) > DEFAULT_BATCH_ROWS + n_snapshot:
            yield _join(held), np.arange(n_held) < n_snapshot
            held, n_held, n_snapshot = [], 0, -1
        held.append(batch)
        n_held += len(batch)
    yield _join(held), np.arange(n_held) < n_snapshot


def _join(batches: list[EventBatch]) -> EventBatch:
    return EventBatch(
        np.concatenate([batch.time_us for batch in batches]),
        np.concatenate([batch.node for batch in batches]),
        np.concatenate([batch.state for batch in batches]),
    )
