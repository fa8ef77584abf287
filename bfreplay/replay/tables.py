"""Tables that grow row by row and go to disk in chunks: memory does not grow with the log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

CHUNK_ROWS = 16_384
TIME = pa.timestamp("us", tz="UTC")
WORD = pa.dictionary(pa.int16(), pa.string())

DECISIONS = pa.schema(
    [
        ("time", TIME),
        ("trigger", WORD),
        ("n_idle", pa.int32()),
        ("n_joined", pa.int32()),
        ("n_left", pa.int32()),
        ("n_jobs", pa.int32()),
        ("n_jobs_running", pa.int32()),
        ("n_jobs_preempted", pa.int32()),
        ("n_jobs_grown", pa.int32()),
        ("n_jobs_shrunk", pa.int32()),
        ("n_nodes_used", pa.int32()),
        ("counts", pa.list_(pa.int32())),  # of the active jobs, in order of admission
        ("rate_samples_per_s", pa.float64()),
        ("samples_since_last", pa.float64()),
        ("rescale_cost_samples", pa.float64()),
        ("preempt_cost_samples", pa.float64()),
        ("t_fwd_s", pa.float64()),  # null where no question was posed
        ("objective", pa.float64()),
        ("bound", pa.float64()),
        ("gap", pa.float64()),
        ("solver", WORD),
        ("process_status", WORD),
        ("solver_status", WORD),
        ("quality", WORD),
        # of the answer that a fallback replaced, null without one
        ("fell_back_from", WORD),
        ("rejected_process_status", WORD),
        ("rejected_solver_status", WORD),
        ("rejected_quality", WORD),
        ("message", pa.string()),
    ]
)
JOBS = pa.schema(
    [
        ("job", pa.string()),
        ("model", pa.string()),
        # finished, pruned, failed, stopped; and at the window's end running, waiting (admitted, no nodes), paused,
        # queued, not_submitted
        ("status", WORD),
        ("submitted", TIME),
        ("admitted", TIME),
        ("first_start", TIME),
        ("finished", TIME),
        ("ended", TIME),  # left for good, finished or not
        ("deadline", TIME),
        ("deadline_met", pa.bool_()),  # null without a deadline, and while it may still be met
        ("weight", pa.float64()),
        ("work_samples", pa.float64()),
        ("done_samples", pa.float64()),
        ("useful_node_us", pa.int64()),
        ("rescaling_node_us", pa.int64()),
        ("lost_to_preemption_node_us", pa.int64()),
        ("stalled_node_us", pa.int64()),
        ("rescale_cost_samples", pa.float64()),
        ("preempt_cost_samples", pa.float64()),
        ("n_starts", pa.int64()),
        ("n_grown", pa.int64()),
        ("n_shrunk", pa.int64()),
        ("n_preempted", pa.int64()),
        # of what was reported to a job source; null without
        ("n_reports", pa.int64()),
        ("last_score", pa.float64()),
        ("best_score", pa.float64()),
        ("params", pa.string()),  # JSON; null for none
        ("isolated_jct_s", pa.float64()),  # null where fairness was not asked for, and for a job not finished there
    ]
)
REPORTS = pa.schema(
    [
        ("time", TIME),
        ("job", pa.string()),
        ("samples", pa.float64()),  # progress
        ("score", pa.float64()),  # null: none
        ("verdict", WORD),  # go_on, paused, finished, pruned, failed, stopped
    ]
)
TIMINGS = pa.schema([("time", TIME), ("build_s", pa.float64()), ("solve_s", pa.float64()), ("decide_s", pa.float64())])


class TableSink(Protocol):
    """Where a table goes, chunk by chunk."""

    def write(self, table: pa.Table) -> None:
        """Append rows."""
        ...

    def close(self) -> pa.Table | None:
        """Finish; a sink in memory returns the whole table."""
        ...


class ParquetSink:
    """A Parquet file that grows chunk by chunk."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._writer = pq.ParquetWriter(path, schema, compression="zstd")

    def write(self, table: pa.Table) -> None:
        """Append rows as one row group."""
        self._writer.write_table(table)

    def close(self) -> None:
        """Write the file's footer."""
        self._writer.close()


class MemorySink:
    """A table in memory."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._chunks: list[pa.Table] = []

    def write(self, table: pa.Table) -> None:
        """Append rows."""
        self._chunks.append(table)

    def close(self) -> pa.Table:
        """The whole table."""
        return pa.concat_tables([self._schema.empty_table(), *self._chunks]).unify_dictionaries()


class NoSink:
    """Throws rows away: for replays of which only the totals matter."""

    def write(self, table: pa.Table) -> None:
        """Take and forget."""

    def close(self) -> None:
        """Nothing to finish."""


class RowTable:
    """Rows appended one at a time, handed to the sink in chunks."""

    def __init__(self, schema: pa.Schema, sink: TableSink) -> None:
        self.schema = schema
        self.sink = sink
        self.n_rows = 0
        self.write_s = 0.0
        # a list a column: thousands of live row tuples would cost a long garbage collection now and then
        self._columns: list[list[Any]] = [[] for _ in schema]

    def append(self, row: Sequence[Any]) -> None:
        """One row, in the order of the schema."""
        for column, value in zip(self._columns, row, strict=True):
            column.append(value)
        self.n_rows += 1
        if len(self._columns[0]) >= CHUNK_ROWS:
            self.flush()

    def flush(self) -> None:
        """Hand the buffered rows to the sink."""
        started = perf_counter()
        if self._columns[0]:
            arrays = [
                pa.array(column, type=field.type.value_type).dictionary_encode().cast(field.type)
                if pa.types.is_dictionary(field.type)
                else pa.array(column, type=field.type)
                for column, field in zip(self._columns, self.schema, strict=True)
            ]
            self.sink.write(pa.Table.from_arrays(arrays, schema=self.schema))
            self._columns = [[] for _ in self.schema]
        self.write_s += perf_counter() - started

    def close(self) -> pa.Table | None:
        """Flush and close the sink."""
        self.flush()
        return self.sink.close()
