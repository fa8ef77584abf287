"""Allocation intervals of jobs and of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.datasets.arrow_columns import as_arrow
from bfreplay.datasets.log.node_types import ANY_TYPE
from bfreplay.replay.active import FIRST, SECOND, node_charge_us
from bfreplay.replay.tables import CHUNK_ROWS, TIME, WORD, TableSink

_JOB = pa.dictionary(pa.int32(), pa.string())
ALLOCATIONS = pa.schema([("job", _JOB), ("node_type", WORD), ("count", pa.int32()), ("from", TIME), ("to", TIME)])
NODES = pa.schema([("node", pa.dictionary(pa.int32(), pa.string())), ("job", _JOB), ("from", TIME), ("to", TIME)])
SHARED = pa.field("sharing", pa.int8())
"""Column of ``ALLOCATIONS`` in runs whose jobs may share nodes: 0 alone, 1 and 2 for the two on the same ones."""


_INTERVAL = np.dtype(
    [
        ("job", np.int32), ("node_type", np.int16), ("sharing", np.int8), ("count", np.int32), ("from", np.int64),
        ("to", np.int64),
    ],
    align=True,
)  # fmt: skip


@compiled
def _close_intervals(
    records: NDArray[np.void],
    n_active: int,
    now_us: int,
    n_rows: int,
    node_us: NDArray[np.int64],
    intervals: NDArray[np.void],
) -> int:
    """Write the allocation intervals that end now, and add up ``node_us (T,)`` by type. Returns the rows used."""
    for job_row in range(n_active):
        if (
            records[job_row]["count"] == records[job_row]["open_count"]
            and records[job_row]["node_type"] == records[job_row]["open_type"]
            and records[job_row]["sharing"] == records[job_row]["open_sharing"]
        ):
            continue
        if records[job_row]["open_count"] > 0 and now_us > records[job_row]["open_since_us"]:
            intervals[n_rows]["job"] = records[job_row]["job"]
            intervals[n_rows]["node_type"] = records[job_row]["open_type"]
            intervals[n_rows]["sharing"] = records[job_row]["open_sharing"]
            intervals[n_rows]["count"] = records[job_row]["open_count"]
            intervals[n_rows]["from"] = records[job_row]["open_since_us"]
            intervals[n_rows]["to"] = now_us
            n_rows += 1
            if records[job_row]["open_type"] >= node_us.size:
                raise IndexError("nodes of a type that the recorder does not know")
            charge_us = node_charge_us(records[job_row]["open_sharing"], records[job_row]["open_since_us"], now_us)
            node_us[records[job_row]["open_type"]] += records[job_row]["open_count"] * charge_us
        records[job_row]["open_count"] = records[job_row]["count"]
        records[job_row]["open_type"] = records[job_row]["node_type"]
        records[job_row]["open_sharing"] = records[job_row]["sharing"]
        records[job_row]["open_since_us"] = now_us
    return n_rows


def node_charges_us(
    sharing: NDArray[np.int64], since_us: NDArray[np.int64], until_us: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return parts of intervals that their jobs are charged for a node, (A,); ``active.node_charge_us`` of arrays."""
    first, second = until_us // 2 - since_us // 2, (until_us + 1) // 2 - (since_us + 1) // 2
    return np.where(sharing == FIRST, first, np.where(sharing == SECOND, second, until_us - since_us))


def allocations_schema(shared: bool) -> pa.Schema:
    """Return the schema of a run's table; ``shared``: its jobs may share nodes."""
    return ALLOCATIONS.append(SHARED) if shared else ALLOCATIONS


class AllocationTable:
    """Allocations of jobs over time: a row when an interval of constant count ends.

    Node time is added up as jobs are charged for it: two that share nodes pay half of it each.
    """

    not_saved = ("_names", "_type_names", "write_s")

    def __init__(
        self, names: Sequence[str], sink: TableSink, type_names: Sequence[str] = (ANY_TYPE,), *, shared: bool = False
    ) -> None:
        """``names`` of the jobs by number (the list may grow) and of node types; ``shared``: jobs may share nodes."""
        self._names = names
        self._sink = sink
        self._type_names = as_arrow(type_names, pa.string())
        self._node_us = np.zeros(len(type_names), np.int64)
        self._shared = shared
        self._ended: NDArray[np.void] = np.empty(0, _INTERVAL)
        self._used = 0
        self.write_s = 0.0

    def close_intervals(self, records: NDArray[np.void], n_active: int, now_us: int) -> None:
        """End the interval of every active job whose count differs from the one on record."""
        if self._used + n_active > self._ended.size:
            self._reserve(n_active)
        self._used = _close_intervals(records, n_active, now_us, self._used, self._node_us, self._ended)
        if self._used >= CHUNK_ROWS:
            self._flush()

    @property
    def node_us(self) -> int:
        """Node time of all intervals that have ended, in node-microseconds."""
        return sum(self.node_us_by_type.values())

    @property
    def node_us_by_type(self) -> dict[str, int]:
        """The same by the type of the nodes."""
        return dict(zip(self._type_names.to_pylist(), self._node_us.tolist(), strict=True))

    def _reserve(self, n_active: int) -> None:
        """Make room for a chunk and the rows of one more instant."""
        if self._used:
            self._flush()
        self._ended = np.empty(CHUNK_ROWS + 2 * n_active, _INTERVAL)

    def _flush(self) -> None:
        start_s = perf_counter()
        intervals = self._ended[: self._used]
        job, node_type, sharing, n_nodes, since, until = (
            as_arrow(intervals[name].copy(), pa.from_numpy_dtype(_INTERVAL[name])) for name in _INTERVAL.names or ()
        )
        columns = [
            pa.DictionaryArray.from_arrays(job, as_arrow(self._names, pa.string())),
            pa.DictionaryArray.from_arrays(node_type, self._type_names),
            n_nodes,
            since.view(TIME),
            until.view(TIME),
        ]
        if self._shared:
            columns.append(sharing)
        self._sink.write(pa.Table.from_arrays(columns, schema=allocations_schema(self._shared)))
        self._used = 0
        self.write_s += perf_counter() - start_s

    def close(self) -> pa.Table | None:
        """Flush and close the sink."""
        self._flush()
        return self._sink.close()


class NodeTable:
    """Holders of each node over time; optional, for pictures and checks."""

    not_saved = ("_nodes", "_names", "write_s")

    def __init__(self, nodes: Sequence[str], names: Sequence[str], sink: TableSink) -> None:
        self._nodes = tuple(nodes)
        self._names = names
        self._sink = sink
        self._holder = np.full(len(nodes), -1, np.int32)
        self._since = np.zeros(len(nodes), np.int64)
        self._chunks: list[tuple[NDArray[Any], ...]] = []
        self._used = 0
        self.write_s = 0.0

    def add_nodes(self, nodes: Sequence[str]) -> None:
        """Add nodes after all others; ``nodes`` has the names of all."""
        n_more = len(nodes) - len(self._holder)
        self._nodes = tuple(nodes)
        self._holder = np.append(self._holder, np.full(n_more, -1, np.int32))
        self._since = np.append(self._since, np.zeros(n_more, np.int64))

    def close_intervals(self, holder: NDArray[np.int32], now_us: int) -> None:
        """End the interval of every node whose holder has changed."""
        holder_now = np.maximum(holder, -1)
        changing = np.flatnonzero(holder_now != self._holder)
        closing = changing[(self._holder[changing] >= 0) & (self._since[changing] < now_us)]
        if closing.size:
            until = np.full(closing.size, now_us, np.int64)
            self._chunks.append((closing.astype(np.int32), self._holder[closing], self._since[closing], until))
            self._used += closing.size
        self._holder[changing] = holder_now[changing]
        self._since[changing] = now_us
        if self._used >= CHUNK_ROWS:
            self._flush()

    def _flush(self) -> None:
        if not self._chunks:
            return
        start_s = perf_counter()
        node, job, since, until = (np.concatenate(parts) for parts in zip(*self._chunks, strict=True))
        used, position = np.unique(node, return_inverse=True)  # those that appear later change no chunk before
        names = as_arrow([self._nodes[number] for number in used.tolist()], pa.string())
        arrays = [
            pa.DictionaryArray.from_arrays(as_arrow(position.astype(np.int32), pa.int32()), names),
            pa.DictionaryArray.from_arrays(as_arrow(job, pa.int32()), as_arrow(self._names, pa.string())),
            as_arrow(since, TIME),
            as_arrow(until, TIME),
        ]
        self._sink.write(pa.Table.from_arrays(arrays, schema=NODES))
        self._chunks = []
        self._used = 0
        self.write_s += perf_counter() - start_s

    def close(self) -> pa.Table | None:
        """Flush and close the sink."""
        self._flush()
        return self._sink.close()
