"""Logs and jobs of a sweep, each loaded once and shared between runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from bfreplay.datasets import NodeEvents
from bfreplay.datasets.named_inputs import restrict
from bfreplay.defaults import BUNDLED
from bfreplay.errors import InputError
from bfreplay.experiments.declared_options import OPTIONS
from bfreplay.experiments.prepared_run import load_jobs_of, load_log
from bfreplay.experiments.run_options import RunOptions
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
        self._log, self._jobs = lru_cache(n_logs)(known_log), lru_cache(n_jobs)(known_jobs)

    def log(self, options: RunOptions, known: Known | None = None) -> NodeEvents:
        """Return the cluster or the part of the log of a run, whose whole is kept; errors as for ``known_log``."""
        whole = self._log(key_of(replace(options, window=None), "log"), known)
        return restrict(whole, options.window)

    def jobs(self, options: RunOptions, known: Known | None = None) -> JobSet | JobSource:
        """Return the jobs of a run; errors as for ``known_jobs``."""
        return self._jobs(key_of(options, "jobs"), known)


def key_of(options: RunOptions, what: str) -> Key:
    """Return the options that are declared to load the ``"log"`` or the ``"jobs"``, with their values."""
    return tuple((name, getattr(options, name)) for name, each in OPTIONS.items() if each.loads == what)


def known_log(key: Key, known: Known | None) -> NodeEvents:
    """Load a log; ``InputError`` if it cannot be loaded, or its files are not the ``known`` ones."""
    log = load_log(RunOptions(**{"jobs": BUNDLED, **dict(key)}))
    _check_same("events", [source.sha256 for source in log.sources], known)
    return log


def known_jobs(key: Key, known: Known | None) -> JobSet | JobSource:
    """Load jobs; ``InputError`` if they cannot be loaded, or their files are not the ``known`` ones."""
    jobs = load_jobs_of(RunOptions(**{"events": BUNDLED, **dict(key)}))
    _check_same("jobs", [digest for _, digest in jobs.sources], known)
    return jobs


def _check_same(what: str, found: Sequence[str], known: Known | None) -> None:
    if known is not None and tuple(found) != known[0]:
        raise changed_input_error(what, str(found), str(list(known[0])))


def changed_input_error(what: str, found: str, expected: str) -> InputError:
    """Return the error for an input that has changed since the sweep began."""
    return InputError(
        f"the file of the {what} has changed since the sweep began",
        value=found,
        expected=expected,
        fix="sweep again: its runs then have other ids",
    )
