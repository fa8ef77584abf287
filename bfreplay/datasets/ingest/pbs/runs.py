"""Runs of PBS jobs from their records: opened by S, closed by E, R or A; E alone is enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.ingest.occupancy.schedule import NodeLists, ScheduleRecord
from bfreplay.datasets.ingest.pbs import records
from bfreplay.datasets.ingest.pbs.records import FARTHEST_US, Line, StampClock
from bfreplay.datasets.times import US

BAD_ATTRIBUTES = "times that cannot be read"
BAD_NODES = "a node list that cannot be read"
CONTRADICTION = "times that contradict the record's own text stamp"

_PAIRED = "start record, its run is known from the end record"
_TWICE = "start record that was read twice"
_LATE = "start record that comes after a later one of the same job"
_NEVER = "never started"
_NO_RUN = {"R": "rerun of a job without a start in the log", "A": "aborted before it started"}
_LOST_WARNING = "jobs without a start in the log were rerun: their nodes look idle before"
_OVERLAP_WARNING = "a job started again without an end of its earlier run: that run is assumed to last until then"
ORDER_WARNING = "records are not in order of time: runs that end by a record without times may be wrong"
_STARTS_WARNING = "the start and the end record of a run give different starts; the start record is used"
_HOSTS_WARNING = "the start and the end record of a run list different nodes; the end record is used"
_NO_END_WARNING = "end records without end=: the times of the records are used"
_OTHER_START_WARNING = "start records were written at another time than their start; the start is used"
_DELETED_WARNING = (
    "deleted jobs never end in the log: they hold their nodes until the log, or their time limit, is over"
)
_PAST_LIMIT_WARNING = (
    "jobs have no end record though their time limit is long over (is a day's file missing?): they are taken to have"
    " ended at it, as runaway jobs"
)
_OTHER_END_WARNING = "end records were written at another time than their end; the end is used"
_CUT_WARNING = "records end with their node list: it may have been cut, and its last nodes look idle"
_VNODES_WARNING = "exec_host and exec_vnode, which agree elsewhere, name different nodes: exec_host is used"
_PHASES_WARNING = "jobs released nodes while they ran: they count with all of them until they end"
_CHECKPOINT_WARNING = "jobs were checkpointed while they ran: they count with their nodes all the time"

_MOST_DIFFERING = 100_000
_GRACE_US = 3600 * US
Nodes = NDArray[np.int32]


@dataclass(slots=True)
class _Run:
    """Run without an end so far; ``listed`` is its raw node list, ``warnings_of_lines``: warnings with lines."""

    start_us: int
    nodes: Nodes | None
    listed: str | None
    count: int | None
    limit_us: int | None
    line: Line
    is_deleted: bool = False
    warnings_of_lines: list[tuple[str, Line]] = field(default_factory=list)


class Runs:
    """Tracker of the jobs of a log, in order of time, that adds their intervals to a record.

    Every record given to a method becomes one interval or one skipped row, at the latest in ``finish``.
    """

    def __init__(self, record: ScheduleRecord, clock: StampClock) -> None:
        self._record = record
        self._report = record.report
        self._clock = clock
        self._open: dict[str, _Run] = {}
        self._lists = NodeLists(record)
        self._n_agreeing = 0
        self._differing: list[Line] = []

    def start(self, line: Line) -> None:
        """Process S: the job holds nodes from now on."""
        values = self._attributes(line)
        if values is None:
            return
        start = values[1]
        if start is None:
            return self._unreadable(BAD_ATTRIBUTES, line)
        if not self._is_consistent(line, values[0], start, start, earliest_us=line.stamp_us - FARTHEST_US):
            return
        warnings_of_lines: list[tuple[str, Line]] = []
        nodes = self._nodes(line, values[0], warnings_of_lines, is_required=True)
        if nodes is _NONE:
            return
        if not self._clock.witness(line.stamp_us, start):
            warnings_of_lines.append((_OTHER_START_WARNING, line))
        open_run = self._open.get(line.job)
        if open_run is not None:
            if start < open_run.start_us:
                return self._report.skip_with_warning(_LATE, line.file, line.number, line.job, warning=ORDER_WARNING)
            if start == open_run.start_us:
                self._report.skip(_TWICE, open_run.line.file, open_run.line.number, line.job)
            else:
                open_run.warnings_of_lines.append((_OVERLAP_WARNING, open_run.line))
                self._add(line.job, open_run, start)
        limit = records.walltime_us(values[0])
        self._open[line.job] = _Run(
            start,
            nodes,
            _node_lists(values[0]),
            records.count_of(values[0]),
            None if limit is None else start + limit,
            line,
            warnings_of_lines=warnings_of_lines,
        )

    def end(self, line: Line) -> None:
        """Process E, R or A: the job releases its nodes; the record has times and nodes, or only its stamp."""
        consistent = self._attributes(line)
        if consistent is None:
            return
        values, start, end = consistent
        open_run = self._open.get(line.job)
        if start is None:
            if open_run is None:
                self._report.skip(_NO_RUN.get(line.kind, _NEVER), line.file, line.number, line.job)
                return self._report.warn(_LOST_WARNING, line.file, line.number, line.job, count=line.kind == "R")
            start = open_run.start_us
        if not self._is_consistent(line, values, start, end):
            return
        warnings_of_lines: list[tuple[str, Line]] = []
        nodes = self._nodes(line, values, warnings_of_lines, is_required=open_run is None)
        if nodes is _NONE:
            return
        if end is not None and not self._clock.witness(line.stamp_us, end):
            if end <= start:  # without length by one of two different times: not a run to skip
                return self._unreadable(CONTRADICTION, line)
            warnings_of_lines.append((_OTHER_END_WARNING, line))
        if end is None and line.kind == "E":
            warnings_of_lines.append((_NO_END_WARNING, line))
        run = _Run(
            start, nodes, _node_lists(values), records.count_of(values), None, line, warnings_of_lines=warnings_of_lines
        )
        if open_run is not None:
            self._meet(line, run, open_run, line.stamp_us + FARTHEST_US if end is None else end)
        if end is not None:
            self._add(line.job, run, end)
            return
        self._clock.resolve(line, run.start_us, partial(self._add, line.job, run))

    def delete(self, line: Line) -> None:
        """Process D: a request to end the job; only E has its end."""
        run = self._open.get(line.job)
        if run is not None:
            run.is_deleted = True
        self._report.skip("request to delete", line.file, line.number, line.job)

    def give_back(self, line: Line) -> None:
        """Process c, s, u, e: a job with phases, which released nodes."""
        self._report.skip("update of a running job", line.file, line.number, line.job)
        run = self._open.get(line.job)
        if line.kind in "cs" and run is not None:
            run.warnings_of_lines.append((_PHASES_WARNING, line))
        elif line.kind in "cs":
            self._report.warn(_PHASES_WARNING, line.file, line.number, line.job)

    def checkpoint(self, line: Line) -> None:
        """Process C, T: checkpointed and held, restarted from there."""
        self._report.skip("checkpoint record", line.file, line.number, line.job)
        if line.job in self._open:
            self._open[line.job].warnings_of_lines.append((_CHECKPOINT_WARNING, line))

    def finish(self) -> None:
        """Add the jobs that are running at the end of the log."""
        latest = self._clock.latest_us
        for job, run in self._open.items():
            if run.is_deleted:
                run.warnings_of_lines.append((_DELETED_WARNING, run.line))
            elif run.limit_us is not None and latest is not None and latest > run.limit_us + _GRACE_US:
                run.warnings_of_lines.append((_PAST_LIMIT_WARNING, run.line))
            self._add(job, run, None)
        self._open.clear()
        # virtual nodes may have other names than their hosts
        self._report.read(0)
        if len(self._differing) < self._n_agreeing:
            for line in self._differing:
                self._report.warn(_VNODES_WARNING, line.file, line.number, line.job)

    # ---- shared by the methods --------------------------------------------------------------------------------

    def _meet(self, line: Line, run: _Run, open_run: _Run, end_us: int) -> None:
        """Combine an end record with the run opened by its job's last start record."""
        if run.start_us > open_run.start_us:
            open_run.warnings_of_lines.append((_OVERLAP_WARNING, open_run.line))
            self._add(line.job, open_run, run.start_us)
        elif end_us < open_run.start_us:
            return  # the end of an earlier run: the open one goes on
        else:
            if run.start_us < open_run.start_us:
                run.warnings_of_lines.append((_STARTS_WARNING, line))
                run.start_us = open_run.start_us
            if run.nodes is None:
                run.nodes, run.count = open_run.nodes, open_run.count
            elif open_run.nodes is not None and run.listed != open_run.listed and not _same(run.nodes, open_run.nodes):
                run.warnings_of_lines.append((_HOSTS_WARNING, line))
            run.warnings_of_lines[:0] = open_run.warnings_of_lines
            self._report.skip(_PAIRED, open_run.line.file, open_run.line.number, line.job)
        del self._open[line.job]

    def _add(self, job_id: str, run: _Run, end_us: int | None) -> None:
        line = run.line
        self._report.read(0)  # only what is wrong with this run is about its nodes and times
        self._report_warnings(run.warnings_of_lines, job_id)
        self._record.add_job(
            job_id, run.start_us, end_us, run.nodes, run.count, run.limit_us, file=line.file, line=line.number
        )

    def _report_warnings(self, warnings_of_lines: Sequence[tuple[str, Line]], job_id: str) -> None:
        for sentence, line in warnings_of_lines:
            self._report.warn(sentence, line.file, line.number, job_id)

    def _attributes(self, line: Line) -> tuple[Mapping[str, str], int | None, int | None] | None:
        try:
            values = records.attributes(line.text)
            return values, records.epoch_us(values, "start"), records.epoch_us(values, "end")
        except ValueError as error:
            self._unreadable(BAD_ATTRIBUTES, line, str(error))
            return None

    def _is_consistent(
        self, line: Line, values: Mapping[str, str], start_us: int, end_us: int | None, earliest_us: int | None = None
    ) -> bool:
        """Return whether a record was written after its times and the job created before, as far as zones allow."""
        try:
            creation_us = records.epoch_us(values, "ctime")
        except ValueError:
            creation_us = None
        latest = line.stamp_us + FARTHEST_US
        fine = start_us <= latest and (end_us is None or start_us <= end_us <= latest)
        fine = fine and (earliest_us is None or start_us >= earliest_us)
        fine = fine and (creation_us is None or start_us >= creation_us - FARTHEST_US)
        if not fine:
            self._unreadable(CONTRADICTION, line)
        return fine

    def _nodes(
        self, line: Line, values: Mapping[str, str], warnings_of_lines: list[tuple[str, Line]], *, is_required: bool
    ) -> Nodes | None:
        """Return the indices of the nodes, ``None`` if none are listed, ``_NONE`` if the row is skipped."""
        node_list = _node_lists(values)
        try:
            if is_required and node_list is None and records.count_of(values) is None:
                raise ValueError("neither exec_host nor exec_vnode")
            if node_list is None:
                return None
            if not records.has_following_text(line.text, values):
                warnings_of_lines.append((_CUT_WARNING, line))
            nodes = self._lists.ids(node_list, partial(self._names, line, values))
        except ValueError as error:
            self._report_warnings(warnings_of_lines, line.job)
            self._unreadable(BAD_NODES, line, str(error))
            return _NONE
        return nodes if len(nodes) else None

    def _names(self, line: Line, values: Mapping[str, str]) -> tuple[str, ...]:
        """Return the names in a new list; check whether the list of virtual nodes has the same."""
        names = records.node_names(values)
        try:
            others = records.node_names({"exec_vnode": values.get("exec_vnode", "")})
        except ValueError:
            others = None
        if others is not None and set(others) == set(names):
            self._n_agreeing += bool(others)
        elif others != () and len(self._differing) < _MOST_DIFFERING:
            self._differing.append(line)
        return names

    def _unreadable(self, reason: str, line: Line, why_no_amount: str = "") -> None:
        value = f"{line.kind};{line.job}" + (f": {why_no_amount}" if why_no_amount else "")
        self._report.skip_with_warning(reason, line.file, line.number, value)


_NONE: Nodes = np.empty(0, np.int32)


def _node_lists(values: Mapping[str, str]) -> str | None:
    """Return the raw node lists of the record, ``None`` without any."""
    if "exec_host" not in values and "exec_vnode" not in values:
        return None
    return values.get("exec_host", "") + " " + values.get("exec_vnode", "")


def _same(first: Nodes, second: Nodes) -> bool:
    return len(first) == len(second) and bool((np.sort(first) == np.sort(second)).all())
