"""Everything a replay writes down, in memory or in a folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from bfreplay.replay.intervals import ALLOCATIONS, NODES, AllocationTable, NodeTable
from bfreplay.replay.tables import DECISIONS, JOBS, TIMINGS, MemorySink, NoSink, ParquetSink, RowTable, TableSink


@dataclass(slots=True)
class Recorder:
    """The tables of one run. ``nodes`` only when asked for."""

    decisions: RowTable
    jobs: RowTable
    timings: RowTable
    allocations: AllocationTable
    nodes: NodeTable | None

    @classmethod
    def open(
        cls, job_names: Sequence[str], node_names: Sequence[str], limit: int, *, folder: Path | None, with_nodes: bool
    ) -> Recorder:
        """Tables in ``folder`` (Parquet, written as the run goes on), or in memory without one."""

        def sink(name: str, schema: pa.Schema) -> TableSink:
            return MemorySink(schema) if folder is None else ParquetSink(folder / f"{name}.parquet", schema)

        recorder = cls._with(sink, job_names, limit)
        if with_nodes:
            recorder.nodes = NodeTable(node_names, job_names, sink("nodes", NODES))
        return recorder

    @classmethod
    def nowhere(cls, job_names: Sequence[str], limit: int) -> Recorder:
        """Keeps the totals that the ledger needs and no row."""
        return cls._with(lambda name, schema: NoSink(), job_names, limit)

    @classmethod
    def _with(cls, sink: Callable[[str, pa.Schema], TableSink], job_names: Sequence[str], limit: int) -> Recorder:
        return cls(
            decisions=RowTable(DECISIONS, sink("decisions", DECISIONS)),
            jobs=RowTable(JOBS, sink("jobs", JOBS)),
            timings=RowTable(TIMINGS, sink("timings", TIMINGS)),
            allocations=AllocationTable(job_names, limit, sink("allocations", ALLOCATIONS)),
            nodes=None,
        )

    @property
    def write_s(self) -> float:
        """Seconds spent making and writing tables so far."""
        rows = sum(table.write_s for table in (self.decisions, self.jobs, self.timings))
        return rows + self.allocations.write_s + (self.nodes.write_s if self.nodes is not None else 0.0)

    def close(self) -> dict[str, pa.Table]:
        """Finish every table; those in memory are returned by name."""
        tables = {
            "decisions": self.decisions.close(),
            "jobs": self.jobs.close(),
            "timings": self.timings.close(),
            "allocations": self.allocations.close(),
        }
        if self.nodes is not None:
            tables["nodes"] = self.nodes.close()
        return {name: table for name, table in tables.items() if table is not None}
