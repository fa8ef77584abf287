"""Gavel's traces, read and written: tab-separated text without a header, one line a job, in order of arrival."""

from __future__ import annotations

import math
from decimal import Decimal
from os import PathLike
from pathlib import Path

from bfreplay.datasets.located import with_location
from bfreplay.datasets.log.metadata import SourceFile
from bfreplay.errors import InputError
from bfreplay.outputs import written_whole
from bfreplay.systems.gavel.job_types import TypedCurves
from bfreplay.systems.gavel.made_up_throughputs import throughputs_of
from bfreplay.systems.gavel.throughputs import ThroughputTable
from bfreplay.systems.trace_lines import NO_SLO, job_names, n_columns, sourced_set, trace_lines
from bfreplay.workload import ElasticJob, JobSet

COLUMNS = (
    "job type", "command", "working directory", "steps flag", "needs data directory", "total steps", "scale factor",
    "priority weight", "SLO", "arrival",
)  # fmt: skip
OLD_COLUMNS = ("job type", "command", "steps flag", "needs data directory", "total steps", "arrival", "scale factor")
"""Columns of the traces in ``traces/msr``, which the published parser no longer reads."""

_NOT_KEPT = "-"


def is_trace(path: str | PathLike[str]) -> bool:
    """Return whether a file is a trace: its name ends in ``.trace``, or its first line has the columns of one."""
    file = Path(path)
    if file.suffix.lower() == ".trace":
        return True
    return n_columns(file) in (len(COLUMNS), len(OLD_COLUMNS))


def read_trace(
    path: str | PathLike[str], table: ThroughputTable, *, elastic: bool = False, skip_unmeasured: bool = False
) -> JobSet:
    """Read a trace.

    Job ``job0007`` is Gavel's number 7, on line 8. Its work is in steps, its model is the job type, its weight the
    priority. Commands and working directories are not kept.

    Parameters
    ----------
    path
        Ten columns separated by tabs: job type, command, working directory, steps flag, needs data directory (0 or 1),
        total steps, scale factor (nodes at once), priority weight, SLO (-1: none; else the deadline is that many times
        the duration on the reference type, after the arrival), arrival (seconds, ascending). Or the old seven of
        ``OLD_COLUMNS``; those jobs have weight 1 and no deadline.
    table
        Measured throughputs.
    elastic
        A job runs on any number of nodes from the least to the most that its type was measured on, instead of on its
        scale factor only. Its deadline still refers to the scale factor.
    skip_unmeasured
        Skip jobs whose type was not measured with their scale factor, instead of refusing the trace.

    Returns
    -------
    JobSet
        Submit times count from the start of the window. Jobs of one type share their curves.

    Raises
    ------
    InputError
        Invalid line, or no throughput for its job; the message names file, line, column and value.
    """
    file = Path(path)
    curves = TypedCurves(table, elastic=elastic)
    requests = [line.request() for line in trace_lines(file, (COLUMNS, OLD_COLUMNS))]
    jobs = []
    for number, (job_name, request) in enumerate(zip(job_names(len(requests)), requests, strict=True), start=1):
        if skip_unmeasured and not table.runs_on(request.job_type, request.gang):
            continue
        try:
            jobs.append(curves.job(job_name, request))
        except InputError as error:
            raise _of_line(error, file, number, table) from error
    if not jobs:
        raise InputError(
            "no job of the trace was measured",
            file=file,
            value=f"{len(requests)} lines",
            expected="job types and scale factors of the throughput file",
            fix="give the throughputs of these jobs",
        )
    return sourced_set(jobs, [SourceFile.of(file), table.source], table.colocation())


def trace_with(file: Path, curves: Path | None) -> JobSet:
    """Read a trace with its throughput file, the word ``sample`` as for ``throughputs_of``.

    Raises
    ------
    InputError
        No throughput file, or as ``read_trace`` and ``read_throughputs``.
    """
    return read_trace(file, throughputs_of(curves, "a trace of Gavel", file=file))


def _of_line(error: InputError, file: Path, number: int, table: ThroughputTable) -> InputError:
    """Return the error of a job with its line in the trace; where throughputs are missing, with their file."""
    if error.file is None:
        return with_location(error, file, f"line {number}")
    expected = f"{error.expected}, as in {table.file.name}" if table.file else error.expected
    return InputError(
        error.problem,
        file=file,
        row=f"line {number}",
        column="job type, scale factor",
        value=error.value,
        expected=expected,
        fix="skip the job (skip_unmeasured=True in Python), or add its rate to the throughput file",
    )


def write_trace(jobs: JobSet, path: str | PathLike[str], overwrite: bool = False) -> None:
    """Write jobs in the ten columns of ``read_trace``.

    The format has whole steps: steps of generated jobs are rounded down, as by Gavel's own generator of traces.
    Commands, working directories and flags, which a simulation does not use, are ``-``.

    Parameters
    ----------
    jobs
        Jobs with ``min_nodes`` equal to ``max_nodes``, a model, some whole steps of work, and relative submit times.
        The jobs' names are not written: a trace numbers its lines.
    path
        The file; by custom its name ends in ``.trace``.
    overwrite
        Replace an existing file.

    Raises
    ------
    OutputExistsError
        The file exists and ``overwrite`` is false.
    InputError
        A job that the format cannot express.
    """
    file = Path(path)
    if not jobs.submit_is_relative:
        raise InputError(
            "a trace counts arrivals from its start, and these jobs have calendar submit times",
            file=file,
            value=jobs[0].submit_us,
            expected="submit times relative to the start of the window",
            fix="give the submit times as seconds after the start (submit_after_s)",
        )
    lines = ["\t".join(_cells(job)) for job in jobs]
    with written_whole([file], overwrite) as (temporary,):
        temporary.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


def _cells(job: ElasticJob) -> list[str]:
    if job.adaptation is not None:
        raise _unwritable(
            job,
            "its batch size changes",
            "adaptation",
            job.adaptation.rule,
            "jobs of one batch size",
            "keep the trace of Shockwave that it was read from",
        )
    if job.min_nodes != job.max_nodes:
        raise _unwritable(
            job,
            "its number of nodes is not fixed",
            "min_nodes",
            (job.min_nodes, job.max_nodes),
            "min_nodes equal to max_nodes",
            "set both to the same number",
        )
    if not job.model:
        raise _unwritable(job, "it has no job type", "model", job.model, "a job type", "name the job's type")
    if not 1 <= job.work_samples < math.inf:
        raise _unwritable(
            job,
            "its work is not a number of steps",
            "work_samples",
            job.work_samples,
            "at least one step, and an end",
            "give it some work",
        )
    if job.submit_us < 0:
        raise _unwritable(
            job, "it arrives before the start", "submit_us", job.submit_us, "0 or later", "move the arrivals"
        )
    return [
        job.model,
        _NOT_KEPT,
        _NOT_KEPT,
        _NOT_KEPT,
        "0",
        str(int(job.work_samples)),
        str(job.min_nodes),
        str(int(job.weight)) if float(job.weight).is_integer() else repr(float(job.weight)),
        f"{_slo(job):.6f}",
        f"{Decimal(job.submit_us).scaleb(-6).normalize():f}",
    ]


def _slo(job: ElasticJob) -> float:
    """Return the deadline as a factor of the duration, not yet rounded to the six digits of the format."""
    if job.deadline_us is None:
        return NO_SLO
    rate = float(job.throughput.table(job.max_nodes)[job.max_nodes])
    slo_factor = (job.deadline_us - job.submit_us) / 1e6 / (job.work_samples / rate) if rate else 0.0
    if not slo_factor >= 1e-6:
        raise _unwritable(
            job,
            "its deadline is not a positive multiple of its duration",
            "deadline_us",
            job.deadline_us,
            "a deadline after the submit time, and a throughput",
            "move the deadline",
        )
    return slo_factor


def _unwritable(job: ElasticJob, problem: str, column: str, value: object, expected: str, fix: str) -> InputError:
    return InputError(
        f"job {job.name!r} cannot be written to a trace: {problem}",
        column=column,
        value=value,
        expected=expected,
        fix=fix,
    )
