"""Work on one run of a sweep, in any worker; its log and jobs are loaded once and shared between runs."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import Any

from bfreplay import __version__
from bfreplay._compiling import compiling_first
from bfreplay.campaigns.workloads import is_source_name
from bfreplay.datasets import NodeEvents
from bfreplay.datasets.named_inputs import restrict
from bfreplay.defaults import BUNDLED
from bfreplay.errors import BfreplayError, InputError
from bfreplay.experiments.declared_options import FILE_OPTIONS, OPTIONS
from bfreplay.experiments.given_objects import Same, is_object
from bfreplay.experiments.prepared_run import load_jobs_of, load_log, prepare_run
from bfreplay.experiments.run_options import RunOptions
from bfreplay.experiments.sweep.identity import digest_of_module, file_of_module, input_digests
from bfreplay.experiments.sweep.store import Failure, Store, failure_of
from bfreplay.result_folders.records import JsonObject
from bfreplay.runs.run_settings import Output
from bfreplay.workload import JobSet, JobSource

Key = tuple[tuple[str, Any], ...]
"""Options that an input depends on, with their values."""

Known = tuple[tuple[str, ...], Any]
"""Expected digests of the files, and a stamp of each; files are loaded again when a stamp changes."""


class Inputs:
    """Cache of the inputs that were loaded last.

    Parameters
    ----------
    n_logs, n_jobs
        Number of logs, and of job sets, that are kept; ``None`` for all.
    """

    def __init__(self, n_logs: int | None, n_jobs: int | None) -> None:
        self._log, self._jobs = lru_cache(n_logs)(load_expected_log), lru_cache(n_jobs)(load_expected_jobs)

    def log(self, options: RunOptions, expectation: Known | None = None) -> NodeEvents:
        """Return the cluster, or the part of the log, of a run; errors as for ``load_expected_log``."""
        whole_log = self._log(key_of(replace(options, window=None), "log"), expectation)
        return restrict(whole_log, options.window)

    def jobs(self, options: RunOptions, expectation: Known | None = None) -> JobSet | JobSource:
        """Return the jobs of a run; errors as for ``load_expected_jobs``."""
        return self._jobs(key_of(options, "jobs"), expectation)


def key_of(options: RunOptions, input_kind: str) -> Key:
    """Return the options that are declared to load the ``"log"`` or the ``"jobs"``, with their values."""
    values = {name: getattr(options, name) for name, declaration in OPTIONS.items() if declaration.loads == input_kind}
    return tuple((name, Same(value) if is_object(value) else value) for name, value in values.items())


def _options(key: Key, **others: str) -> RunOptions:
    values = {name: value.given if isinstance(value, Same) else value for name, value in key}
    return RunOptions(**{**others, **values})


def load_expected_log(key: Key, expectation: Known | None) -> NodeEvents:
    """Load a log; ``InputError`` if it cannot be loaded, or its files are not the ``expectation`` ones."""
    options = _options(key, jobs=BUNDLED)
    log = load_log(options)
    _check_same("events", options.events, (source_file.sha256 for source_file in log.sources), expectation)
    return log


def load_expected_jobs(key: Key, expectation: Known | None) -> JobSet | JobSource:
    """Load jobs; ``InputError`` if they cannot be loaded, or their files are not the ``expectation`` ones."""
    options = _options(key, events=BUNDLED)
    jobs = load_jobs_of(options)
    _check_same("jobs", options.jobs, (digest for _, digest in jobs.sources), expectation)
    return jobs


def _check_same(description: str, given: object, sources: Iterable[str], expectation: Known | None) -> None:
    if expectation is not None and (digests := input_digests(given, sources)) != list(expectation[0]):
        raise changed_input_error(description, str(digests), str(list(expectation[0])))


def changed_input_error(description: str, digest: str, expected: str) -> InputError:
    """Return the error for an input that has changed since the sweep began."""
    return InputError(
        f"the file of the {description} has changed since the sweep began",
        value=digest,
        expected=expected,
        fix="sweep again: its runs then have other ids",
    )


_AT_WORK = Lock()
"""Lock for one run at a time in a process, also in a worker with several threads."""

Stamp = tuple[int, int, int] | None
"""Inode, size in bytes and modification time in ns of a file; ``None`` for a missing file."""

_INPUTS = Inputs(n_logs=3, n_jobs=4)

_LOADED: dict[Path | None, str | None] = {}
"""Digest of each file of a module when this process loaded it; the file may change later."""


@dataclass(frozen=True, slots=True)
class RunTask:
    """One run for a worker.

    Parameters
    ----------
    id
        Id of its content.
    options
        Options with absolute paths.
    content
        Content behind the id: ``identity.content_of``.
    jobs_are_a_set
        False for a job source, which is made anew for each run.
    folder
        Folder of the sweep.
    search_path
        Search path for the user's code.
    """

    id: str
    options: RunOptions
    content: JsonObject
    jobs_are_a_set: bool
    folder: str
    search_path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """Outcome of one run.

    Parameters
    ----------
    id
        Id as in the task.
    failure
        Error of the run; ``None`` for a finished run, which is in the store.
    seconds
        Duration; ``None`` for a run that existed.
    """

    id: str
    failure: Failure | None
    seconds: float | None


class FolderUnseenError(BfreplayError):
    """A worker does not see the folder of the sweep."""


class OtherCodeError(BfreplayError):
    """The code of a worker does not match the id of its run."""


def work_on(task: RunTask) -> RunOutcome:
    """Replay into the store unless the run exists; an error of the run is an outcome.

    Raises
    ------
    FolderUnseenError
        This worker does not see the folder.
    OtherCodeError
        This worker has another version of bfreplay, or of a module that the run names.
    """
    if task.content["bfreplay"] != __version__:
        raise OtherCodeError(
            f"the worker {worker_name()} has another version of bfreplay\n"
            f"  value:    {__version__}\n  expected: {task.content['bfreplay']}\n"
            "  fix:      update bfreplay on the workers: the ids of runs depend on it"
        )
    store = Store(Path(task.folder))
    if not store.runs.is_dir():
        raise FolderUnseenError(
            f"the worker {worker_name()} does not see the folder of the sweep: {task.folder}\n"
            "  fix:      choose an --out on a file system that all workers share"
        )
    sys.path.extend(entry for entry in task.search_path if entry not in sys.path)
    with compiling_first(), _AT_WORK, store.claim(task.id):
        begin_s = perf_counter()
        if store.has(task.id):
            return RunOutcome(task.id, None, None)
        _check_code(task)
        failure = None
        try:
            _replay(task, store)
        # any exception of the run is its outcome; user code may even exit
        except (Exception, SystemExit) as error:
            failure = failure_of(error)
        return RunOutcome(task.id, failure, perf_counter() - begin_s)


def worker_name() -> str:
    """Return ``"host:process id"``."""
    return f"{socket.gethostname()}:{os.getpid()}"


def _check_code(task: RunTask) -> None:
    for code_place, digest in task.content["code"].items():
        module = code_place.partition(":")[0]
        current_digest = digest_of_module(module)
        if current_digest != digest:
            raise OtherCodeError(
                f"the worker {worker_name()} finds another file of the module {module!r} than the sweep began with\n"
                f"  value:    {current_digest}\n  expected: {digest}\n"
                "  fix:      if you changed it, sweep again; otherwise give the workers the same file"
            )
        file = file_of_module(module)
        if module not in sys.modules:
            _LOADED.pop(file, None)
        if _LOADED.setdefault(file, digest) != digest:
            raise OtherCodeError(
                f"the module {module!r} has changed since the worker {worker_name()} loaded it\n"
                f"  fix:      restart the workers: they have the old {module} loaded"
            )


def _replay(task: RunTask, store: Store) -> None:
    options, stamps_before = task.options, _stamps(task.options)
    log = _INPUTS.log(options, (tuple(task.content["events"]), stamps_before.get("events")))
    of_jobs = (tuple(task.content["jobs"]), (stamps_before.get("jobs"), stamps_before.get("curves")))
    jobs = (
        _INPUTS.jobs(options, of_jobs) if task.jobs_are_a_set else load_expected_jobs(key_of(options, "jobs"), of_jobs)
    )
    output = Output(folder=store.run_folder(task.id), session={"worker": worker_name()})
    prepare_run(options, log=log, jobs=jobs).replay(output)
    stamps_after = _stamps(options)
    for input_kind, stamp in stamps_before.items():
        if stamps_after[input_kind] != stamp:  # a log is read throughout the replay
            store.discard(task.id)
            raise changed_input_error(input_kind, str(stamps_after[input_kind]), str(stamp))


def _stamps(options: RunOptions) -> dict[str, Stamp]:
    files = {field_name: getattr(options, field_name) for field_name in FILE_OPTIONS}
    if is_source_name(options.jobs):
        del files["jobs"]
    if isinstance(options.events, NodeEvents):
        files["events"] = options.events.file
    return {name: _stamp(Path(file)) for name, file in files.items() if isinstance(file, str | Path)}


def _stamp(file: Path) -> Stamp:
    try:
        stat = file.stat()
    except OSError:  # loading it raises the error
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns
