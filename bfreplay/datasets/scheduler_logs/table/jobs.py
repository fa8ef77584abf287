"""Rows of tables to job intervals."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from bfreplay.datasets.occupancy.record import ScheduleRecord
from bfreplay.datasets.scheduler_logs.hostlists import MOST_NODES
from bfreplay.datasets.scheduler_logs.options import ReadOptions
from bfreplay.datasets.scheduler_logs.table.cells import count_in, first_word, is_missing, limit_us, shown, span_us
from bfreplay.datasets.scheduler_logs.table.identity import Identities
from bfreplay.datasets.scheduler_logs.table.node_lists import NodeLists
from bfreplay.datasets.scheduler_logs.table.times import Clock, Wall, is_interval, is_number
from bfreplay.errors import InputError

UNREADABLE = "rows that cannot be read were left out: their nodes look idle"
LISTS_UNREADABLE = "node lists that cannot be read were replaced by the number of nodes: which nodes is a rule's choice"
ELAPSED_DIFFERS = "the running time in the log is not the end minus the start; start and end are believed"
OVER_WITHOUT_END = "jobs whose state says that they are over have no end: they are taken as running"
NO_JOB = "rows without a job's name or number were kept: if they stand in two files they count twice"

RELATIVE_BEFORE_US = 10 * 365 * 86_400_000_000
"""Times before 1980 are no dates of jobs: they count from the start of a log."""

PENDING = frozenset(
    {"pending", "pd", "queued", "q", "held", "hold", "waiting", "submitted", "requeue_hold", "configuring"}
)
RUNNING = frozenset({"running", "r", "run", "completing", "suspended"})
_STEP = re.compile(r"(\d+(?:_\d+|\+\d+)?)\.(batch|extern|interactive|\d+)", re.ASCII)


class JobRows:
    """Takes rows of a table of jobs.

    Parameters
    ----------
    file
        Name of the file, for the report.
    has
        Roles that have a column.
    """

    def __init__(
        self,
        record: ScheduleRecord,
        options: ReadOptions,
        clock: Clock,
        identities: Identities,
        file: str,
        has: set[str],
    ) -> None:
        self._record, self._lint, self._options, self._clock = record, record.lint, options, clock
        self._identities, self._file, self._has = identities, file, has
        self._lists = NodeLists(record)
        self._parent = ""
        if "node_count" not in has and "nodes" not in has and not options.procs_per_node:
            raise InputError(
                "the table says how many processors a job had, and nobody how many a node has",
                file=file,
                expected="the number of processors of one node",
                fix="give it: --procs-per-node 48",
            )

    def add(self, cells: Mapping[str, Any], line: int) -> None:
        """Make an interval of a row, or count why not."""
        state = first_word(cells.get("state"))
        job = self._job(cells.get("job"))
        if job and self._is_step(job):
            return self._left_out("job step", line, job)
        if state in PENDING:
            return self._left_out("never started (pending)", line, job)
        try:
            start = self._clock.read(cells.get("start"))
            end = None if state in RUNNING else self._clock.read(cells.get("end"))
            elapsed = self._elapsed(cells, end)
        except (ValueError, OverflowError) as error:
            return self._unreadable("a time that cannot be read", line, f"{shown(cells, 'start', 'end')}: {error}")
        if end is not None and _us(end) == 0:
            end = None
        # an export that writes 0 for "not yet": only in logs that count from zero can a job start there
        if start is None or (_us(start) == 0 and (end is None or _us(end) > RELATIVE_BEFORE_US)):
            return self._left_out("never started", line, job)
        try:
            count = self._count(cells)
        except ValueError:
            return self._unreadable(
                "a number of nodes that cannot be read", line, shown(cells, "nodes", "node_count", "processors")
            )
        interval = self._clock.interval(start, end, elapsed, self._file, line)
        if isinstance(interval, str):
            return self._left_out(interval, line, shown(cells, "start", "end"))
        start_us, end_us = interval[0], self._end(cells, state, interval, elapsed, line)
        if not is_interval(start_us, end_us):
            self._record.add_job(job, start_us, end_us, None, 1, None, self._file, line)  # which says why it cannot be
            return
        nodes, text = None, ""
        if not is_missing(cells.get("nodes")):
            try:
                nodes, text = self._lists.ids(cells["nodes"])
            except ValueError as error:
                value = shown(cells, "nodes", "node_count", "processors")
                if not count:
                    return self._unreadable("a list of nodes that cannot be read", line, f"{value}: {error}")
                self._lint.doubt(LISTS_UNREADABLE, self._file, line, value)
        if not count and not text:
            return self._left_out("a job without nodes", line, job)
        if not job and "job" in self._has:
            self._lint.doubt(NO_JOB, self._file, line)
        self._clock.count(start, is_number(cells["start"]))
        self._parent = job
        identity = self._identities.of(job or f"{self._file} line {line}", start_us, text, self._file, line)
        limit = limit_us(cells.get("limit"))
        limit_end = None if limit is None else start_us + limit
        self._record.add_job(identity, start_us, end_us, nodes, count, limit_end, self._file, line)

    def _end(
        self, cells: Mapping[str, Any], state: str, interval: tuple[int, int | None], elapsed: int | None, line: int
    ) -> int | None:
        """End of a job; where there is none, the start plus the running time of a job that is over."""
        start_us, end_us = interval
        if end_us is None and state not in RUNNING:
            if elapsed is not None and (state or "end" not in self._has):
                return start_us + elapsed
            if state:
                self._lint.doubt(OVER_WITHOUT_END, self._file, line, f"{shown(cells, 'job')} {state}")
        elif end_us is not None and elapsed is not None and abs(end_us - start_us - elapsed) > 1_000_000:
            self._lint.doubt(ELAPSED_DIFFERS, self._file, line, shown(cells, "start", "end", "elapsed"))
        return end_us

    def _count(self, cells: Mapping[str, Any]) -> int | None:
        if not is_missing(cells.get("node_count")):
            count = count_in(cells["node_count"])
        elif is_missing(cells.get("processors")) or not self._options.procs_per_node:
            return None
        else:
            count = -(-count_in(cells["processors"]) // self._options.procs_per_node)
        if count > MOST_NODES:
            raise ValueError("more nodes than any machine has")
        return count

    def _elapsed(self, cells: Mapping[str, Any], end: int | Wall | None) -> int | None:
        """Running time; where there is an end to go by, one that cannot be read is nobody's business."""
        if is_missing(cells.get("elapsed")):
            return None
        try:
            return span_us(cells["elapsed"])
        except (ValueError, OverflowError):
            if end is None:
                raise
            return None

    def _job(self, value: Any) -> str:
        if is_missing(value):
            return ""
        return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)

    def _is_step(self, job: str) -> bool:
        """Whether it is a step of a job; ``12.0`` is one only below ``12``, else a number that became a float."""
        match = _STEP.fullmatch(job)
        if match is None:
            return False
        return not match[2].isdigit() or match[1] == self._parent

    def _left_out(self, reason: str, line: int, value: object) -> None:
        self._lint.drop(reason, self._file, line, value)

    def _unreadable(self, reason: str, line: int, value: object) -> None:
        self._lint.drop(reason, self._file, line, value)
        self._lint.doubt(UNREADABLE, self._file, line, value)


def _us(time: int | Wall) -> int:
    return time.us if isinstance(time, Wall) else time
