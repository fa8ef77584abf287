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

from bfreplay import __version__
from bfreplay.campaigns.workloads import is_source_name
from bfreplay.datasets import NodeEvents
from bfreplay.defaults import BUNDLED
from bfreplay.errors import BfreplayError, InputError
from bfreplay.experiments.prepared_run import load_jobs_of, load_log, prepared
from bfreplay.experiments.run_options import FILE_OPTIONS, RunOptions
from bfreplay.experiments.sweep.identity import digest_of_module, file_of_module
from bfreplay.experiments.sweep.store import Failure, Store, failure_of
from bfreplay.workload import JobSet, JobSource

_AT_WORK = Lock()
"""One run at a time in a process: a worker of several threads gains nothing from more."""

Digests = tuple[str, ...]
Stamp = tuple[int, int, int] | None
"""Inode, size in bytes and time of change in ns of a file; ``None`` where there is none."""

_LOADED: dict[Path | None, str | None] = {}
"""Digest of each file of a module when this process first used it: what is loaded does not follow the file."""


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
    version
        Of bfreplay, for which the id stands.
    code
        Modules that the user names, with the digests of their files; ``None`` for one without a file.
    """

    id: str
    options: RunOptions
    events_sha256: Digests
    jobs_sha256: Digests
    jobs_are_a_set: bool
    folder: str
    search_path: tuple[str, ...]
    version: str
    code: tuple[tuple[str, str | None], ...]


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


class OtherCodeError(BfreplayError):
    """A worker has other code than that for which the id of its run stands."""


def work_on(task: RunTask) -> RunOutcome:
    """Replay into the store, unless it is there; an error of the run is an outcome.

    Raises
    ------
    FolderUnseenError
        There is no such folder where this worker is.
    OtherCodeError
        It has another version of bfreplay, or of a module that the run names.
    """
    _check_version(task)
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
        _check_code(task)
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


def _check_version(task: RunTask) -> None:
    if task.version != __version__:
        raise OtherCodeError(
            f"the worker {worker_name()} has another version of bfreplay\n"
            f"  value:    {__version__}\n  expected: {task.version}\n"
            "  fix:      update bfreplay on the workers: the ids of runs depend on it"
        )


def _check_code(task: RunTask) -> None:
    for module, expected in task.code:
        found = digest_of_module(module)
        if found != expected:
            raise OtherCodeError(
                f"the worker {worker_name()} finds another file of the module {module!r} than the sweep began with\n"
                f"  value:    {found}\n  expected: {expected}\n"
                "  fix:      sweep again if you have changed it; else put the same file where the workers find it"
            )
        file = file_of_module(module)
        if module not in sys.modules:
            _LOADED.pop(file, None)
        if _LOADED.setdefault(file, expected) != expected:
            raise OtherCodeError(
                f"the module {module!r} has changed since the worker {worker_name()} loaded it\n"
                f"  fix:      restart the workers: they have the old {module} loaded"
            )


def _replay(task: RunTask, store: Store) -> None:
    options = task.options
    before = _stamps(options)
    nodes = RunOptions(
        events=options.events, cluster=options.cluster, node_type=options.node_type, window=options.window, jobs=BUNDLED
    )  # fmt: skip
    log = _log(nodes, task.events_sha256, before.get("events"))
    if task.jobs_are_a_set:
        curves = None if options.curves is None else str(options.curves)
        stamps = (before.get("jobs"), before.get("curves"))
        jobs = _jobs(str(options.jobs), curves, options.allow_code, task.jobs_sha256, stamps)
    else:
        jobs = _checked_jobs(options, task.jobs_sha256)
    prepared(options, log=log, jobs=jobs).replay(store.run_folder(task.id), session={"worker": worker_name()})
    after = _stamps(options)
    for what, stamp in before.items():
        if after[what] != stamp:  # a log is read again and again while it is replayed
            store.discard(task.id)
            raise _changed(what, str(after[what]), str(stamp))


def _stamps(options: RunOptions) -> dict[str, Stamp]:
    files = {name: getattr(options, name) for name in FILE_OPTIONS}
    if is_source_name(options.jobs):
        del files["jobs"]
    return {name: _stamp(Path(file)) for name, file in files.items() if file is not None}


def _stamp(file: Path) -> Stamp:
    try:
        found = file.stat()
    except OSError:  # who loads it says so better
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


# a stamp is there for the key alone: a file that was replaced is loaded, and checked, again
@lru_cache(maxsize=3)
def _log(options: RunOptions, digests: Digests, _stamp: Stamp) -> NodeEvents:
    log = load_log(options)
    _check_same("events", [source.sha256 for source in log.sources], digests)
    return log


@lru_cache(maxsize=4)
def _jobs(
    jobs: str, curves: str | None, allow_code: bool, digests: Digests, _stamps: tuple[Stamp, Stamp]
) -> JobSet | JobSource:
    return _checked_jobs(RunOptions(events=BUNDLED, jobs=jobs, curves=curves, allow_code=allow_code), digests)


def _checked_jobs(options: RunOptions, digests: Digests) -> JobSet | JobSource:
    jobs = load_jobs_of(options)
    _check_same("jobs", [digest for _, digest in jobs.sources], digests)
    return jobs


def _check_same(what: str, found: list[str], expected: Digests) -> None:
    if tuple(found) != expected:
        raise _changed(what, str(found), str(list(expected)))


def _changed(what: str, found: str, expected: str) -> InputError:
    return InputError(
        f"the file of the {what} has changed since the sweep began", value=found, expected=expected,
        fix="sweep again: its runs then have other ids",
    )  # fmt: skip
