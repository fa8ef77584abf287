"""Whether runs may be compared hour by hour and job by job, and in what their options differ."""

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

_RERUN = "replay both on the same log, window and jobs; 'bfreplay sweep' makes such runs"
_NO_MATTER = {"window_start_us", "window_end_us", "unlimited_work"} | {
    name for name, declared in OPTIONS.items() if declared.only_writes
}
_SAID_BEFORE = "policy.objective.terms"  # objective.spec says the same in fewer words
LOG = "log"
"""Option in which runs differ that are compared across a log and a cluster, or across two clusters."""
_OF_THE_JOBS = ("job", "model", "submitted", "deadline", "work_samples", "params")


def labels_of(n: int) -> list[str]:
    """``A``, ``B``, ..., ``Z``, ``AA``, ...: how texts call the runs; the first is the baseline."""
    return [_label(k) for k in range(n)]


def _label(k: int) -> str:
    over, letter = divmod(k, len(ascii_uppercase))
    return (_label(over - 1) if over else "") + ascii_uppercase[letter]


def check_paired(runs: Sequence[RunResult], labels: Sequence[str]) -> None:
    """Make sure that every run replays the log, the window and the jobs of the first.

    A run on a cluster is compared with one on a log or on another cluster by their jobs alone, which must be submitted
    at the same times after the start of each run. Logs and jobs are compared by the SHA-256 of their files, whatever
    these are called; those made in memory by their metadata and by the columns of the table ``jobs``. The idle node
    time of a log must be the same in any case.

    Raises
    ------
    InputError
        Fewer than two runs, or one that is not paired with the first.
    """
    if len(runs) < 2:
        raise InputError("one run alone cannot be compared", value=len(runs), expected="two runs or more")
    base = runs[0]
    for run, label in zip(runs[1:], labels[1:], strict=True):
        _check_work(base, run, label)
        if have_same_nodes(base, run):
            _check_window(base, run, label)
            _check_log(base, run, label)
        _check_jobs(base, run, label)


def _refuse(run: RunResult, label: str, what: str, mine: Any, base: Any, fix: str = _RERUN) -> InputError:
    return InputError(
        f"run {label} cannot be compared with run A: {what}", file=run.folder, value=mine, expected=f"{base}, as in A",
        fix=fix,
    )  # fmt: skip


def have_same_nodes(base: RunResult, run: RunResult) -> bool:
    """Whether neither run, or both, ran on a certain cluster."""
    return cluster_of(base.record) == cluster_of(run.record)


def log_name(run: RunResult) -> str:
    """Cluster, files or name of the log that a run replayed."""
    inputs, cluster = run.record.inputs.events, cluster_of(run.record)
    if cluster is not None:
        return f"cluster {cluster}"
    return ", ".join(each.name for each in inputs.files) or inputs.metadata.cluster or "a log in memory"


def end_with_their_jobs(runs: Sequence[RunResult]) -> bool:
    """Whether all runs ended when their jobs were done: their windows then have one start, and ends of their own."""
    return all(run.record.config.until_done for run in runs)


def _check_window(base: RunResult, run: RunResult, label: str) -> None:
    mine, theirs = ((each.record.config.window_start_us, each.record.config.window_end_us) for each in (run, base))
    if mine != theirs and not (end_with_their_jobs([base, run]) and mine[0] == theirs[0]):
        shown, wanted = (f"{iso_utc(start)} to {iso_utc(end)}" for start, end in (mine, theirs))
        raise _refuse(run, label, "its window is another one", shown, wanted, "replay both with the same --window")


def _check_work(base: RunResult, run: RunResult, label: str) -> None:
    mine_unlimited, theirs_unlimited = (each.record.config.unlimited_work for each in (run, base))
    if mine_unlimited != theirs_unlimited:
        fix = "replay both with --unlimited-work, or both without"
        raise _refuse(run, label, "unlimited_work differs", mine_unlimited, theirs_unlimited, fix)


def _check_log(base: RunResult, run: RunResult, label: str) -> None:
    mine, theirs = (each.record.inputs.events for each in (run, base))
    _check_files(run, label, "log", mine.files, theirs.files)
    if not mine.files and mine.metadata != theirs.metadata:
        wanted = "equal metadata: neither log is a file"
        raise _refuse(run, label, "its log is another one", mine.metadata.cluster, wanted)
    if end_with_their_jobs([base, run]):
        return  # one of them saw more of the same log
    idle, wanted_idle = (each.summary.ledger.idle_node_us for each in (run, base))
    if (mine.n_nodes, idle) != (theirs.n_nodes, wanted_idle):
        shown, wanted = (
            f"{n:,} nodes, {node_us:,} idle node-us"
            for n, node_us in ((mine.n_nodes, idle), (theirs.n_nodes, wanted_idle))
        )
        raise _refuse(run, label, "its log is another one", shown, wanted)


def _check_jobs(base: RunResult, run: RunResult, label: str) -> None:
    mine, theirs = (each.record.inputs.jobs for each in (run, base))
    names = [None if jobs.source is None else jobs.source["name"] for jobs in (mine, theirs)]
    if names[0] != names[1]:
        shown, wanted = ("a set of jobs" if name is None else f"jobs of the source {name!r}" for name in names)
        raise _refuse(run, label, "its jobs are of another kind", shown, wanted)
    _check_files(run, label, "jobs", mine.files, theirs.files)
    if mine.files and have_same_nodes(base, run):
        return
    if names[0] is not None:
        if mine.source != theirs.source:
            raise _refuse(run, label, "its source of jobs describes itself otherwise", mine.source, theirs.source)
        return
    n = mine.n_jobs or 0
    if run.record.config.unlimited_work:
        n = min(run.table("jobs").num_rows, base.table("jobs").num_rows)  # the first max_parallel of one set
    elif mine.n_jobs != theirs.n_jobs:
        raise _refuse(run, label, "its jobs are others", f"{mine.n_jobs} jobs", f"{theirs.n_jobs} jobs")
    _check_columns(base, run, label, n)


def _check_columns(base: RunResult, run: RunResult, label: str, n: int) -> None:
    known = set(run.table("jobs").column_names) & set(base.table("jobs").column_names)
    for name in filter(known.__contains__, _OF_THE_JOBS):
        mine, theirs = (_from_start(each, each.table("jobs").slice(0, n)[name]) for each in (run, base))
        for row, (here, there) in enumerate(zip(mine, theirs, strict=True)):
            if here != there:
                what = f"{name} of job {row + 1} is another one"
                raise _refuse(run, label, what, here, there)


def _from_start(run: RunResult, column: pa.ChunkedArray) -> list[Any]:
    """Values of a column; times in microseconds from the start of the run."""
    if not pa.types.is_timestamp(column.type):
        found: list[Any] = column.to_pylist()
        return found
    start_us = run.record.config.window_start_us
    return [None if time_us is None else time_us - start_us for time_us in column.cast("int64").to_pylist()]


def _check_files(
    run: RunResult, label: str, what: str, mine: Sequence[SourceFile], theirs: Sequence[SourceFile]
) -> None:
    if [each.sha256 for each in mine] == [each.sha256 for each in theirs]:
        return
    shown, wanted = (
        ", ".join(f"{each.name} (SHA-256 {each.sha256[:12]})" for each in files) or "made in memory"
        for files in (mine, theirs)
    )
    raise _refuse(run, label, f"the content of its {what} differs", shown, wanted)


def differing_options(runs: Sequence[RunResult]) -> list[DifferingOption]:
    """Options in which the runs differ, by name, such as ``policy.t_fwd_s``."""
    flat = [options_of(run) for run in runs]
    if not all(have_same_nodes(runs[0], run) for run in runs):
        flat = [{LOG: log_name(run), **options} for run, options in zip(runs, flat, strict=True)]
    names = sorted({name for options in flat for name in options})
    rows = [DifferingOption(option=name, values=[options.get(name) for options in flat]) for name in names]
    return [row for row in rows if any(value != row.values[0] for value in row.values)]


def options_of(run: RunResult) -> dict[str, Any]:
    """Options of a run and of its policy by name, such as ``policy.t_fwd_s``, without those that change no result."""
    config = {key: value for key, value in run.record.config.to_json().items() if key not in _NO_MATTER}
    options = dict(_leaves("", config)) | dict(_leaves("jobs.", run.record.inputs.jobs.source or {}))
    return options | {"bfreplay": run.record.versions.get("bfreplay")}


def _leaves(prefix: str, tree: Mapping[str, object]) -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _leaves(f"{prefix}{key}.", value)
        elif prefix + key != _SAID_BEFORE:
            yield prefix + key, value
