"""ElasticFlow's traces, read and written: CSV with a header, one row a job, times in seconds."""

from __future__ import annotations

import math
from os import PathLike
from pathlib import Path

from bfreplay import checks
from bfreplay.datasets.jobs.tables import JobTable, read_csv_table
from bfreplay.datasets.log.metadata import SourceFile
from bfreplay.errors import InputError
from bfreplay.systems.elasticflow.published.event_loop import overhead_s
from bfreplay.systems.elasticflow.throughputs import Throughputs, job_model, throughputs_of
from bfreplay.systems.trace_lines import sourced_set, split_job_type
from bfreplay.workload import ElasticJob, JobSet

COLUMNS = ("job_id", "submit_time", "iteration", "model_name", "ddl", "batch_size", "num_gpu", "duration")
_OTHER_NAMES = {"submit_time": "submission_time", "iteration": "num_iteration", "ddl": "deadline"}
"""Names in the traces of the authors' own clusters."""

BEST_EFFORT = "best_effort"

WHOLE_HOUR_S = 3600
"""Times of a trace count from the last whole hour before the first job."""

_FORM = "columns " + ", ".join(COLUMNS) + f", and {BEST_EFFORT} (0 or 1) if there are such jobs"


def is_trace(path: str | PathLike[str]) -> bool:
    """Return whether the first line of a CSV file has the columns of a trace."""
    with Path(path).open("rb") as stream:
        names = {name.strip().decode("utf-8", "replace") for name in stream.readline(4096).split(b",")}
    return {"model_name", "batch_size", "num_gpu"} <= names


def read_trace(path: str | PathLike[str], throughputs: Throughputs) -> JobSet:
    """Read a trace.

    A job may use every number of GPUs that its model was measured on with its batch size; ``requested_nodes`` and
    ``expected_s`` are those of the trace. Work is in iterations. A change of its GPUs costs it 4 s with one GPU
    requested and 2 s more for each doubling, as in the published simulator for GPUs that are new to a job.

    Parameters
    ----------
    path
        ``job_id``, ``submit_time`` (or ``submission_time``), ``iteration`` (or ``num_iteration``), ``model_name``,
        ``ddl`` (or ``deadline``), ``batch_size`` (global), ``num_gpu``, ``duration``, and perhaps ``best_effort``: 1
        for a job whose deadline does not count. Times are in seconds; other columns are not read.
    throughputs
        Measured rates.

    Returns
    -------
    JobSet
        Submit times count from the start of the window: the last whole hour before the first job.

    Raises
    ------
    InputError
        Invalid row, or no throughput for its job; the message names file, row, column and value.
    """
    file = Path(path)
    table = read_csv_table(file)
    rows = [_Row(table, row, {name: str(cell).strip() for name, cell in cells.items()}) for row, cells in table.rows]
    if not rows:
        raise InputError("the trace has no jobs", file=file, expected=_FORM, fix="check what wrote it")
    start_s = min(row.whole("submit_time", 0) for row in rows) // WHOLE_HOUR_S * WHOLE_HOUR_S
    jobs = [row.job(throughputs, start_s) for row in rows]
    return sourced_set(jobs, [SourceFile.of(file), *throughputs.sources])


def trace_with(file: Path, curves: Path | None) -> JobSet:
    """Read a trace with its folder of throughput tables; the word ``sample`` stands for made-up ones.

    Raises
    ------
    InputError
        No tables, or as ``read_trace`` and ``read_throughputs``.
    """
    return read_trace(file, throughputs_of(curves, "a trace of ElasticFlow", file=file))


def trace_job(
    name: str,
    submit_s: int,
    iterations: int,
    model: str,
    deadline_s: int | None,
    batch_size: int,
    gpus: int,
    duration_s: int,
    throughputs: Throughputs,
) -> ElasticJob:
    """Return a job as in ``read_trace``; ``deadline_s`` is ``None`` for best effort.

    Raises
    ------
    InputError
        A number of GPUs on which its model was not measured.
    """
    rates = throughputs.of(model, batch_size)
    if gpus not in rates:
        raise InputError(
            f"{job_model(model, batch_size)} was not measured on {gpus} GPUs",
            file=throughputs.folder,
            column="num_gpu",
            value=gpus,
            expected=f"one of {list(rates)}",
            fix="correct the trace, or measure it and add it to the table",
        )
    cost_s = overhead_s(gpus, 1, restart=False)
    return ElasticJob(
        name=name,
        submit_us=submit_s * 1_000_000,
        min_nodes=min(rates),
        max_nodes=max(rates),
        scale_up_cost_s=cost_s,
        scale_down_cost_s=cost_s,
        work_samples=float(iterations),
        throughput=throughputs.curve(model, batch_size),
        deadline_us=None if deadline_s is None else deadline_s * 1_000_000,
        model=job_model(model, batch_size),
        requested_nodes=gpus,
        expected_s=float(duration_s),
    )


class _Row:
    """Row of a trace."""

    def __init__(self, table: JobTable, row: int | str, cells: dict[str, str]) -> None:
        self._table, self._row, self._cells = table, row, cells

    def job(self, throughputs: Throughputs, start_s: int) -> ElasticJob:
        is_best_effort = self._cells.get(BEST_EFFORT, "") or "0"
        if is_best_effort not in ("0", "1"):
            raise self._error("best_effort is neither 0 nor 1", BEST_EFFORT, is_best_effort, "0 or 1")
        deadline_s = None if is_best_effort == "1" else self.whole("ddl", 0) - start_s
        try:
            return trace_job(
                self._text("job_id"),
                self.whole("submit_time", 0) - start_s,
                self.whole("iteration", 1),
                self._text("model_name"),
                deadline_s,
                self.whole("batch_size", 1),
                self.whole("num_gpu", 1),
                self.whole("duration", 1),
                throughputs,
            )
        except InputError as error:
            raise (
                error if error.row is not None else error.with_changes(file=self._table.file, row=self._row)
            ) from error

    def _text(self, column: str) -> str:
        name = column if column in self._cells else _OTHER_NAMES.get(column, column)
        if not self._cells.get(name):
            raise self._error(f"the {column} is missing", column, None, _FORM)
        return self._cells[name]

    def whole(self, column: str, least: int) -> int:
        """Return a whole number of at least ``least``."""
        cell = self._text(column)
        try:
            number = checks.decimal(cell)
        except ValueError:
            number = math.nan
        if not (number.is_integer() and least <= number <= checks.LARGEST):
            raise self._error(f"the {column} is not a whole number", column, cell, f"a whole number >= {least}")
        return int(number)

    def _error(self, problem: str, column: str, value: object, expected: str) -> InputError:
        return InputError(
            problem,
            file=self._table.file,
            row=self._row,
            column=column,
            value=value,
            expected=expected,
            fix="correct the row",
        )


def model_and_batch_size(job: ElasticJob) -> tuple[str, int]:
    """Return ``("bert", 64)`` of a job with the model ``"bert (batch size 64)"``.

    Raises
    ------
    InputError
        Another form, or no number of nodes asked for.
    """
    model, size = split_job_type(job.model or "")
    if not (model and size and job.requested_nodes and math.isfinite(job.work_samples)):
        raise InputError(
            f"job {job.name!r} is not of a trace of ElasticFlow",
            column="model",
            value=job.model,
            expected="a model such as 'bert (batch size 64)', a number of nodes asked for, and an end",
            fix="read the jobs from such a trace, or generate them: elasticflow(n=100)",
        )
    return model, size
