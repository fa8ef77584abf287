"""``sweep``: every run of a spec once, and the tables of results."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bfreplay.errors import InputError
from bfreplay.experiments.prepared_run import files_of
from bfreplay.experiments.run_options import RunOptions
from bfreplay.experiments.sweep.dask_cluster import DaskExecutor
from bfreplay.experiments.sweep.local_processes import Done, Executor, ProcessExecutor, leave_unguarded_script
from bfreplay.experiments.sweep.placeholders import SECONDS, Cell, text_of
from bfreplay.experiments.sweep.plan import SweepPlan, plan_runs
from bfreplay.experiments.sweep.result import FAILED, SweepResult
from bfreplay.experiments.sweep.spec import SweepSpec, read_spec, spec_of, spec_of_options
from bfreplay.experiments.sweep.store import Failure, Store
from bfreplay.experiments.sweep.worker import RunOutcome, work_on
from bfreplay.options import checked_keywords
from bfreplay.outputs import write_whole, written_whole
from bfreplay.result_folders.records import SWEEP, JsonObject
from bfreplay.result_folders.writing import record_json
from bfreplay.runs import RunResult
from bfreplay.runs.headline_metrics import COLUMNS

WORKER_DIED = "WorkerDied"
"""Type of the failure of a run whose workers died."""


@dataclass(frozen=True, slots=True)
class SweepProgress:
    """Progress of a sweep, in runs.

    Parameters
    ----------
    n_runs, n_reused, n_finished, n_failed
        Number of all runs; of those that existed, also failed; of those finished and failed since.
    n_workers
        Number of workers.
    left_s
        Estimated time left, by ``expected_run_s`` before the first run is done; ``None`` without it.
    """

    n_runs: int
    n_reused: int
    n_finished: int
    n_failed: int
    n_workers: int
    left_s: float | None


@dataclass(frozen=True, slots=True)
class Outlook:
    """Runs of a sweep by state: ids of finished, failed and missing runs, in the order of the spec."""

    finished: tuple[str, ...]
    failed: tuple[str, ...]
    missing: tuple[str, ...]


@checked_keywords()
def sweep(
    spec: str | Path | JsonObject | Iterable[RunOptions] | SweepSpec | SweepPlan,
    out: str | Path,
    *,
    processes: int | None = None,
    scheduler: str | None = None,
    retry_failed: bool = False,
    allow_code: bool = False,
    progress: Callable[[SweepProgress], None] | None = None,
    expected_run_s: float | None = None,
    on_wait: Callable[[], None] | None = None,
) -> SweepResult:
    """Make every run of ``spec`` that is missing in ``out``, then the table of all; resumes an unfinished sweep.

    A script whose runs have objects of a class of its own has the call under ``if __name__ == "__main__":``.

    Parameters
    ----------
    spec
        A TOML file, its content as a mapping, or a list of ``RunOptions``; or a ``SweepSpec`` or ``SweepPlan``.
    out
        Folder, new or of an earlier sweep with any spec: its runs are found by content.
    processes
        Number of workers on this machine; by default the number of processors.
    scheduler
        Address of a Dask scheduler, to use its workers instead.
    retry_failed
        Repeat the runs that failed in an earlier sweep.
    allow_code
        Import code named by a spec in a file or a mapping, and by its files; ``RunOptions`` have their own.
    progress
        Called when the runs start, and after each run.
    expected_run_s
        Expected seconds of a run, for ``progress`` before the first run is done.
    on_wait
        Called before waiting for the first Dask worker.

    Returns
    -------
    SweepResult
        A failed run is a row of its table with the error.

    Raises
    ------
    InputError, OutputExistsError, SolverUnavailableError
        The spec, an input, the folder or the scheduler cannot be used; nothing has run.
    """
    leave_unguarded_script()
    if processes is not None and scheduler is not None:
        raise InputError(
            "both processes and a scheduler are given: a scheduler has its own workers",
            value=processes,
            expected="one of the two",
            fix="remove --processes",
        )
    plan = plan_of(spec, allow_code=allow_code)
    store = Store.create(out)
    with store.lock():
        store.tidy()
        write_whole(store.folder / SWEEP.record_file, record_json(plan.record(), "the sweep"))
        for table in ("results", "timings"):  # of an earlier spec
            (store.folder / f"{table}.parquet").unlink(missing_ok=True)
        states = outlook(plan, store)
        # a worker of another sweep may have finished a run that was given up
        for run_id in (*states.finished, *(states.failed if retry_failed else ())):
            store.forget_failure(run_id)
        states = outlook(plan, store)
        try:
            if states.missing:
                executor: Executor = (
                    ProcessExecutor(processes)
                    if scheduler is None
                    else DaskExecutor(scheduler, store.folder, _inputs_of(plan, states.missing), on_wait)
                )
                with closing(executor):
                    _run(plan, store, states, executor, progress, expected_run_s)
        finally:
            store.tidy()
        write_tables(plan, store)
    return SweepResult(plan.record(), store.folder, n_reused=len(plan.runs) - len(states.missing))


def plan_of(
    spec: str | Path | JsonObject | Iterable[RunOptions] | SweepSpec | SweepPlan, *, allow_code: bool = False
) -> SweepPlan:
    """Read and check a spec in any form; ``allow_code`` and errors as for ``sweep``."""
    if isinstance(spec, SweepPlan):
        return spec
    if isinstance(spec, SweepSpec):
        return plan_runs(spec)
    if isinstance(spec, str | Path):
        return plan_runs(read_spec(spec, allow_code=allow_code))
    return plan_runs(spec_of(spec, allow_code=allow_code) if isinstance(spec, Mapping) else spec_of_options(spec))


def outlook(plan: SweepPlan, store: Store) -> Outlook:
    """Return the runs by state; writes nothing."""
    runs: dict[str, list[str]] = {"finished": [], "failed": [], "missing": []}
    for run_id in plan.runs:
        state = "finished" if store.has(run_id) else "missing" if store.failure(run_id) is None else "failed"
        runs[state].append(run_id)
    return Outlook(**{state: tuple(ids) for state, ids in runs.items()})


def _inputs_of(plan: SweepPlan, run_ids: Iterable[str]) -> list[str]:
    """Return the files that some runs read."""
    files = itertools.chain.from_iterable(files_of(plan.runs[run_id].options).values() for run_id in run_ids)
    return sorted({file for file in files if Path(file).is_absolute()})


def _run(
    plan: SweepPlan,
    store: Store,
    states: Outlook,
    executor: Executor,
    progress: Callable[[SweepProgress], None] | None,
    expected_run_s: float | None,
) -> None:
    n_finished = n_failed = 0
    seconds: list[float] = []

    def tell() -> None:
        if progress is None:
            return
        n_left = len(states.missing) - n_finished - n_failed
        workers = max(1, min(executor.n_workers, n_left))
        run_s = sum(seconds) / len(seconds) if seconds else expected_run_s
        remaining_s = None if run_s is None else run_s * n_left / workers
        n_old_runs = len(plan.runs) - len(states.missing)
        progress(SweepProgress(len(plan.runs), n_old_runs, n_finished, n_failed, executor.n_workers, remaining_s))

    tasks = {run_id: plan.task(run_id, store.folder) for run_id in states.missing}
    tell()
    for done_task in executor.run_tasks(work_on, tasks):
        outcome = _outcome(done_task)
        # a worker may die after it has written the run and before it answers
        if outcome.failure is None or store.has(outcome.id):
            n_finished += 1
            store.forget_failure(outcome.id)
        else:
            n_failed += 1
            store.note_failure(outcome.id, outcome.failure, plan.runs[outcome.id].options.to_json())
        if outcome.seconds is not None:
            seconds.append(outcome.seconds)
        tell()


def _outcome(outcome: Done[RunOutcome]) -> RunOutcome:
    if outcome.answer is not None:
        return outcome.answer
    problem = "every worker that tried it died"
    return RunOutcome(outcome.key, Failure(WORKER_DIED, problem, f"{problem}; the last one: {outcome.died}"), None)


FINISHED = "finished"
_TEXTS = ("started", "worker")

_TYPES = {
    "double": pa.float64(),
    "int64": pa.int64(),
    "string": pa.string(),
    "timestamp[us, tz=UTC]": pa.timestamp("us", tz="UTC"),
}


def write_tables(plan: SweepPlan, store: Store) -> None:
    """Write ``results.parquet``, one row per point, and ``timings.parquet``, one row per run.

    The first depends only on the spec and the runs, not on the place, time and order of their making.
    """
    runs: dict[str, RunResult] = {}
    problems: dict[str, str] = {}
    for run_id in plan.runs:
        if store.has(run_id):
            runs[run_id] = RunResult.load(store.run_folder(run_id))
        else:
            failure = store.failure(run_id)
            problems[run_id] = "" if failure is None else failure.problem
    tables = _results(plan, runs, problems), _timings(runs)
    files = [store.folder / "results.parquet", store.folder / "timings.parquet"]
    with written_whole(files, overwrite=True) as parts:
        for table, part_file in zip(tables, parts, strict=True):
            pq.write_table(table, part_file)


def _results(plan: SweepPlan, runs: Mapping[str, RunResult], problems: Mapping[str, str]) -> pa.Table:
    columns = {name: column_of([point.cells[name] for point in plan.spec.points]) for name in plan.spec.columns}
    columns["id"] = pa.array(plan.ids, pa.string())
    columns["status"] = pa.array([FINISHED if run_id in runs else FAILED for run_id in plan.ids], pa.string())
    columns["error"] = pa.array([problems.get(run_id) for run_id in plan.ids], pa.string())
    for name, metric in COLUMNS.items():
        values = {run_id: metric.of(run) for run_id, run in runs.items()}
        columns[name] = pa.array([values.get(run_id) for run_id in plan.ids], _TYPES[metric.type])
    warnings = {run_id: run.warnings for run_id, run in runs.items()}
    columns["warnings"] = pa.array([warnings.get(run_id) for run_id in plan.ids], pa.list_(pa.string()))
    return pa.table(columns)


def _timings(runs: Mapping[str, RunResult]) -> pa.Table:
    columns = {"id": pa.array(runs, pa.string())}
    for name in ("started", "worker", "load_s", *SECONDS, "peak_memory_mb"):
        measurements = [(run.session.seconds if name in SECONDS else run.session)[name] for run in runs.values()]
        columns[name] = pa.array(measurements, pa.string() if name in _TEXTS else pa.float64())
    return pa.table(columns)


def column_of(cells: Sequence[Cell]) -> pa.Array:
    """Return one column of values that vary: bool, int or float where all cells are; text otherwise."""
    values = [cell for cell in cells if cell is not None]
    kinds = {next(cell_type for cell_type in (bool, int, float, str) if isinstance(cell, cell_type)) for cell in values}
    if kinds == {bool} or (kinds and kinds <= {int, float}):
        return pa.array(cells, pa.float64() if float in kinds else None)
    return pa.array([None if cell is None else text_of(cell) for cell in cells], pa.string())
