"""Tables of a replay, in memory or in a folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from bfreplay.datasets.log.node_types import ANY_TYPE
from bfreplay.replay.checkpoint import Checkpoints
from bfreplay.replay.intervals import NODES, AllocationTable, NodeTable, allocations_schema
from bfreplay.replay.pool_tables import IDLE_INTERVALS, POOL
from bfreplay.replay.tables import (
    DECISIONS,
    JOBS,
    LOSSES,
    REPORTS,
    TIMINGS,
    MemorySink,
    ParquetSink,
    RowTable,
    TableSink,
)


@dataclass(slots=True)
class RunTables:
    """The tables of one run: ``nodes`` and ``reports`` on request, others where rows are kept.

    ``job_names`` is filled by the replay, job by job.
    """

    not_saved: ClassVar = ("job_names",)

    job_names: list[str]
    decisions: RowTable
    jobs: RowTable
    timings: RowTable
    allocations: AllocationTable
    pool: RowTable | None = None
    idle_intervals: RowTable | None = None
    reports: RowTable | None = None
    losses: RowTable | None = None
    nodes: NodeTable | None = None

    @classmethod
    def open(
        cls,
        node_names: Sequence[str],
        *,
        folder: Path | None,
        checkpoints: Checkpoints | None = None,
        with_nodes: bool = False,
        with_reports: bool = False,
        type_names: Sequence[str] = (ANY_TYPE,),
        shared: bool = False,
    ) -> RunTables:
        """Return tables in ``folder`` (Parquet, written as the run goes on), or in memory without one.

        With ``checkpoints`` their rows are kept there until the run is complete.
        """

        def sink(name: str, schema: pa.Schema) -> TableSink:
            if folder is None:
                return MemorySink(schema)
            file = folder / f"{name}.parquet"
            return ParquetSink(file, schema) if checkpoints is None else checkpoints.sink(name, file, schema)

        run_tables = cls._with(sink, type_names, shared=shared)
        run_tables.pool = RowTable(POOL, sink("pool", POOL), is_full=True)
        run_tables.idle_intervals = RowTable(IDLE_INTERVALS, sink("idle_intervals", IDLE_INTERVALS))
        if with_nodes:
            run_tables.nodes = NodeTable(node_names, run_tables.job_names, sink("nodes", NODES))
        if with_reports:
            run_tables.reports = RowTable(REPORTS, sink("reports", REPORTS))
        run_tables.losses = RowTable(LOSSES, sink("losses", LOSSES), is_full=True)
        return run_tables

    @classmethod
    def nowhere(cls, type_names: Sequence[str] = (ANY_TYPE,)) -> RunTables:
        """Return tables that keep only the totals for the ledger; ``type_names`` of the log."""
        return cls._with(lambda name, schema: TableSink(), type_names)

    @classmethod
    def _with(
        cls, sink: Callable[[str, pa.Schema], TableSink], type_names: Sequence[str], *, shared: bool = False
    ) -> RunTables:
        job_names: list[str] = []
        return cls(
            job_names=job_names,
            decisions=RowTable(DECISIONS, sink("decisions", DECISIONS), is_full=True),
            jobs=RowTable(JOBS, sink("jobs", JOBS)),
            timings=RowTable(TIMINGS, sink("timings", TIMINGS), is_full=True),
            allocations=AllocationTable(
                job_names, sink("allocations", allocations_schema(shared)), type_names, shared=shared
            ),
        )

    def _tables(self) -> dict[str, RowTable | AllocationTable | NodeTable]:
        names = [field.name for field in fields(self) if field.name != "job_names"]
        return {table_name: table for table_name in names if (table := getattr(self, table_name)) is not None}

    @property
    def write_s(self) -> float:
        """Seconds spent making and writing tables so far."""
        return sum(table.write_s for table in self._tables().values())

    def close(self) -> dict[str, pa.Table]:
        """Finish every table, and return those in memory by name."""
        table_of = {table_name: table.close() for table_name, table in self._tables().items()}
        return {table_name: table for table_name, table in table_of.items() if table is not None}
