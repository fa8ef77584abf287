"""The tables of a sweep, made of what its runs left on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bfreplay.experiments.sweep.cells import Cell, text_of
from bfreplay.experiments.sweep.columns import OF_SUMMARY, TIMINGS
from bfreplay.experiments.sweep.plan import SweepPlan
from bfreplay.experiments.sweep.store import Store
from bfreplay.outputs import written_whole
from bfreplay.replay.run_warnings import log_warnings_of, run_warnings

FINISHED, FAILED = "finished", "failed"

_TYPES = {
    "double": pa.float64(), "int64": pa.int64(), "string": pa.string(), "timestamp": pa.timestamp("us", tz="UTC"),
    "strings": pa.list_(pa.string()),
}  # fmt: skip


def write_tables(plan: SweepPlan, store: Store) -> None:
    """Write ``results.parquet``, one row a point, and ``timings.parquet``, one row a run.

    The first depends on the spec and on the runs alone, not on where, when or in which order they were made.
    """
    summaries: dict[str, Mapping[str, Any]] = {}
    sessions: dict[str, Mapping[str, Any]] = {}
    problems: dict[str, str] = {}
    for run_id in plan.options:
        if store.has(run_id):
            record, sessions[run_id] = store.documents(run_id)
            warned = {"warnings": run_warnings(record), "log_warnings": log_warnings_of(record).to_json()}
            summaries[run_id] = {**record["summary"], **warned}  # runs of earlier versions have none in their summary
        else:
            failure = store.failure(run_id)
            problems[run_id] = "" if failure is None else failure.problem
    results = _results(plan, summaries, problems)
    timings = _timings(plan, sessions)
    files = [store.folder / "results.parquet", store.folder / "timings.parquet"]
    with written_whole(files, overwrite=True) as parts:
        for table, part in zip((results, timings), parts, strict=True):
            pq.write_table(table, part)


def _results(plan: SweepPlan, summaries: Mapping[str, Mapping[str, Any]], problems: Mapping[str, str]) -> pa.Table:
    columns: dict[str, pa.Array] = {}
    for name in plan.spec.columns:
        columns[name] = typed([point.cells[name] for point in plan.spec.points])
    columns["id"] = pa.array(plan.ids, pa.string())
    columns["status"] = pa.array([FINISHED if each in summaries else FAILED for each in plan.ids], pa.string())
    columns["error"] = pa.array([problems.get(each) for each in plan.ids], pa.string())
    for name, (kind, take) in OF_SUMMARY.items():
        values = [take(summaries[each]) if each in summaries else None for each in plan.ids]
        columns[name] = pa.array(values, _TYPES[kind])
    return pa.table(columns)


def _timings(plan: SweepPlan, sessions: Mapping[str, Mapping[str, Any]]) -> pa.Table:
    ids = [each for each in plan.options if each in sessions]
    columns = {"id": pa.array(ids, pa.string())}
    for name, (kind, take) in TIMINGS.items():
        columns[name] = pa.array([take(sessions[each]) for each in ids], _TYPES[kind])
    return pa.table(columns)


def typed(cells: Sequence[Cell]) -> pa.Array:
    """One column of what varies: truth values, whole numbers or numbers where all are; text otherwise."""
    given = [cell for cell in cells if cell is not None]
    if given and all(isinstance(cell, bool) for cell in given):
        return pa.array(cells, pa.bool_())
    numbers = [cell for cell in given if isinstance(cell, int | float) and not isinstance(cell, bool)]
    if given and len(numbers) == len(given):
        return pa.array(cells, pa.int64() if all(isinstance(cell, int) for cell in numbers) else pa.float64())
    return pa.array([None if cell is None else text_of(cell) for cell in cells], pa.string())
