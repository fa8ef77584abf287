"""Jobs in any form that a user gives: a job set, a generated one, a campaign, or a job source."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import cast

from bfreplay.errors import InputError
from bfreplay.registry import Registry, built_in, published_systems, unknown_name
from bfreplay.workload import ElasticJob, JobSet, JobSource

CLASS_PLACE = re.compile(r"[^\W\d][\w.]*:[^\W\d][\w.]*")  # no path of Windows: a drive is followed by a slash

_GENERATOR = re.compile(r"\s*(?P<name>[A-Za-z_][\w-]*)\s*(?P<call>\([^()]*\)?)?\s*")

JOB_GENERATORS: Mapping[str, str] = {
    system.name: system.generated_jobs for system in published_systems() if system.generated_jobs
}
"""Name of a generated job set -> ``"module:function"`` that makes it of its text, ``gavel(n=1000)``, and the curves."""

JOB_SOURCES = Registry(
    kind="job source",
    group="bfreplay.job_sources",
    needs=("name", "higher_is_better", "sources", "begin", "ask", "tell", "describe"),
    built_in={},
)
"""Job sources that other packages register; the built-in one is a campaign file."""


def load_workload(
    jobs: JobSet | JobSource | Iterable[ElasticJob] | str | PathLike[str],
    curves: str | PathLike[str] | None = None,
    *,
    allow_code: bool = False,
) -> JobSet | JobSource:
    """Read a job set or a campaign, or make a job source; objects are returned as by ``workload_of``.

    Parameters
    ----------
    jobs
        A file of jobs (see ``load_jobs``), a campaign or a study of Optuna (see ``load_campaign``),
        ``package.module:Class`` of a job source, which is called without arguments, or a generated job set,
        ``gavel(n=1000, jobs_per_hour=1)`` (see ``bfreplay.systems.gavel.made_up_throughputs``).
    curves
        Named curves for a file of jobs or a campaign; measured throughputs for a trace or workload of Gavel,
        ``sample`` for made-up ones.
    allow_code
        Import code that the files name. A class given as ``jobs`` is imported in any case.

    Raises
    ------
    InputError
        The file, the class or the parameters cannot be used.
    """
    generator = _generator_of(jobs) if isinstance(jobs, str | PathLike) else None
    if generator is not None:
        if generator not in JOB_GENERATORS:
            raise unknown_name("generated job set", generator, list(JOB_GENERATORS), "a file of jobs")
        job_set: JobSet = built_in(JOB_GENERATORS[generator])(str(jobs), None if curves is None else Path(curves))
        return job_set
    from bfreplay.campaigns.load import is_campaign, load_campaign
    from bfreplay.datasets import load_jobs

    is_source = is_source_name(jobs)
    if is_source or not isinstance(jobs, str | PathLike):
        if curves is not None:
            twice = "curves is given twice: as an option and by an object as jobs"
            problem = "curves were given, and a job source makes its own" if is_source else twice
            raise InputError(problem, column="curves", value=str(curves), fix="leave the curves out")
        return workload_of(cast(JobSource, JOB_SOURCES.make(str(jobs), allow_code=True)) if is_source else jobs)
    loader = load_campaign if is_campaign(jobs) else load_jobs
    return loader(Path(jobs), curves, allow_code=allow_code)


def workload_of(jobs: JobSet | JobSource | Iterable[ElasticJob] | str | PathLike[str]) -> JobSet | JobSource:
    """Return jobs in whatever form they come: a set, a source, a list, or what ``load_workload`` takes.

    Raises
    ------
    InputError
        As ``load_workload``; or an object has only a part of what a job source needs.
    """
    if isinstance(jobs, str | PathLike):
        return load_workload(jobs)
    JOB_SOURCES.refuse_class(jobs)
    if isinstance(jobs, JobSet):
        return jobs
    if isinstance(jobs, JobSource):
        if not isinstance(jobs.sources, Sequence):
            raise InputError(
                f"the job source {jobs.name!r} has no list of files",
                column="sources",
                value=jobs.sources,
                expected="pairs of a file's name and its SHA-256, () for none",
            )
        return jobs
    missing = [attribute for attribute in JOB_SOURCES.needs if not hasattr(jobs, attribute)]
    if hasattr(jobs, "ask"):
        raise InputError(
            f"{type(jobs).__name__} is no job source: it has no {', '.join(missing)}",
            expected=f"an object with {', '.join(JOB_SOURCES.needs)}; a study of Optuna: the file of its storage",
        )
    if isinstance(jobs, Mapping) or not isinstance(jobs, Iterable):
        fix = "load_campaign makes a campaign of a dict" if isinstance(jobs, Mapping) else None
        expected = "jobs, a file of them, or 'sample'"
        raise InputError("these are no jobs", column="jobs", value=jobs, expected=expected, fix=fix)
    return JobSet(jobs)


def is_source_name(jobs: object) -> bool:
    """Return whether ``jobs`` is a name and not a file.

    It is the name of a job source (``package.module:Class``, or a registered one), or of a generated job set with its
    parameters.
    """
    text = str(jobs)
    if not isinstance(jobs, str | PathLike) or _is_there(text):
        return False
    return _generator_of(text) is not None or CLASS_PLACE.fullmatch(text) is not None or text in JOB_SOURCES.names()


def _generator_of(jobs: str | PathLike[str]) -> str | None:
    """Return the name in ``NAME(key=value, ...)``, or of a generator alone; ``None`` for other texts, and files."""
    text = str(jobs)
    match = _GENERATOR.fullmatch(text)
    if match is None or _is_there(text):
        return None
    is_one = match["call"] is not None or match["name"] in JOB_GENERATORS
    return match["name"] if is_one else None


def _is_there(text: str) -> bool:
    try:
        return Path(text).exists()
    except OSError:  # too long for a name
        return False
