"""Whatever a user names as jobs: a set, a campaign, or a source of their own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import cast

from bfreplay.errors import InputError
from bfreplay.registry import Registry
from bfreplay.workload import ElasticJob, JobSet, JobSource

_CLASS = re.compile(r"[^\W\d][\w.]*:[^\W\d][\w.]*")  # no path of Windows: a drive is followed by a slash

JOB_SOURCES = Registry(
    kind="job source",
    group="bfreplay.job_sources",
    needs=("name", "higher_is_better", "sources", "begin", "ask", "tell", "describe"),
    built_in={},
)
"""Sources that other packages announce. What is built in is written as a campaign file."""


def load_workload(jobs: str | PathLike[str], curves: str | PathLike[str] | None = None) -> JobSet | JobSource:
    """Read a job set or a campaign, or make a job source.

    Parameters
    ----------
    jobs
        A file of jobs (see ``load_jobs``), a campaign (a TOML file with a ``[campaign]`` table), or
        ``package.module:Class`` of a job source, which is called without arguments.
    curves
        Named curves for a file of jobs or a campaign.

    Raises
    ------
    InputError
        The file or the class cannot be used.
    """
    from bfreplay.campaigns.load import is_campaign, load_campaign
    from bfreplay.datasets import load_jobs

    path = Path(jobs)
    if is_source_name(jobs):
        if curves is not None:
            raise InputError(
                "curves were given, and a job source makes its own", value=str(curves), fix="leave the curves out"
            )
        return workload_of(cast(JobSource, JOB_SOURCES.make(str(jobs))))
    return load_campaign(path, curves) if is_campaign(path) else load_jobs(path, curves)


def workload_of(
    jobs: JobSet | JobSource | Iterable[ElasticJob] | str | PathLike[str], curves: str | PathLike[str] | None = None
) -> JobSet | JobSource:
    """Return jobs in whatever form they come: a set, a source, a list, or what ``load_workload`` takes.

    Raises
    ------
    InputError
        As ``load_workload``, or an object is meant to be a job source and is none.
    """
    if isinstance(jobs, str | PathLike):
        return load_workload(jobs, curves)
    if isinstance(jobs, type):
        raise InputError(
            f"{jobs.__name__} is a class",
            expected="a job source, which is an object",
            fix=f"make one: {jobs.__name__}()",
        )
    if isinstance(jobs, JobSet):
        return jobs
    if isinstance(jobs, JobSource):
        if not isinstance(jobs.sources, Sequence):
            raise InputError(
                f"the job source {jobs.name!r} has no list of files", column="sources", value=jobs.sources,
                expected="pairs of a file's name and its SHA-256, () for none",
            )  # fmt: skip
        return jobs
    missing = [name for name in JOB_SOURCES.needs if not hasattr(jobs, name)]
    if hasattr(jobs, "ask"):
        raise InputError(
            f"{type(jobs).__name__} is no job source: it has no {', '.join(missing)}",
            expected=f"an object with {', '.join(JOB_SOURCES.needs)}",
        )
    return JobSet(jobs)


def is_source_name(jobs: str | PathLike[str]) -> bool:
    """Whether ``jobs`` is no file but names a job source: ``package.module:Class``, or one that a package announces."""
    text = str(jobs)
    return not Path(text).exists() and (_CLASS.fullmatch(text) is not None or text in JOB_SOURCES.names())
