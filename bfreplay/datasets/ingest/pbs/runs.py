"""Runs of PBS jobs from their records: opened by S, closed by E, R or A; E alone is enough."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.ingest.occupancy.schedule import NodeLists, ScheduleRecord
from bfreplay.datasets.ingest.occupancy.submissions import NO_SUBMISSION, Submission
from bfreplay.datasets.ingest.pbs import records
from bfreplay.datasets.ingest.pbs.records import FARTHEST_US, Line, StampClock
from bfreplay.datasets.ingest.reader import or_none
from bfreplay.datasets.times import US

BAD_ATTRIBUTES = "times that cannot be read"
BAD_NODES = "a node list that cannot be read"
CONTRADICTION = "times that contradict the record's own text stamp"

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

    line: Line
    start_us: int
    listed: str | None
    count: int | None
    nodes: Nodes | None = None
    limit_us: int | None = None
    submission: Submission = NO_SUBMISSION
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
        consistent = self._attributes(line)
        if consistent is None:
            return
        attributes, start_us, _ = consistent
        if start_us is None:
            return self._unreadable(BAD_ATTRIBUTES, line)
        if not self._is_consistent(line, attributes, start_us, start_us, earliest_us=line.stamp_us - FARTHEST_US):
            return
        new_run = self._run_of(line, attributes, start_us, is_required=True)
        if new_run is None:
            return
        if not self._clock.witness(line.stamp_us, start_us):
            new_run.warnings_of_lines.append((_OTHER_START_WARNING, line))
        open_run = self._open.get(line.job)
        if open_run is not None:
            if start_us < open_run.start_us:
                return self._report.skip_with_warning(
                    "start record that comes after a later one of the same job", *line.place, warning=ORDER_WARNING
                )
            if start_us == open_run.start_us:
                self._report.skip("start record that was read twice", *open_run.line.place)
            else:
                open_run.warnings_of_lines.append((_OVERLAP_WARNING, open_run.line))
                self._add(open_run, start_us)
        time_limit_us = records.walltime_us(attributes)
        new_run.limit_us = None if time_limit_us is None else start_us + time_limit_us
        self._open[line.job] = new_run

    def end(self, line: Line) -> None:
        """Process E, R or A: the job releases its nodes; the record has times and nodes, or only its stamp."""
        consistent = self._attributes(line)
        if consistent is None:
            return
        attributes, start_us, end_us = consistent
        open_run = self._open.get(line.job)
        if start_us is None:
            if open_run is None:
                self._report.skip(_NO_RUN.get(line.kind, "never started"), *line.place)
                return self._report.warn(_LOST_WARNING, *line.place, count=line.kind == "R")
            start_us = open_run.start_us
        if not self._is_consistent(line, attributes, start_us, end_us):
            return
        ended_run = self._run_of(line, attributes, start_us, is_required=open_run is None)
        if ended_run is None:
            return
        if end_us is not None and not self._clock.witness(line.stamp_us, end_us):
            if end_us <= start_us:  # without length by one of two different times: not a run to skip
                return self._unreadable(CONTRADICTION, line)
            ended_run.warnings_of_lines.append((_OTHER_END_WARNING, line))
        if end_us is None and line.kind == "E":
            ended_run.warnings_of_lines.append((_NO_END_WARNING, line))
        if open_run is not None:
            self._meet(line, ended_run, open_run, line.stamp_us + FARTHEST_US if end_us is None else end_us)
        if end_us is not None:
            return self._add(ended_run, end_us)
        self._clock.resolve(line, ended_run.start_us, partial(self._add, ended_run))

    def delete(self, line: Line) -> None:
        """Process D: a request to end the job; only E has its end."""
        open_run = self._open.get(line.job)
        if open_run is not None:
            open_run.is_deleted = True
        self._report.skip("request to delete", *line.place)

    def give_back(self, line: Line) -> None:
        """Process c, s, u, e: a job with phases, which released nodes."""
        self._report.skip("update of a running job", *line.place)
        open_run = self._open.get(line.job)
        if line.kind in "cs" and open_run is not None:
            open_run.warnings_of_lines.append((_PHASES_WARNING, line))
        elif line.kind in "cs":
            self._report.warn(_PHASES_WARNING, *line.place)

    def checkpoint(self, line: Line) -> None:
        """Process C, T: checkpointed and held, restarted from there."""
        self._report.skip("checkpoint record", *line.place)
        if line.job in self._open:
            self._open[line.job].warnings_of_lines.append((_CHECKPOINT_WARNING, line))

    def finish(self) -> None:
        """Add the jobs that are running at the end of the log."""
        latest = self._clock.latest_us
        for open_run in self._open.values():
            if open_run.is_deleted:
                open_run.warnings_of_lines.append((_DELETED_WARNING, open_run.line))
            elif open_run.limit_us is not None and latest is not None and latest > open_run.limit_us + _GRACE_US:
                open_run.warnings_of_lines.append((_PAST_LIMIT_WARNING, open_run.line))
            self._add(open_run, None)
        self._open.clear()
        # virtual nodes may have other names than their hosts
        self._report.read(0)
        if len(self._differing) < self._n_agreeing:
            for line in self._differing:
                self._report.warn(_VNODES_WARNING, *line.place)

    # ---- shared by the methods --------------------------------------------------------------------------------

    def _meet(self, line: Line, run: _Run, open_run: _Run, end_us: int) -> None:
        """Combine an end record with the run opened by its job's last start record."""
        if run.start_us > open_run.start_us:
            open_run.warnings_of_lines.append((_OVERLAP_WARNING, open_run.line))
            self._add(open_run, run.start_us)
        elif end_us < open_run.start_us:
            return  # the end of an earlier run: the open one goes on
        else:
            if run.start_us < open_run.start_us:
                run.warnings_of_lines.append((_STARTS_WARNING, line))
                run.start_us = open_run.start_us
            if run.nodes is None:
                run.nodes, run.count = open_run.nodes, open_run.count
                run.submission = run.submission._replace(units=open_run.submission.units)
            elif open_run.nodes is not None and run.listed != open_run.listed and not _same(run.nodes, open_run.nodes):
                run.warnings_of_lines.append((_HOSTS_WARNING, line))
            run.warnings_of_lines[:0] = open_run.warnings_of_lines
            self._report.skip("start record, its run is known from the end record", *open_run.line.place)
        del self._open[line.job]

    def _add(self, run: _Run, end_us: int | None) -> None:
        file_name, line_number, job_id = run.line.place
        self._report.read(0)  # only what is wrong with this run is about its nodes and times
        self._report_warnings(run)
        self._record.add_job(
            job_id,
            run.start_us,
            end_us,
            run.nodes,
            run.count,
            run.limit_us,
            file_name,
            line_number,
            submission=run.submission,
        )

    def _report_warnings(self, run: _Run) -> None:
        for sentence, line in run.warnings_of_lines:
            self._report.warn(sentence, *line.place)

    def _attributes(self, line: Line) -> tuple[Mapping[str, str], int | None, int | None] | None:
        try:
            attributes = records.attributes(line.text)
            return attributes, records.epoch_us(attributes, "start"), records.epoch_us(attributes, "end")
        except ValueError as error:
            self._unreadable(BAD_ATTRIBUTES, line, str(error))
            return None

    def _is_consistent(
        self, line: Line, values: Mapping[str, str], start_us: int, end_us: int | None, earliest_us: int | None = None
    ) -> bool:
        """Return whether a record was written after its times and the job created before, as far as zones allow."""
        creation_us = or_none(records.epoch_us, values, "ctime")
        latest = line.stamp_us + FARTHEST_US
        fine = start_us <= latest and (end_us is None or start_us <= end_us <= latest)
        fine = fine and (earliest_us is None or start_us >= earliest_us)
        fine = fine and (creation_us is None or start_us >= creation_us - FARTHEST_US)
        if not fine:
            self._unreadable(CONTRADICTION, line)
        return fine

    def _run_of(self, line: Line, values: Mapping[str, str], start_us: int, *, is_required: bool) -> _Run | None:
        """Return the run of a record, ``None`` if its nodes cannot be read, or are ``is_required`` and not there."""
        node_list = None
        if "exec_host" in values or "exec_vnode" in values:
            node_list = values.get("exec_host", "") + " " + values.get("exec_vnode", "")
        eligible_us = or_none(records.epoch_us, values, "etime") or or_none(records.epoch_us, values, "ctime")
        submission = Submission(eligible_us, values.get("queue", ""))
        run_of_record = _Run(line, start_us, node_list, records.count_of(values), submission=submission)
        try:
            if node_list is not None:
                if not records.has_following_text(line.text, values):
                    run_of_record.warnings_of_lines.append((_CUT_WARNING, line))
                node_ids = self._lists.ids(node_list, partial(self._names, line, values))
                run_of_record.nodes = node_ids if len(node_ids) else None
                if self._record.units is not None and len(host_names := records.node_names(values)) == len(node_ids):
                    run_of_record.submission = submission._replace(units=records.held(values, host_names))
            elif is_required and run_of_record.count is None:
                raise ValueError("neither exec_host nor exec_vnode")
        except ValueError as error:
            self._report_warnings(run_of_record)
            self._unreadable(BAD_NODES, line, str(error))
            return None
        return run_of_record

    def _names(self, line: Line, values: Mapping[str, str]) -> tuple[str, ...]:
        """Return the names in a new list; check whether the list of virtual nodes has the same."""
        node_names = records.node_names(values)
        vnode_names = or_none(records.node_names, {"exec_vnode": values.get("exec_vnode", "")})
        if vnode_names is not None and set(vnode_names) == set(node_names):
            self._n_agreeing += bool(vnode_names)
        elif vnode_names != () and len(self._differing) < _MOST_DIFFERING:
            self._differing.append(line)
        return node_names

    def _unreadable(self, skip_reason: str, line: Line, fault: str = "") -> None:
        record_text = f"{line.kind};{line.job}" + (f": {fault}" if fault else "")
        self._report.skip_with_warning(skip_reason, line.file, line.number, record_text)


def _same(first: Nodes, second: Nodes) -> bool:
    return len(first) == len(second) and bool((np.sort(first) == np.sort(second)).all())
