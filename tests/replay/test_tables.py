"""Tables that grow in chunks."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bfreplay.replay.intervals import ALLOCATIONS, NODES
from bfreplay.replay.pool_tables import IDLE_INTERVALS, POOL
from bfreplay.replay.tables import CHUNK_ROWS, DECISIONS, JOBS, TIME, TIMINGS, WORD, MemorySink, ParquetSink, RowTable

COUNTS = pa.list_(pa.int32())
SCHEMA = pa.schema([("n", pa.int64()), ("word", pa.dictionary(pa.int16(), pa.string())), ("text", pa.string())])


@pytest.mark.parametrize("n_rows", [0, 1, CHUNK_ROWS - 1, CHUNK_ROWS, CHUNK_ROWS + 1, 2 * CHUNK_ROWS + 5])
def test_rows_come_back_in_memory_and_from_disk_whatever_the_chunks(tmp_path, n_rows):
    rows = [(n, "even" if n % 2 == 0 else None, f"text {n}") for n in range(n_rows)]
    memory = RowTable(SCHEMA, MemorySink(SCHEMA))
    disk = RowTable(SCHEMA, ParquetSink(tmp_path / "t.parquet", SCHEMA))
    for row in rows:
        memory.append(row)
        disk.append(row)
    table = memory.close()
    assert disk.close() is None
    assert table is not None
    for read in (table, pq.read_table(tmp_path / "t.parquet")):
        assert [tuple(row.values()) for row in read.to_pylist()] == rows
        assert read.schema.names == SCHEMA.names


@pytest.mark.parametrize("schema", [DECISIONS, JOBS, TIMINGS, ALLOCATIONS, NODES, POOL, IDLE_INTERVALS])
def test_a_table_without_rows_keeps_its_columns(tmp_path, schema):
    sink = ParquetSink(tmp_path / "t.parquet", schema)
    sink.close()
    assert pq.read_table(tmp_path / "t.parquet").schema.names == schema.names
    assert MemorySink(schema).close().schema.names == schema.names


def test_texts_that_differ_in_every_row_are_no_dictionary():
    """Messages hold objective values: as a dictionary of 16-bit keys they would burst it."""
    assert DECISIONS.field("message").type == pa.string()
    assert JOBS.field("model").type == pa.string()


@pytest.mark.parametrize("is_full", [False, True])
def test_saved_rows_come_back_as_if_they_had_never_left(is_full):
    kinds = {"time": TIME, "share": pa.float64(), "word": WORD, "counts": COUNTS, "text": pa.string()}
    schema = pa.schema(kinds)
    rows = [(7, 0.5, "b", [1, 2], None), (8, None, "a", [], "why"), (9, 1.0, None, [3], None), (10, 2.0, "b", [4], "")]
    unbroken, saved, resumed = (RowTable(schema, MemorySink(schema), is_full=is_full) for _ in range(3))
    for k, row in enumerate(rows):
        unbroken.append(row)
        (saved if k < 2 else resumed).append(row)
        if k == 1:
            resumed.append(rows[0])  # replaced by what is taken back
            resumed.take_back(saved.unflushed())
    assert resumed.close() == unbroken.close()
    assert saved.n_unflushed == 2  # still there


def test_a_table_does_not_change_when_later_rows_take_the_room_of_earlier_ones():
    schema = pa.schema([("n", pa.int64())])
    table = RowTable(schema, MemorySink(schema), is_full=True)
    table.append((1,))
    table.flush()
    table.append((2,))
    made = table.close()
    assert made is not None
    assert made["n"].to_pylist() == [1, 2]
