"""Logs and jobs of a sweep, each loaded once and shared between runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from bfreplay.datasets import NodeEvents
from bfreplay.datasets.named_inputs import restrict
from bfreplay.defaults import BUNDLED
from bfreplay.errors import InputError
from bfreplay.experiments.declared_options import OPTIONS
from bfreplay.experiments.given_objects import Same, is_object
from bfreplay.experiments.prepared_run import load_jobs_of, load_log
from bfreplay.experiments.run_options import RunOptions
from bfreplay.experiments.sweep.identity import input_digests
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
