"""Logs in CSV, with their metadata in a file beside them, and in Parquet: read in blocks, and written."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from bfreplay._compiling import expect_rows
from bfreplay.datasets.arrow_columns import refuse_swollen_texts, text_columns
from bfreplay.datasets.log.event_tables import (
    PARQUET_KEY,
    LogHeader,
    empty_log,
    read_columns,
    sidecar_path,
    table_events,
)
from bfreplay.datasets.log.events import DEFAULT_BATCH_ROWS, NodeEvents
from bfreplay.datasets.log.states import STATE_WORDS, EventBatch
from bfreplay.documents import endless_line, not_utf8, text_lines
from bfreplay.errors import InputError

_ROW_BYTES = 40
"""Of a time, a node and a state in CSV, about."""
_BLOCK_BYTES = 1 << 20  # pyarrow reads 32 blocks ahead, so this bounds the memory
WRITTEN_COLUMNS = ("time", "node", "state", "cause")
"""Columns of a log as it is written."""
CAUSES = ("window_begin",)


def read_csv(path: Path) -> NodeEvents:
    """Return a log over a CSV file; its metadata come from ``<name>.meta.json`` if that exists.

    Raises
    ------
    InputError
        The file is missing, empty, damaged, no UTF-8, or has other columns.
    """
    columns = _header(path)
    expect_rows(path.stat().st_size // _ROW_BYTES)
    sidecar = sidecar_path(path) if sidecar_path(path).exists() else None
    header = None if sidecar is None else _sidecar_header(sidecar, path)
    return table_events(path, columns, partial(_csv_batches, path, read_columns(columns)), header, "csv", sidecar)


def _header(log_path: Path) -> list[str]:
    open_file: Any = gzip.open if log_path.suffix == ".gz" else open
    try:
        with open_file(log_path, "rt", encoding="utf-8-sig", newline="") as stream:
            columns = next(csv.reader(text_lines(stream, log_path)), [])
    except FileNotFoundError as error:
        raise InputError("there is no such file", file=log_path, fix="check the path") from error
    except UnicodeDecodeError as error:
        raise not_utf8(log_path) from error
    except (OSError, EOFError, zlib.error, csv.Error) as error:
        raise _csv_error(log_path, error, 0) from error
    if any("\0" in column_name for column_name in columns):
        raise not_utf8(log_path)
    if not columns:
        raise empty_log(log_path)
    return columns


def _sidecar_header(sidecar: Path, log_path: Path) -> LogHeader:
    description = f"{sidecar.name} is read as the metadata (nodes and window) of {log_path.name}"
    fix = f"correct {sidecar.name}, or delete it: nodes and window are then found from the rows"
    try:
        return LogHeader.from_text(sidecar.read_bytes(), sidecar)
    except OSError as error:
        raise InputError(f"{description}, but it cannot be read: {error.strerror}", file=sidecar, fix=fix) from error
    except InputError as error:
        error_value = {} if error.value is None else {"value": error.value}
        raise InputError(
            f"{description}, but {error.problem}",
            file=sidecar,
            row=error.row,
            column=error.column,
            expected=error.expected or "JSON as write_events writes it",
            fix=fix,
            **error_value,
        ) from error


def _csv_batches(log_path: Path, columns: list[str], rows: int) -> Iterator[Any]:
    rows_before = 0
    words = pa.dictionary(pa.int32(), pa.string())
    types = {column_name: pa.string() if column_name == "time" else words for column_name in columns}
    try:
        with pa_csv.open_csv(
            log_path,
            read_options=pa_csv.ReadOptions(block_size=_BLOCK_BYTES, use_threads=False),
            convert_options=pa_csv.ConvertOptions(
                include_columns=columns, column_types=types, strings_can_be_null=False, null_values=[]
            ),
        ) as reader:
            for record_batch in reader:
                yield record_batch
                rows_before += record_batch.num_rows
    except (pa.ArrowException, OSError) as error:
        raise _csv_error(log_path, error, rows_before) from error


def _csv_error(log_path: Path, error: Exception, rows: int) -> InputError:
    text = " ".join(str(error).split())
    if "Empty CSV" in text:
        return empty_log(log_path)
    if "straddling object" in text:
        return endless_line(log_path, b"", rows + 2, _BLOCK_BYTES)
    line = re.search(r"Row #(\d+): (?:(Expected .*, got \d+): (.*))?", text)
    if line is not None and line[2] is not None:
        return InputError(
            f"a row has another number of columns than the header: {line[2]}",
            file=log_path,
            row=int(line[1]) - 1,
            value=line[3],
            expected="one value for each column",
            fix="correct the row; a file that was cut ends in such a row",
        )
    if "invalid UTF8" in text:
        return not_utf8(log_path)
    return InputError(
        f"the file cannot be read as CSV: {text}",
        file=log_path,
        row=f"after row {rows}" if line is None else int(line[1]) - 1,
        expected="UTF-8 text, gzipped if the name ends in .gz",
        fix="copy or write the file again",
    )


def write_csv(events: NodeEvents, log_path: Path, gzipped: bool) -> None:
    """Write the rows of a log to ``log_path``, replacing it if it exists; see also ``write_sidecar``.

    Times are ISO-8601 UTC, with six decimals if not whole seconds. The bytes depend on the log only.
    """
    nodes = np.array(events.nodes, dtype=object)
    with ExitStack() as open_streams:
        stream: Any = open_streams.enter_context(log_path.open("wb"))
        if gzipped:
            stream = open_streams.enter_context(gzip.GzipFile("", "wb", 6, stream, mtime=0))
        stream.write((",".join(WRITTEN_COLUMNS) + "\n").encode())
        is_snapshot = True
        for batch in events.batches():
            stream.write(csv_rows(batch, nodes, is_snapshot=is_snapshot))
            is_snapshot = False


def csv_rows(events: EventBatch, nodes: NDArray[np.object_], *, is_snapshot: bool) -> bytes:
    """Return the rows of events as ``write_csv`` writes them; ``nodes (N,)`` are the names of all nodes."""
    needs_quotes = any('"' in name or "," in name for name in nodes)
    options = pa_csv.WriteOptions(include_header=False, quoting_style="all_valid" if needs_quotes else "none")
    schema = pa.schema([(name, pa.string()) for name in WRITTEN_COLUMNS])
    words, cause = np.array(STATE_WORDS, dtype=object), CAUSES[0] if is_snapshot else None
    columns = [iso_texts(events.time_us), nodes[events.node], words[events.state], [cause] * len(events)]
    table = pa.Table.from_arrays([pa.array(column, pa.string()) for column in columns], schema=schema)
    text = pa.BufferOutputStream()
    pa_csv.write_csv(table, text, options)
    return bytes(text.getvalue())


def write_sidecar(events: NodeEvents, sidecar: Path) -> None:
    """Write window, inventory and metadata of a log as JSON to ``sidecar``."""
    sidecar.write_text(LogHeader.of(events).to_text(indent=1) + "\n", encoding="utf-8")


def iso_texts(time_us: NDArray[np.int64]) -> NDArray[np.str_]:
    """Return times as ISO-8601 UTC, shape ``(E,)``, with six decimals if not whole seconds."""
    stamps = time_us.astype("datetime64[us]")
    texts = np.datetime_as_string(stamps.astype("datetime64[s]"), unit="s")
    is_whole = time_us % 1_000_000 == 0
    if not is_whole.all():
        texts = np.where(is_whole, texts, np.datetime_as_string(stamps, unit="us"))
    return np.strings.add(texts, "Z")


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
        expect_rows(parquet.metadata.num_rows)
    header = None if text is None else LogHeader.from_text(text, path)
    batches = partial(_parquet_batches, path, read_columns(columns), texts)
    return table_events(path, columns, batches, header, "parquet")


def open_parquet(path: Path, as_dictionary: Sequence[str] = ()) -> Any:
    """Open a Parquet file; raise ``InputError`` if it is none."""
    try:
        # buffered pages and no read-ahead: memory stays that of one batch, however long the file is
        return pq.ParquetFile(path, read_dictionary=as_dictionary, buffer_size=1 << 20, pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        raise _parquet_error(path, error, rows=0) from error


def _parquet_batches(log_path: Path, columns: list[str], texts: list[str], rows: int) -> Iterator[Any]:
    for batch in read_batches(log_path, columns, texts, rows):
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
    rows_before = 0
    with open_parquet(path, texts) as parquet:
        batches = parquet.iter_batches(batch_size=rows, columns=columns, use_threads=False)
        while True:
            try:
                batch = next(batches, None)
            except (pa.ArrowException, OSError) as error:
                raise _parquet_error(path, error, rows_before) from error
            if batch is None:
                return
            refuse_swollen_texts(batch, path)
            yield batch
            rows_before += batch.num_rows


def _parquet_error(log_path: Path, error: Exception, rows: int) -> InputError:
    if isinstance(error, FileNotFoundError):
        return InputError("there is no such file", file=log_path, fix="check the path")
    with log_path.open("rb") as stream:
        starts_right = stream.read(4) == b"PAR1"
    if not starts_right:
        return InputError(
            "the file is not Parquet",
            file=log_path,
            expected="a Parquet file, which starts with the bytes PAR1",
            fix="check the name of the file: its ending decides how it is read",
        )
    return InputError(
        f"the Parquet file is cut or damaged: {' '.join(str(error).split())}",
        file=log_path,
        row=f"after row {rows}",
        expected="a whole Parquet file",
        fix="copy or write the file again",
    )


def write_parquet(events: NodeEvents, log_path: Path) -> None:
    """Write a log in the neutral schema to ``log_path``, replacing it if it exists."""
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
    with pq.ParquetWriter(log_path, schema, compression="zstd") as writer:
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
    group: list[EventBatch] = []
    n_rows = n_snapshot = 0
    for batch in batches:
        if not group and n_snapshot == 0:
            n_snapshot = len(batch)
        elif n_rows + len(batch) > DEFAULT_BATCH_ROWS + n_snapshot:
            yield EventBatch.joined(group), np.arange(n_rows) < n_snapshot
            group, n_rows, n_snapshot = [], 0, -1
        group.append(batch)
        n_rows += len(batch)
    yield EventBatch.joined(group), np.arange(n_rows) < n_snapshot
