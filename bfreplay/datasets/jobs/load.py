"""load_jobs and write_jobs: job sets from and to files."""

from __future__ import annotations

import csv
from decimal import Decimal
from os import PathLike
from pathlib import Path

from bfreplay import checks
from bfreplay.datasets.jobs.curve_points import CurveCache, inline_text
from bfreplay.datasets.jobs.measurements import read_curves_file
from bfreplay.datasets.jobs.rows import COLUMNS, REQUEST_COLUMNS, JobRows, check_columns
from bfreplay.datasets.jobs.tables import JobTable, with_own_curves
from bfreplay.datasets.located import locate_errors
from bfreplay.datasets.log.metadata import SourceFile
from bfreplay.datasets.named_inputs import is_bundled, resolve_sample
from bfreplay.datasets.readers_by_ending import JOB_TABLE_READERS, check_is_file, ending_of, read_by_ending
from bfreplay.datasets.times import OUTSIDE_CALENDAR, in_calendar, iso_utc
from bfreplay.defaults import BUNDLED
from bfreplay.documents import Json, pick
from bfreplay.errors import InputError
from bfreplay.outputs import written_whole
from bfreplay.registry import built_in, published_systems
from bfreplay.workload import ElasticJob, JobSet
from bfreplay.workload.elastic_job import OPTIONAL_COSTS

_FLOAT_COLUMNS = ("work_samples", "weight")


def load_jobs(
    path: str | PathLike[str], curves: str | PathLike[str] | None = None, *, allow_code: bool = False
) -> JobSet:
    """Read a job set.

    Parameters
    ----------
    path
        ``.csv``, ``.parquet`` or ``.toml`` (one ``[[job]]`` table a job); the published ``…-Jbnd-….pkl``; a trace of
        Gavel or Shockwave, ``.trace`` (see ``bfreplay.systems.gavel.trace``); or one of ElasticFlow, ``.csv``.
        ``"sample"``: the bundled jobs.

        Columns: ``name``; ``submit_time`` (ISO-8601 UTC or seconds since 1970) or ``submit_after_s`` (seconds after
        the start of the replay window), at most one of the two, by default 0 s after; ``min_nodes``,
        ``max_nodes``, ``scale_up_cost_s``, ``scale_down_cost_s``; ``work_samples`` (``inf``: never ends); ``curve``.
        Optional: ``objective_curve``, ``weight``, ``deadline`` (ISO-8601) or ``deadline_after_s`` (seconds after the
        job's own submit time), ``node_types`` (separated by ``;``), ``model``, ``requested_nodes`` and ``expected_s``
        (the request without rescaling, and the run time expected there), ``start_cost_s``, ``restart``,
        ``work_saved_every_s``, ``saves``, ``counts`` (separated by ``;``). Times are rounded to microseconds.
        A cost is a number of seconds, or by the new count ``0:20 4:29`` (also a table in TOML, a map in Parquet).
        In TOML a job with ``count`` and ``submit_every_s`` is repeated as NAME-0000, NAME-0001, ….

        A curve is points, ``0:0 1:7115.3 2:13071.7`` (lists of pairs in Parquet and TOML), a law,
        ``amdahl(rate_1=2831, serial=0.02)`` (a table with the key ``law`` in TOML), or the name of a curve.
    curves
        Named curves: ``.csv`` or ``.parquet`` with ``curve, nodes, value``, or ``.toml`` with ``[curves.NAME]`` tables:
        ``nodes`` and ``values``, or ``law`` and its parameters.
        A jobs TOML may hold its own. A published job set needs the ``…-JNPs-….pkl``. A trace of
        Gavel or Shockwave needs its throughput file, ``.json`` or ``.json.gz``; one of ElasticFlow its folder of
        throughput tables; ``sample`` stands for made-up throughputs.
    allow_code
        Import laws that the files name as ``package.module:Class``: only for files that you trust.

    Returns
    -------
    JobSet
        Equal curves are one object.

    Raises
    ------
    InputError
        A value in the files cannot be used; the message names file, row, column and value.
    """
    checks.instance("path", path, (str, PathLike), "the path of a file of jobs, or 'sample'")
    file = resolve_sample(Path(path), "jobs")
    curves_file = None if curves is None else Path(curves)
    check_is_file(file)
    ending = ending_of(file, JOB_TABLE_READERS)
    if ending in (None, ".csv") and not _is_published(file):
        for system in reversed(published_systems()):  # a later one's format has more columns, and the same ending
            is_of_kind = system.is_trace and system.traces_are_csv == (ending == ".csv")
            if is_of_kind and built_in(system.is_trace)(file):
                jobs: JobSet = built_in(system.read_trace)(file, curves_file)
                return jobs
    if curves_file is not None:
        _refuse_other_curves(file, curves_file)
    if _is_published(file):
        if curves_file is None:
            raise InputError(
                "a published job set needs its second file, the curves",
                file=file,
                expected="the table of Ns, Ps, Os as `curves`",
                fix="give the …-JNPs-….pkl that belongs to this …-Jbnd-….pkl",
            )
        from bfreplay.datasets.published.pickled_jobs import read_published_jobs

        return read_published_jobs(file, curves_file)
    job_table: JobTable = read_by_ending(
        file,
        JOB_TABLE_READERS,
        (".pkl (published)", ".trace (Gavel, Shockwave)", "or a study of Optuna: its storage (SQLite or journal)"),
        "give the training jobs to replay (docs/files.md#jobs), not the scheduler's jobs",
    )
    if not job_table.rows:
        raise InputError("the file has no jobs", file=file, expected="at least one job", fix="add a row for each job")
    check_columns(job_table)
    curve_cache = CurveCache(allow_code=allow_code)
    curves_of_file = {} if curves_file is None else read_curves_file(curves_file, curve_cache)
    all_curves = with_own_curves(curves_of_file, job_table, curve_cache, "is in the jobs file")
    rows = JobRows(job_table, all_curves, curve_cache)
    of_table = rows.jobs()
    sources = [SourceFile.of(source) for source in (file, curves_file) if source is not None]
    with locate_errors(file, None):
        return JobSet(of_table, rows.submit_is_relative, [(source.name, source.sha256) for source in sources])


def _is_published(jobs_file: Path) -> bool:
    return jobs_file.suffix.lower() == ".pkl"


def _refuse_other_curves(jobs_file: Path, curves_file: Path) -> None:
    """Raise ``InputError`` for a file of curves that does not go with the jobs in ``jobs_file``."""
    if not is_bundled(curves_file):
        check_is_file(curves_file)
    if _is_published(jobs_file) and not is_bundled(curves_file) and not _is_published(curves_file):
        raise InputError(
            "a published job set (.pkl) goes with published curves only",
            file=curves_file,
            value=curves_file.name,
            expected="the table of Ns, Ps, Os as .pkl",
            fix=f"give the …-JNPs-….pkl that belongs to {jobs_file.name}",
        )
    for_systems, jobs = "can be used with a trace or workload of a published system only", "a .trace or gavel(n=...)"
    if is_bundled(curves_file):
        problem = f"the made-up throughputs ({BUNDLED}) {for_systems}"
    elif _is_published(curves_file) and not _is_published(jobs_file):
        problem, jobs = "published curves (.pkl) go with the published table of bounds only", "the …-Jbnd-….pkl"
    elif ending_of(curves_file, (".json", ".json.gz")) is not None:
        problem = f"a throughput file (.json) {for_systems}"
    else:
        return
    raise InputError(
        problem,
        file=curves_file,
        value=jobs_file.name,
        expected=f"curves for a {jobs_file.suffix or 'plain'} job set as {', '.join(JOB_TABLE_READERS)}",
        fix=f"give {jobs} as the jobs, or the curves as a table of curve, nodes, value",
    )


def write_jobs(jobs: JobSet, path: str | PathLike[str], overwrite: bool = False) -> None:
    """Write a job set as CSV that ``load_jobs`` reads back exactly.

    Curves are written as points, without their names; a law is written as a law; costs by count as ``0:20 4:29``.

    Parameters
    ----------
    jobs
        The job set.
    path
        A name ending in ``.csv``.
    overwrite
        Replace an existing file.

    Raises
    ------
    OutputExistsError
        The file exists and ``overwrite`` is false.
    InputError
        Another ending, a name that would be a formula in a spreadsheet, a node type with a semicolon, a submit time
        outside the years 1 to 9999, or a job with several throughput curves: by node type, or by batch size.
    """
    checks.instance("jobs", jobs, JobSet, "a JobSet, as load_jobs returns it")
    file = Path(path)
    if file.suffix.lower() != ".csv":
        raise InputError("jobs are written as CSV", file=file, value=file.name, expected="a name ending in .csv")
    relative = jobs.submit_is_relative
    empty_columns: tuple[str, ...] = ("submit_time", "deadline") if relative else ("submit_after_s", "deadline_after_s")
    rows = [_cells(job, relative) for job in jobs]
    for job in jobs:
        for kind_of_name, name in (("job", job.name), ("model", job.model or "")):
            checks.no_formula(kind_of_name, name, file)
    # optional columns are written only if a job has them: other programs may read these files
    empty_columns += tuple(name for name in (*REQUEST_COLUMNS, *OPTIONAL_COSTS) if not any(row[name] for row in rows))
    columns = [name for name in COLUMNS if name not in empty_columns]
    with written_whole([file], overwrite) as (temporary,), temporary.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, columns, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({name: text for name, text in row.items() if name in columns})


def _cells(job: ElasticJob, relative: bool) -> dict[str, Json]:

    def refuse(problem: str, column_name: str, value: object, expected: str, fix: str | None = None) -> None:
        raise InputError(f"job {job.name!r}: {problem}", column=column_name, value=value, expected=expected, fix=fix)

    if job.adaptation is not None or len(job.throughput_by_type) > 1:
        problem, fix = "several throughput curves cannot be written", "keep the trace or the spec of the jobs"
        refuse(problem, "throughput", job.model or job.name, "one curve for each job", fix)
    if any(";" in node_type or node_type != node_type.strip() for node_type in job.node_types):
        expected = "names without semicolons and without spaces around them"
        refuse("a node type cannot be written", "node_types", job.node_types, expected)
    if not relative and not in_calendar(job.submit_us):
        problem = f"the submit time cannot be written: it is {OUTSIDE_CALENDAR}"
        expected = "microseconds since 1970-01-01 UTC, in the years 1 to 9999"
        refuse(problem, "submit_us", job.submit_us, expected, "check the unit of the times")
    due_us = job.deadline_us
    changes = dict.fromkeys(OPTIONAL_COSTS, "") | job.changes()
    return {
        **pick(job, "name", "min_nodes", "max_nodes"),
        **{name: ";".join(map(str, cell)) if isinstance(cell, list) else cell for name, cell in changes.items()},
        **{name: repr(float(getattr(job, name))) for name in _FLOAT_COLUMNS},
        "submit_time": _time_text(job.submit_us),
        "submit_after_s": _seconds_text(job.submit_us),
        "curve": inline_text(job.throughput),
        "objective_curve": "" if job.objective is None else inline_text(job.objective),
        "deadline": "" if due_us is None else _time_text(due_us),
        "deadline_after_s": "" if due_us is None else _seconds_text(due_us - job.submit_us),
        "node_types": ";".join(job.node_types),
        "model": job.model or "",
        "requested_nodes": "" if job.requested_nodes is None else job.requested_nodes,
        "expected_s": "" if job.expected_s is None else repr(float(job.expected_s)),
    }


def _time_text(time_us: int) -> str:
    return iso_utc(time_us) if in_calendar(time_us) else _seconds_text(time_us)


def _seconds_text(duration_us: int) -> str:
    return f"{Decimal(duration_us).scaleb(-6):f}"
