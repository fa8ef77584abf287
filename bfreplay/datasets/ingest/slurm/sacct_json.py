"""``sacct --json``: the shapes of all versions, job by job, without holding the document."""

from __future__ import annotations

from typing import Any

from bfreplay.datasets.ingest.clock import At, Candidates
from bfreplay.datasets.ingest.json_stream import records
from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.datasets.ingest.slurm.cells import RUNNING_STATES, is_known_state, job_state, whole
from bfreplay.datasets.ingest.slurm.clock import SlurmClock, ZoneEvidence
from bfreplay.datasets.ingest.slurm.job_rows import JobRow, JobRows
from bfreplay.datasets.times import US
from bfreplay.documents import Json

COMMAND = "sacct -a -X -D -S 2024-01-01 -E now --json > jobs.json"
"""Command to run on the cluster."""

_NO_VALUES = frozenset({4294967294, 4294967295, 18446744073709551614, 18446744073709551615})
"""Plain numbers of old versions that mean no limit."""
_LARGEST = 10**12


class _UnreadableError(ValueError):
    """A needed member is invalid."""


def read_sacct_json(
    file: LogFile, record: ScheduleRecord, options: ReadOptions, rows: JobRows, evidence: ZoneEvidence
) -> None:
    """Read one ``sacct --json`` document (or several, one after the other) into ``rows``.

    Raises
    ------
    InputError
        Cut or invalid JSON.
    """
    record.add_format("slurm sacct --json")
    report = record.report
    clock = SlurmClock(file.name, options, evidence, COMMAND)
    for number, job in records(file, "jobs", COMMAND, are_several=True):
        report.read()
        at = file.name, None, f"jobs[{number - 1}] job_id {job.get('job_id') if isinstance(job, dict) else None}"
        try:
            row = _row(job, at)
        except _UnreadableError as error:
            report.skip_with_warning(str(error), *at)
            continue
        evidence.counts["epoch"] += row.start is not None
        rows.add(row, clock)
    rows.finish_file(file)


def _row(job: Any, at: At) -> JobRow:
    if not isinstance(job, dict):
        raise _UnreadableError("a job that is not a JSON object")
    identity = _number(job.get("job_id"))
    if identity is None or identity <= 0:
        raise _UnreadableError("unreadable job_id")
    het = job.get("het")
    offset = _optional(het.get("job_offset")) if isinstance(het, dict) and _optional(het.get("job_id")) else None
    times = job.get("time")
    if not isinstance(times, dict):
        raise _UnreadableError("a job without times")
    nodes = job.get("nodes")
    if nodes is not None and not isinstance(nodes, str):
        raise _UnreadableError("unreadable nodes")
    limit = _optional(times.get("limit"))
    elapsed, suspended = _optional(times.get("elapsed")), _optional(times.get("suspended"))
    cluster = job.get("cluster")
    return JobRow(
        str(identity) if offset is None else f"{identity}+{offset}",
        _state(job.get("state")),
        _time(times, "start"),
        _time(times, "end"),
        None if elapsed is None else elapsed * US,
        None if suspended is None else suspended * US,
        None if limit is None else 60 * limit * US,
        _optional(job.get("allocation_nodes")),
        nodes,
        cluster if isinstance(cluster, str) else None,
        _optional(job.get("restart_cnt")),
        _optional(times.get("submission")),
        at,
    )


def _time(times: dict[str, Json], name: str) -> Candidates | None:
    if name not in times:
        raise _UnreadableError(f"a job without time.{name}")
    seconds = _number(times[name])
    if seconds is None or seconds == 0:
        return None
    if seconds < 0:
        raise _UnreadableError(f"unreadable time.{name}")
    return (seconds * US,)


def _state(value: Any) -> str:
    """Return the most informative state: a running one, if any, else the first."""
    if isinstance(value, dict):
        value = value.get("current")
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        raise _UnreadableError("unreadable state")
    states = [job_state(word) for word in words]
    running = [state for state in states if state in RUNNING_STATES]
    known = [state for state in states if is_known_state(state)]
    return (running or known or states)[0]


def _number(value: Any) -> int | None:
    """Return a whole number, plain, as text or as ``{"set", "infinite", "number"}``; ``None`` if not set.

    Raises
    ------
    _UnreadableError
        Another form.
    """
    if isinstance(value, dict):
        if value.get("infinite") is True or value.get("set") is False:
            return None
        value = value.get("number")
    if isinstance(value, float) and abs(value) < _LARGEST and value.is_integer():
        value = int(value)
    if isinstance(value, str):
        value = whole(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _UnreadableError("a number that cannot be read")
    if value in _NO_VALUES:
        return None
    if not -_LARGEST < value < _LARGEST:
        raise _UnreadableError("a number that cannot be read")
    return value


def _optional(value: Any) -> int | None:
    """Return an optional number; junk counts as missing."""
    try:
        number = _number(value)
    except _UnreadableError:
        return None
    return number if number is not None and number >= 0 else None
