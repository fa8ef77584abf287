"""The tables of a sweep, made of what its runs left on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from bfreplay.experiments.sweep.cells import Cell, text_of
from bfreplay.experiments.sweep.columns import SECONDS
from bfreplay.experiments.sweep.plan import SweepPlan
from bfreplay.experiments.sweep.store import Store
from bfreplay.outputs import written_whole
from bfreplay.replay import RunResult
from bfreplay.replay.metrics import COLUMNS

FINISHED, FAILED = "finished", "failed"

_TYPES = {
    "double": pa.float64(), "int64": pa.int64(), "string": pa.string(),
    "timestamp[us, tz=UTC]": pa.timestamp("us", tz="UTC"),
}  # fmt: skip


def write_tables(plan: SweepPlan, store: Store) -> None:
    """Write ``results.parquet``, one row a point, and ``timings.parquet``, one row a run.

    The first depends on the spec and on the runs alone, not on where, when or in which order they were made.
    """
    runs: dict[str, RunResult] = {}
    problems: dict[str, str] = {}
    for run_id in plan.options:
        if store.has(run_id):
            runs[run_id] = RunResult.load(store.run_folder(run_id))
        else:
            failure = store.failure(run_id)
            problems[run_id] = "" if failure is None else failure.problem
    tables = _results(plan, runs, problems), _timings(runs)
    files = [store.folder / "results.parquet", store.folder / "timings.parquet"]
    with written_whole(files, overwrite=True) as parts:
        for table, part in zip(tables, parts, strict=True):
            pq.write_table(table, part)


def _results(plan: SweepPlan, runs: Mapping[str, RunResult], problems: Mapping[str, str]) -> pa.Table:
    columns: dict[str, pa.Array] = {}
    for name in plan.spec.columns:
        columns[name] = typed([point.cells[name] for point in plan.spec.points])
    columns["id"] = pa.array(plan.ids, pa.string())
    columns["status"] = pa.array([FINISHED if each in runs else FAILED for each in plan.ids], pa.string())
    columns["error"] = pa.array([problems.get(each) for each in plan.ids], pa.string())
    for name, metric in COLUMNS.items():
        values = {run_id: metric.of(run) for run_id, run in runs.items()}
        columns[name] = pa.array([values.get(each) for each in plan.ids], _TYPES[metric.type])
    warnings = {run_id: run.warnings for run_id, run in runs.items()}
    columns["warnings"] = pa.array([warnings.get(each) for each in plan.ids], pa.list_(pa.string()))
    return pa.table(columns)


def _timings(runs: Mapping[str, RunResult]) -> pa.Table:
    sessions = {run_id: run.session for run_id, run in runs.items()}
    columns = {"id": pa.array(sessions, pa.string())}
    for name in ("started", "worker"):
        columns[name] = pa.array([each[name] for each in sessions.values()], pa.string())
    for name in ("load_s", *SECONDS, "peak_memory_mb"):
        of = [each.seconds if name in SECONDS else each for each in sessions.values()]
        columns[name] = pa.array([each[name] for each in of], pa.float64())
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
