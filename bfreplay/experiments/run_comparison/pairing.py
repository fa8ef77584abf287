"""Checks that runs can be compared hour by hour and job by job, and the options in which they differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from string import ascii_uppercase
from typing import Any

import pyarrow as pa

from bfreplay.datasets.log.metadata import SourceFile
from bfreplay.datasets.times import iso_utc
from bfreplay.errors import InputError
from bfreplay.experiments.declared_options import OPTIONS
from bfreplay.result_folders.comparison import DifferingOption
from bfreplay.runs.run_result import RunResult
from bfreplay.runs.scheduling_metrics import cluster_of

_RERUN = (
    "replay both on the same log, window and jobs; 'bfreplay sweep' makes such runs, and 'bfreplay finish' with "
    "--against compares two searches"
)
_NO_MATTER = {"window_start_us", "window_end_us", "unlimited_work"} | {
    name for name, declaration in OPTIONS.items() if declaration.only_writes
}
_REDUNDANT = (
    *("policy.objective.terms", "policy.product", "policy.readings"),  # follow from objective.spec and policy.name
    "jobs.warnings",
)
LOG = "log"
"""Option that differs between a run on a log and one on a cluster, or between two clusters."""
_OF_THE_JOBS = ("job", "model", "submitted", "deadline", "work_samples", "params")


def labels_of(n_runs: int) -> list[str]:
    """Return labels of runs in texts: ``A``, ``B``, ..., ``Z``, ``AA``, ...; the first is the baseline."""
    return [_label(index) for index in range(n_runs)]


def _label(index: int) -> str:
    over, letter = divmod(index, len(ascii_uppercase))
    return (_label(over - 1) if over else "") + ascii_uppercase[letter]


def check_pairing(runs: Sequence[RunResult], labels: Sequence[str]) -> None:
    """Check that every run replays the log, the window and the jobs of the first.

    Between a run on a cluster and one on a log or another cluster, only the jobs must be equal, with submit times from
    the start of each run. Logs and jobs are compared by the SHA-256 of their files; those made in memory by their
    metadata and by the columns of the table ``jobs``. The idle node time of a log must always be equal.

    Raises
    ------
    InputError
        Fewer than two runs, or one that is not paired with the first.
    """
    if len(runs) < 2:
        raise InputError("one run alone cannot be compared", value=len(runs), expected="two runs or more")
    base_run = runs[0]
    for run, label in zip(runs[1:], labels[1:], strict=True):
        of_run, of_base = (result.record.config.unlimited_work for result in (run, base_run))
        fix = "replay both with --unlimited-work, or both without"
        _check_equal(run, label, "unlimited_work differs", of_run, of_base, fix)
        if have_same_nodes(base_run, run):
            _check_window(base_run, run, label)
            _check_log(base_run, run, label)
        _check_jobs(base_run, run, label)


def _check_equal(run: RunResult, label: str, description: str, run_value: Any, base: Any, fix: str = _RERUN) -> None:
    if run_value != base:
        raise InputError(
            f"run {label} cannot be compared with run A: {description}",
            file=run.folder,
            value=run_value,
            expected=f"{base}, as in A",
            fix=fix,
        )


def have_same_nodes(base_run: RunResult, run: RunResult) -> bool:
    """Return whether both runs used the same cluster, or neither a cluster."""
    return cluster_of(base_run.record) == cluster_of(run.record)


def log_name(run: RunResult) -> str:
    """Return the cluster, files or name of the log that a run replayed."""
    inputs, cluster = run.record.inputs.events, cluster_of(run.record)
    if cluster is not None:
        return f"cluster {cluster}"
    return ", ".join(file.name for file in inputs.files) or inputs.metadata.cluster or "a log in memory"


def end_with_their_jobs(runs: Sequence[RunResult]) -> bool:
    """Return whether all runs ended with their jobs; their windows may then have different ends."""
    return all(run.record.config.until_done for run in runs)


def _check_window(base_run: RunResult, run: RunResult, label: str) -> None:
    run_window, base_window = (
        (result.record.config.window_start_us, result.record.config.window_end_us) for result in (run, base_run)
    )
    if run_window[0] != base_window[0] or not end_with_their_jobs([base_run, run]):
        run_text, base_text = (f"{iso_utc(start)} to {iso_utc(end)}" for start, end in (run_window, base_window))
        _check_equal(run, label, "its window differs", run_text, base_text, "replay both with the same --window")


def _check_log(base_run: RunResult, run: RunResult, label: str) -> None:
    of_run, of_base = (result.record.inputs.events for result in (run, base_run))
    _check_files(run, label, "log", of_run.files, of_base.files)
    if not of_run.files and of_run.metadata != of_base.metadata:
        base_text = "equal metadata: neither log is a file"
        _check_equal(run, label, "its log differs", of_run.metadata.cluster, base_text)
    if end_with_their_jobs([base_run, run]):
        return  # one run covers more of the same log
    run_text, base_text = (
        f"{result.record.inputs.events.n_nodes:,} nodes, {result.summary.ledger.idle_node_us:,} idle node-us"
        for result in (run, base_run)
    )
    _check_equal(run, label, "its log differs", run_text, base_text)


def _check_jobs(base_run: RunResult, run: RunResult, label: str) -> None:
    of_run, of_base = (result.record.inputs.jobs for result in (run, base_run))
    names = [None if jobs.source is None else jobs.source["name"] for jobs in (of_run, of_base)]
    run_text, base_text = ("a set of jobs" if name is None else f"jobs of the source {name!r}" for name in names)
    _check_equal(run, label, "its kind of jobs differs", run_text, base_text)
    _check_files(run, label, "jobs", of_run.files, of_base.files)
    if of_run.files and have_same_nodes(base_run, run):
        return
    if names[0] is not None:
        _check_equal(run, label, "the description of its job source differs", of_run.source, of_base.source)
        return
    n_jobs = of_run.n_jobs or 0
    if run.record.config.unlimited_work:
        n_jobs = min(run.table("jobs").num_rows, base_run.table("jobs").num_rows)  # the first max_parallel of one set
    else:
        _check_equal(run, label, "its number of jobs differs", f"{of_run.n_jobs} jobs", f"{of_base.n_jobs} jobs")
    _check_columns(base_run, run, label, n_jobs)


def _check_columns(base: RunResult, run: RunResult, label: str, n_jobs: int) -> None:
    column_names = set(run.table("jobs").column_names) & set(base.table("jobs").column_names)
    for name in filter(column_names.__contains__, _OF_THE_JOBS):
        of_run, of_base = (_from_start(result, result.table("jobs").slice(0, n_jobs)[name]) for result in (run, base))
        for row_index, (run_value, base_value) in enumerate(zip(of_run, of_base, strict=True)):
            if run_value != base_value:  # the text of every row would take long
                _check_equal(run, label, f"{name} of job {row_index + 1} differs", run_value, base_value)


def _from_start(run: RunResult, column: pa.ChunkedArray) -> list[Any]:
    """Return the values of a column, times in microseconds from the start of the run."""
    if not pa.types.is_timestamp(column.type):
        values: list[Any] = column.to_pylist()
        return values
    start_us = run.record.config.window_start_us
    return [None if time_us is None else time_us - start_us for time_us in column.cast("int64").to_pylist()]


def _check_files(
    run: RunResult, label: str, description: str, run_files: Sequence[SourceFile], base_files: Sequence[SourceFile]
) -> None:
    if [source_file.sha256 for source_file in run_files] == [source_file.sha256 for source_file in base_files]:
        return
    run_text, base_text = (
        ", ".join(f"{file.name} (SHA-256 {file.sha256[:12]})" for file in files) or "made in memory"
        for files in (run_files, base_files)
    )
    assert run_text != base_text  # 48 bits of a digest
    _check_equal(run, label, f"the content of its {description} differs", run_text, base_text)


def differing_options(runs: Sequence[RunResult]) -> list[DifferingOption]:
    """Return the options in which the runs differ, by name, such as ``policy.t_fwd_s``."""
    flat = [options_of(run) for run in runs]
    if not all(have_same_nodes(runs[0], run) for run in runs):
        flat = [{LOG: log_name(run), **options} for run, options in zip(runs, flat, strict=True)]
    names = sorted({name for options in flat for name in options})
    rows = [DifferingOption(option=name, values=[options.get(name) for options in flat]) for name in names]
    return [row for row in rows if any(option_value != row.values[0] for option_value in row.values)]


def options_of(run: RunResult) -> dict[str, Any]:
    """Return the options of a run and its policy by name, such as ``policy.t_fwd_s``, that change results."""
    config = {setting: value for setting, value in run.record.config.to_json().items() if setting not in _NO_MATTER}
    jobs = run.record.inputs.jobs
    options = dict(_leaves("", config)) | dict(_leaves("jobs.", jobs.source or {}))
    options |= {"jobs.costs": jobs.costs} if jobs.costs else {}
    return options | {"bfreplay": run.record.versions.get("bfreplay")}


def _leaves(prefix: str, tree: Mapping[str, object]) -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if prefix + key in _REDUNDANT:
            continue
        if isinstance(value, list) and value and all(isinstance(entry, Mapping) for entry in value):
            value = {
                str(entry.get("name", position)): entry for position, entry in enumerate(value)
            }  # the models of a campaign
        if isinstance(value, Mapping):
            yield from _leaves(f"{prefix}{key}.", value)
        else:
            yield prefix + key, value
