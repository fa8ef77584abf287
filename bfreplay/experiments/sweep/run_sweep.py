"""``sweep``: every run of a spec once, and the tables of what came out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bfreplay.errors import InputError
from bfreplay.experiments.prepared_run import files_of
from bfreplay.experiments.run_options import RunOptions
from bfreplay.experiments.sweep.columns import SECONDS, Cell, text_of
from bfreplay.experiments.sweep.dask_cluster import DaskExecutor
from bfreplay.experiments.sweep.local_processes import Done, Executor, ProcessExecutor, leave_unguarded_script
from bfreplay.experiments.sweep.plan import SweepPlan, planned
from bfreplay.experiments.sweep.result import SweepResult
from bfreplay.experiments.sweep.spec import SweepSpec, read_spec, spec_of, spec_of_options
from bfreplay.experiments.sweep.store import Failure, Store
from bfreplay.experiments.sweep.worker import RunOutcome, work_on
from bfreplay.outputs import write_whole, written_whole
from bfreplay.result_folders.records import SWEEP, JsonObject
from bfreplay.result_folders.writing import record_json
from bfreplay.runs import RunResult
from bfreplay.runs.metrics import COLUMNS

WORKER_DIED = "WorkerDied"
"""Type of the failure of a run whose workers did not live to tell."""


@dataclass(frozen=True, slots=True)
class SweepProgress:
    """How far a sweep is, in runs.

    Parameters
    ----------
    n_runs, n_reused, n_finished, n_failed
        All of them; those that were there, failed ones among them; those done and those failed since.
    n_workers
        At work.
    left_s
        Time left by the mean of the runs done since; before there is one, by ``expected_run_s``, or ``None``.
    """

    n_runs: int
    n_reused: int
    n_finished: int
    n_failed: int
    n_workers: int
    left_s: float | None


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a sweep would do: ids of its runs by what is there of them, each in the order of the spec."""

    finished: tuple[str, ...]
    failed: tuple[str, ...]
    missing: tuple[str, ...]


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
    """Make every run of ``spec`` that is not in ``out`` yet, then the table of all.

    Workers import the script that calls it, so put the call under ``if __name__ == "__main__":``.

    Parameters
    ----------
    spec
        A TOML file, its content as a mapping, or a list of ``RunOptions``; or what was made of one of these.
    out
        Folder; one with an earlier sweep is gone on with, whatever that one's spec was: runs are found by content.
    processes
        Workers on this machine; as many as there are processors by default.
    scheduler
        Address of a Dask scheduler whose workers are used instead.
    retry_failed
        Try again the runs that failed in an earlier sweep.
    allow_code
        Whether a spec in a file or a mapping, and the files that it names, may name code to import. ``RunOptions`` say
        it themselves.
    progress
        Called when the runs start, and after each of them.
    expected_run_s
        Seconds that a run is expected to take, for ``progress`` before the first one is done.
    on_wait
        Called when there is no Dask worker yet, before waiting for one.

    Returns
    -------
    SweepResult
        A run that failed is a row of its table with the error.

    Raises
    ------
    InputError, OutputExistsError, SolverUnavailableError
        The spec, an input, the folder or the scheduler cannot be used; nothing has run.
    """
    leave_unguarded_script()
    if processes is not None and scheduler is not None:
        raise InputError(
            "processes and a scheduler were given: a scheduler has workers of its own", value=processes,
            expected="one of the two", fix="leave --processes out",
        )  # fmt: skip
    plan = plan_of(spec, allow_code=allow_code)
    store = Store.made(out)
    with store.locked():
        store.tidy()
        write_whole(store.folder / SWEEP.record_file, record_json(plan.record(), "the sweep"))
        for table in ("results", "timings"):  # of an earlier spec, perhaps
            (store.folder / f"{table}.parquet").unlink(missing_ok=True)
        there = outlook(plan, store)
        # another sweep's worker may have finished a run after it was given up
        for run_id in (*there.finished, *(there.failed if retry_failed else ())):
            store.forget_failure(run_id)
        there = outlook(plan, store)
        try:
            if there.missing:
                executor = _executor(plan, store, there.missing, processes, scheduler, on_wait)
                try:
                    _run(plan, store, there, executor, progress, expected_run_s)
                finally:
                    executor.close()
        finally:
            store.tidy()
        write_tables(plan, store)
    return SweepResult(plan.record(), store.folder, n_reused=len(plan.runs) - len(there.missing))


def plan_of(
    spec: str | Path | JsonObject | Iterable[RunOptions] | SweepSpec | SweepPlan, *, allow_code: bool = False
) -> SweepPlan:
    """Read and check a spec in whatever form it comes; ``allow_code`` and errors as for ``sweep``."""
    if isinstance(spec, SweepPlan):
        return spec
    if isinstance(spec, SweepSpec):
        return planned(spec)
    if isinstance(spec, str | Path):
        return planned(read_spec(spec, allow_code=allow_code))
    return planned(spec_of(spec, allow_code=allow_code) if isinstance(spec, Mapping) else spec_of_options(spec))


def outlook(plan: SweepPlan, store: Store) -> Outlook:
    """Which runs are there; nothing is written."""
    runs: dict[str, list[str]] = {"finished": [], "failed": [], "missing": []}
    for run_id in plan.runs:
        state = "finished" if store.has(run_id) else "missing" if store.failure(run_id) is None else "failed"
        runs[state].append(run_id)
    return Outlook(**{state: tuple(ids) for state, ids in runs.items()})


def _executor(
    plan: SweepPlan, store: Store, missing: Sequence[str], processes: int | None, scheduler: str | None,
    on_wait: Callable[[], None] | None,
) -> Executor:  # fmt: skip
    if scheduler is None:
        return ProcessExecutor(processes)
    places = {
        file for run_id in missing for file in files_of(plan.runs[run_id].options).values() if Path(file).is_absolute()
    }  # fmt: skip
    return DaskExecutor(scheduler, store.folder, sorted(places), on_wait)


def _run(
    plan: SweepPlan, store: Store, there: Outlook, executor: Executor,
    progress: Callable[[SweepProgress], None] | None, expected_run_s: float | None,
) -> None:  # fmt: skip
    n_finished = n_failed = 0
    seconds: list[float] = []

    def tell() -> None:
        if progress is None:
            return
        left = len(there.missing) - n_finished - n_failed
        workers = max(1, min(executor.n_workers, left))
        run_s = sum(seconds) / len(seconds) if seconds else expected_run_s
        left_s = None if run_s is None else run_s * left / workers
        n_reused = len(plan.runs) - len(there.missing)
        progress(SweepProgress(len(plan.runs), n_reused, n_finished, n_failed, executor.n_workers, left_s))

    tasks = {run_id: plan.task(run_id, store.folder) for run_id in there.missing}
    tell()
    for done in executor.each(work_on, tasks):
        outcome = _outcome(done)
        # a worker may die after it has written the run, before it has said so
        if outcome.failure is None or store.has(outcome.id):
            n_finished += 1
            store.forget_failure(outcome.id)
        else:
            n_failed += 1
            store.note_failure(outcome.id, outcome.failure, plan.runs[outcome.id].options.to_json())
        if outcome.seconds is not None:
            seconds.append(outcome.seconds)
        tell()


def _outcome(done: Done[RunOutcome]) -> RunOutcome:
    if done.answer is not None:
        return done.answer
    problem = "every worker that tried it died"
    return RunOutcome(done.key, Failure(WORKER_DIED, problem, f"{problem}; the last one: {done.died}"), None)


FINISHED, FAILED = "finished", "failed"
_TEXTS = ("started", "worker")

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
    for run_id in plan.runs:
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
    columns = {name: typed([point.cells[name] for point in plan.spec.points]) for name in plan.spec.columns}
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
    for name in ("started", "worker", "load_s", *SECONDS, "peak_memory_mb"):
        of = [each.seconds if name in SECONDS else each for each in sessions.values()]
        columns[name] = pa.array([each[name] for each in of], pa.string() if name in _TEXTS else pa.float64())
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
