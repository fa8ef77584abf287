"""write_trace: rigid jobs as one of Gavel's traces."""

from __future__ import annotations

import math
from decimal import Decimal
from os import PathLike
from pathlib import Path

from bfreplay.datasets.gavel.trace import NO_SLO
from bfreplay.errors import InputError
from bfreplay.outputs import written_whole
from bfreplay.workload import ElasticJob, JobSet

_NOT_KEPT = "-"


def write_trace(jobs: JobSet, path: str | PathLike[str], overwrite: bool = False) -> None:
    """Write jobs in the ten columns of ``read_trace``.

    The format has whole steps: parts of a step, which generated jobs have, are cut off as Gavel's own generator of
    traces does. Commands, working directories and flags, which a simulation does not look at, are ``-``.

    Parameters
    ----------
    jobs
        Jobs with ``min_nodes`` equal to ``max_nodes``, a model, some whole steps of work, and relative submit times.
        The jobs' names are not written: a trace numbers its lines.
    path
        The file; by custom its name ends in ``.trace``.
    overwrite
        Replace a file that is there.

    Raises
    ------
    OutputExistsError
        The file is there and ``overwrite`` is false.
    InputError
        A job that the format cannot express.
    """
    file = Path(path)
    if not jobs.submit_is_relative:
        raise InputError(
            "a trace counts arrivals from its start, and these jobs have submit times of a calendar", file=file,
            value=jobs[0].submit_us, expected="submit times relative to the start of the window",
            fix="give the submit times as seconds after the start (submit_after_s)",
        )  # fmt: skip
    lines = ["\t".join(_cells(job)) for job in jobs]
    with written_whole([file], overwrite) as (temporary,):
        temporary.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


def _cells(job: ElasticJob) -> list[str]:
    if job.min_nodes != job.max_nodes:
        raise _unwritable(
            job, "it has no one number of nodes", "min_nodes", (job.min_nodes, job.max_nodes),
            "min_nodes equal to max_nodes", "set both to the same number",
        )  # fmt: skip
    if not job.model:
        raise _unwritable(job, "it has no job type", "model", job.model, "a job type", "name the job's type")
    if not 1 <= job.work_samples < math.inf:
        raise _unwritable(
            job, "its work is no number of steps", "work_samples", job.work_samples, "at least one step, and an end",
            "give it some work",
        )  # fmt: skip
    if job.submit_us < 0:
        raise _unwritable(
            job, "it arrives before the start", "submit_us", job.submit_us, "0 or later", "move the arrivals"
        )
    return [
        job.model, _NOT_KEPT, _NOT_KEPT, _NOT_KEPT, "0", str(int(job.work_samples)), str(job.min_nodes),
        _number_text(job.weight), f"{_slo(job):.6f}", f"{Decimal(job.submit_us).scaleb(-6).normalize():f}",
    ]  # fmt: skip


def _slo(job: ElasticJob) -> float:
    """The deadline as a factor of the duration; rounded to the six digits of the format by who writes it."""
    if job.deadline_us is None:
        return NO_SLO
    rate = float(job.throughput.table(job.max_nodes)[job.max_nodes])
    slo = (job.deadline_us - job.submit_us) / 1e6 / (job.work_samples / rate) if rate else 0.0
    if not slo >= 1e-6:
        raise _unwritable(
            job, "its deadline is no positive factor of its duration", "deadline_us", job.deadline_us,
            "a deadline after the submit time, and a throughput", "move the deadline",
        )  # fmt: skip
    return slo


def _number_text(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def _unwritable(job: ElasticJob, problem: str, column: str, value: object, expected: str, fix: str) -> InputError:
    return InputError(
        f"job {job.name!r} cannot be written to a trace: {problem}", column=column, value=value, expected=expected,
        fix=fix,
    )  # fmt: skip
