"""Tables that grow row by row and go to disk in chunks: memory does not grow with the log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from bfreplay.datasets.arrow_columns import as_arrow, dtype_of
from bfreplay.result_folders.writing import table_writer
from bfreplay.saved_state import UnsavedError

CHUNK_ROWS = 16_384
_FIRST_ROWS = 32  # room for objects takes its time, and most tables stay small
TIME = pa.timestamp("us", tz="UTC")
WORD = pa.dictionary(pa.int16(), pa.string())


class Column(NamedTuple):
    """A column of a table of a run, and what it holds, in Markdown; ``docs/run-tables.md`` lists them."""

    name: str
    type: pa.DataType
    meaning: str = ""


def schema_from(columns: Sequence[Column]) -> pa.Schema:
    """Return the schema of a table with these columns."""
    return pa.schema([(column.name, column.type) for column in columns])


DECISION_COLUMNS = (
    Column("time", TIME),
    Column(
        "trigger", WORD,
        "what happened: `pool`, `arrival`, `completion`, `round` (the time at which a policy that decides in rounds "
        "wanted to be asked again), `batch_size` (a job trains with another one), joined by `+`; `window_begin` when "
        "nothing else did",
    ),
    Column("n_idle", pa.int32(), "idle nodes, held ones included"),
    Column("n_joined", pa.int32(), "nodes that became idle at this instant"),
    Column("n_reclaimed", pa.int32(), "nodes that were reclaimed at this instant"),
    Column("n_jobs", pa.int32(), "active jobs"),
    Column("n_jobs_running", pa.int32(), "jobs with enough nodes to make progress"),
    Column("n_jobs_preempted", pa.int32(), "jobs that held a reclaimed node"),
    Column("n_jobs_scaled_up", pa.int32(), "by this decision"),
    Column("n_jobs_scaled_down", pa.int32(), "by this decision"),
    Column("n_nodes_used", pa.int32(), "nodes held by jobs; a node that two jobs share is counted once"),
    Column(
        "counts", pa.list_(pa.int32()),
        "nodes of each active job, in order of admission: those admitted, and not ended, at this time in "
        "`jobs.parquet`. A job that its source pauses leaves the list, and comes last when it is admitted again "
        "(`reports.parquet`). Of two jobs that share nodes each has them all",
    ),
    Column("rate_samples_per_s", pa.float64(), "of all jobs together"),
    Column(
        "samples_since_last", pa.float64(),
        "progress since the row before, less work lost (published clock: less what was charged)",
    ),
    Column("rescale_cost_samples", pa.float64(), "charged at this instant"),
    Column("preemption_cost_samples", pa.float64(), "charged at this instant"),
    Column(
        "t_fwd_s", pa.float64(),
        "forward-looking time that the question was posed with; empty where none was posed, and for policies that "
        "[look ahead](policies.md#looking-ahead). With `--t-fwd auto` it changes from row to row: "
        "[forward-time.md](forward-time.md)",
    ),
    Column("objective", pa.float64(), "of the answer used, recomputed"),
    Column("bound", pa.float64(), "proven upper bound"),
    Column("gap", pa.float64(), "difference of the two, relative to the objective"),
    Column("solver", WORD, "who gave the answer used"),
    Column(
        "process_status", WORD,
        "`ok`, `not_needed` (nothing to solve), `crashed`, `timed_out`, `refused` (a model the back end cannot take)",
    ),
    Column(
        "solver_status", WORD,
        "what the solver says of itself: `optimal`, `feasible`, `no_solution`, `infeasible`, `unbounded`, `error`, "
        "`unknown`",
    ),
    Column("quality", WORD, "what checking found: `proven`, `feasible`, `wrong`, `none`"),
    Column("fell_back_from", WORD, "solver whose answer was not used; empty without one, as are the next three"),
    Column("rejected_process_status", WORD, "of that answer"),
    Column("rejected_solver_status", WORD, "of that answer"),
    Column("rejected_quality", WORD, "of that answer"),
    Column("message", pa.string(), "why, for a person to read"),
)  # fmt: skip
JOB_COLUMNS = (
    Column("job", pa.string()),
    Column("model", pa.string()),
    Column("status", WORD, "see [runs.md](runs.md#jobs)"),
    Column("submitted", TIME),
    Column("admitted", TIME),
    Column("first_start", TIME),
    Column("finished", TIME),
    Column("ended", TIME, "when it left for good: finished, pruned, failed, stopped or declined"),
    Column("deadline", TIME),
    Column(
        "deadline_met", pa.bool_(),
        "empty without a deadline, while it may still be met, and for a job that its source ended before",
    ),
    Column("weight", pa.float64(), "the user's"),
    Column("work_samples", pa.float64()),
    Column("done_samples", pa.float64()),
    Column("useful_node_us", pa.int64(), "node time held on which it made progress"),
    Column("rescaling_node_us", pa.int64(), "node time held while it rescaled"),
    Column("preempted_node_us", pa.int64(), "node time held in which it made up for samples lost to preemption"),
    Column("repeated_node_us", pa.int64(), "node time held on which it made progress that was lost"),
    Column(
        "stalled_node_us", pa.int64(),
        "node time held with too few nodes to run, or done and (published clock) not yet noticed, or done with what it "
        "may process until the next round",
    ),
    Column("rescale_cost_samples", pa.float64(), "worked off (continuous) or charged (published)"),
    Column("preemption_cost_samples", pa.float64(), "worked off (continuous) or charged (published)"),
    Column("repeated_samples", pa.float64(), "made since its last checkpoint, and lost (`losses.parquet`)"),
    Column("n_starts", pa.int64(), "from no nodes"),
    Column("n_scale_ups", pa.int64(), "by decisions"),
    Column("n_scale_downs", pa.int64(), "by decisions"),
    Column("n_preemptions", pa.int64(), "by reclaims"),
    Column(
        "n_reports", pa.int64(),
        "to the job source, its orders to stop not counted; empty for a plain job set, as are both scores",
    ),
    Column("last_score", pa.float64(), "of what was reported"),
    Column("best_score", pa.float64(), "of what was reported"),
    Column("params", pa.string(), "hyper-parameters of a trial, as JSON"),
    Column(
        "isolated_jct_s", pa.float64(),
        "seconds from submission to finish under `gavel.isolated`, which gives each job an equal part of the nodes; "
        "empty where fairness was not asked for, and for a job that does not finish there",
    ),
)  # fmt: skip
REPORT_COLUMNS = (
    Column("time", TIME),
    Column("job", pa.string()),
    Column("samples", pa.float64(), "progress"),
    Column("epoch", pa.float64(), "progress of the trial in epochs, those of its crashed attempts included"),
    Column("score", pa.float64(), "the trial's metric there; empty where the source gave none"),
    Column(
        "verdict", WORD,
        "`continue`; `paused` (gives its nodes up, keeps its progress); `finished`; `pruned`, `failed`, `stopped`",
    ),
)  # fmt: skip
LOSS_COLUMNS = (
    Column("time", TIME),
    Column("job", pa.string()),
    Column("samples", pa.float64(), "made since its last checkpoint, and lost"),
    Column("node_us", pa.int64(), "node time on which they were made: `repeated` from now on, `useful` until now"),
)
DECISIONS = schema_from(DECISION_COLUMNS)
JOBS = schema_from(JOB_COLUMNS)
REPORTS = schema_from(REPORT_COLUMNS)
LOSSES = schema_from(LOSS_COLUMNS)
TIMINGS = pa.schema([("time", TIME), ("build_s", pa.float64()), ("solve_s", pa.float64()), ("decide_s", pa.float64())])


class TableSink:
    """Destination of a table, chunk by chunk; this one discards rows, for replays of which only the totals matter."""

    def write(self, table: pa.Table) -> None:
        """Append rows."""

    def save_state(self) -> Any:
        """Return what ``restore_state`` of another one needs to hold the same rows."""

    def restore_state(self, state: Any) -> None:
        """Hold the rows of another one."""

    def close(self) -> pa.Table | None:
        """Finish; a sink in memory returns the whole table."""
        return None


def as_bytes(table: pa.Table) -> pa.Buffer:
    """Return a table as Arrow's stream, with its dictionaries as they are."""
    buffer = pa.BufferOutputStream()
    with pa.ipc.new_stream(buffer, table.schema) as writer:
        writer.write_table(table)
    return buffer.getvalue()


class ParquetSink(TableSink):
    """A Parquet file that grows chunk by chunk."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path, self._schema = path, schema

    @cached_property
    def _writer(self) -> pq.ParquetWriter:
        return table_writer(self._path, self._schema)

    def write(self, table: pa.Table) -> None:
        """Append rows as one row group."""
        self._writer.write_table(table)

    def save_state(self) -> Any:
        """Raise ``UnsavedError``: a Parquet file cannot be continued."""
        raise UnsavedError("the tables of this run go to its folder at once; for checkpoints they are kept apart")

    def close(self) -> None:
        """Write the file's footer."""
        self._writer.close()


class MemorySink(TableSink):
    """A table in memory."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._chunks: list[pa.Table] = []

    def write(self, table: pa.Table) -> None:
        """Append rows."""
        self._chunks.append(table)

    def save_state(self) -> list[NDArray[np.uint8]]:
        """Return the chunks, each as Arrow's stream."""
        return [np.frombuffer(as_bytes(chunk), np.uint8) for chunk in self._chunks]

    def restore_state(self, chunks: Sequence[NDArray[np.uint8]]) -> None:
        """Take the chunks of another one."""
        self._chunks = [pa.ipc.open_stream(pa.py_buffer(chunk)).read_all() for chunk in chunks]

    def close(self) -> pa.Table:
        """Return the whole table."""
        return pa.concat_tables([pa.Table.from_batches([], self._schema), *self._chunks]).unify_dictionaries()


class RowTable:
    """Rows appended one at a time, handed to the sink in chunks.

    Parameters
    ----------
    schema, sink
        Columns, and where they go.
    is_full
        No whole number and no time is ever empty (``None``). Floats may be: nan stands for an empty one.
    """

    def __init__(self, schema: pa.Schema, sink: TableSink, *, is_full: bool = False) -> None:
        self.schema = schema
        self.sink = sink
        self.latest: list[Sequence[Any]] | None = None  # rows appended since it was made, for those who follow the run
        self.n_rows = 0
        self.write_s = 0.0
        row_dtype = np.dtype([(field.name, _kind_of(field.type, is_full)) for field in schema])
        self._unflushed: NDArray[np.void] = np.empty(_FIRST_ROWS, row_dtype)
        self.n_unflushed = 0

    def append(self, row: Sequence[Any]) -> None:
        """Append a row, in the order of the schema."""
        if self.n_unflushed == self._unflushed.size:
            self._enlarge()
        self._unflushed[self.n_unflushed] = tuple(row)
        self.n_unflushed += 1
        self.n_rows += 1
        if self.latest is not None:
            self.latest.append(row)
        if self.n_unflushed >= CHUNK_ROWS:
            self.flush()

    def _enlarge(self) -> None:
        larger = np.empty(min(CHUNK_ROWS, 8 * self._unflushed.size), self._unflushed.dtype)
        larger[: self._unflushed.size] = self._unflushed
        self._unflushed = larger

    def flush(self) -> None:
        """Hand the buffered rows to the sink."""
        start_s = perf_counter()
        if self.n_unflushed:
            self.sink.write(self._table())
            self.n_unflushed = 0
        self.write_s += perf_counter() - start_s

    def _table(self) -> pa.Table:
        """Return the rows that the sink does not have yet."""
        columns = (self._unflushed[column_name][: self.n_unflushed] for column_name in self.schema.names)
        return self._table_of([column.tolist() if column.dtype.hasobject else column.copy() for column in columns])

    def _table_of(self, columns: Iterable[Sequence[Any] | NDArray[Any]]) -> pa.Table:
        arrays = [as_arrow(column, field.type) for column, field in zip(columns, self.schema, strict=True)]
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def take_latest(self) -> pa.Table:
        """Return the rows since ``latest`` was made, and keep no more of them."""
        rows, self.latest = self.latest or (), None
        return self._table_of(zip(*rows, strict=True) if rows else [()] * len(self.schema))

    def save_state(self) -> dict[str, Any]:
        """Return the rows that the sink does not have yet, and the state of the sink."""
        row_bytes = np.frombuffer(as_bytes(self._table()), np.uint8)
        return {"n_rows": self.n_rows, "rows": row_bytes, "sink": self.sink.save_state()}

    def restore_state(self, state: dict[str, Any]) -> None:
        """Take the rows of another one."""
        rows = pa.ipc.open_stream(pa.py_buffer(state["rows"])).read_all()
        kinds = [pa.int64() if pa.types.is_timestamp(field.type) else field.type for field in self.schema]
        columns = [column.cast(kind).to_pylist() for column, kind in zip(rows.columns, kinds, strict=True)]
        self.n_unflushed = 0
        for row in zip(*columns, strict=True):
            self.append(row)
        self.n_rows = state["n_rows"]
        self.sink.restore_state(state["sink"])

    def close(self) -> pa.Table | None:
        """Flush and close the sink."""
        self.flush()
        return self.sink.close()


def _kind_of(kind: pa.DataType, is_full: bool) -> np.dtype[Any]:
    """Return how a column's values are kept: as numbers, or else as objects."""
    is_number = pa.types.is_floating(kind) or (is_full and (pa.types.is_integer(kind) or pa.types.is_timestamp(kind)))
    return dtype_of(kind) if is_number else np.dtype(object)
