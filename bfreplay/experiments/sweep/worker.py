"""What a worker does with one run of a sweep, wherever it works."""

from __future__ import annotations

import os
import socket
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock
from time import perf_counter

from bfreplay.datasets import NodeEvents
from bfreplay.errors import BfreplayError, InputError
from bfreplay.experiments.prepared_run import load_jobs_of, load_log, prepared
from bfreplay.experiments.run_options import RunOptions
from bfreplay.experiments.sweep.store import Failure, Store, failure_of
from bfreplay.workload import JobSet, JobSource

_AT_WORK = Lock()
"""One run at a time in a process: a worker of several threads gains nothing from more."""

Digests = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunTask:
    """One run for a worker.

    Parameters
    ----------
    id
        Of its content.
    options
        What to do, with absolute paths.
    events_sha256, jobs_sha256
        Digests of the files that the id stands for.
    jobs_are_a_set
        Else they are a source, which is made anew for each run.
    folder
        Of the sweep.
    search_path
        Where code that the user names may lie.
    """

    id: str
    options: RunOptions
    events_sha256: Digests
    jobs_sha256: Digests
    jobs_are_a_set: bool
    folder: str
    search_path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What became of it.

    Parameters
    ----------
    id
        As in the task.
    failure
        Why it failed; ``None`` for a run that is finished and in the store.
    seconds
        What it took; ``None`` where it was there already.
    """

    id: str
    failure: Failure | None
    seconds: float | None


class FolderUnseenError(BfreplayError):
    """A worker does not see the folder of the sweep."""


def work_on(task: RunTask) -> RunOutcome:
    """Replay into the store, unless it is there; an error of the run is an outcome.

    Raises
    ------
    FolderUnseenError
        There is no such folder where this worker is.
    """
    store = Store(Path(task.folder))
    if not store.runs.is_dir():
        raise FolderUnseenError(
            f"the worker {worker_name()} does not see the folder of the sweep: {task.folder}\n"
            "  fix:      choose an --out on a file system that all workers share"
        )
    sys.path.extend(entry for entry in task.search_path if entry not in sys.path)
    with _AT_WORK, store.claimed(task.id):
        started = perf_counter()
        if store.has(task.id):
            return RunOutcome(task.id, None, None)
        failure = None
        try:
            _replay(task, store)
        # whatever a run raises is its own affair; code that the user named may even exit
        except (Exception, SystemExit) as error:
            failure = failure_of(error)
        return RunOutcome(task.id, failure, perf_counter() - started)


def worker_name() -> str:
    """``"host:process id"``."""
    return f"{socket.gethostname()}:{os.getpid()}"


def _replay(task: RunTask, store: Store) -> None:
    options = task.options
    log = _log(str(options.events), options.window, task.events_sha256)
    if task.jobs_are_a_set:
        curves = None if options.curves is None else str(options.curves)
        jobs = _jobs(str(options.jobs), curves, task.jobs_sha256)
    else:
        jobs = _checked_jobs(options, task.jobs_sha256)
    prepared(options, log=log, jobs=jobs).replay(store.run_folder(task.id), session={"worker": worker_name()})


@lru_cache(maxsize=3)
def _log(events: str, window: tuple[str, str] | None, digests: Digests) -> NodeEvents:
    log = load_log(RunOptions(events=events, jobs="sample", window=window))
    _check_same("events", [source.sha256 for source in log.sources], digests)
    return log


@lru_cache(maxsize=4)
def _jobs(jobs: str, curves: str | None, digests: Digests) -> JobSet | JobSource:
    return _checked_jobs(RunOptions(events="sample", jobs=jobs, curves=curves), digests)


def _checked_jobs(options: RunOptions, digests: Digests) -> JobSet | JobSource:
    jobs = load_jobs_of(options)
    _check_same("jobs", [digest for _, digest in jobs.sources], digests)
    return jobs


def _check_same(what: str, found: list[str], expected: Digests) -> None:
    if tuple(found) != expected:
        raise InputError(
            f"the file of the {what} has changed since the sweep began", value=found, expected=str(list(expected)),
            fix="sweep again: its runs then have other ids",
        )  # fmt: skip
