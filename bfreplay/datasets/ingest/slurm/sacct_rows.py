"""Job rows of all forms into intervals of the record, with warnings."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.ingest.hostlists import expand_nodes
from bfreplay.datasets.ingest.local_times import Candidates, RowPlace
from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.import_report import WHICH_NODES
from bfreplay.datasets.ingest.occupancy.schedule import NodeLists, ScheduleRecord
from bfreplay.datasets.ingest.occupancy.spool import JobIntervals
from bfreplay.datasets.ingest.occupancy.submissions import NO_SUBMISSION, Submission
from bfreplay.datasets.ingest.reader import ReadOptions, or_none
from bfreplay.datasets.ingest.slurm.slurm_cells import ABSENT_NODES, RUNNING_STATES, WAITING_STATES, is_known_state
from bfreplay.datasets.ingest.slurm.slurm_times import SKIPPED, SlurmClock
from bfreplay.datasets.times import HOUR_US, US, iso_utc

LEAST_AT_EDGE = 10


class Edge:
    """Counter of the rows at the very first, or very last, time.

    Many rows there are a cut if they have nothing else in common: a job array starts at one time, but was submitted at
    one time too; jobs running at the opening of a window were submitted at many.

    Parameters
    ----------
    direction
        -1 for the first time, 1 for the last.
    """

    def __init__(self, direction: int) -> None:
        self._direction = direction
        self._time_us: int | None = None
        self._others: set[object] = set()
        self.count = 0

    def add(self, time_us: int, shared_value: object) -> None:
        """Add a row's time, and a value that related rows would share (``None``: not known)."""
        if self._time_us is None or (time_us - self._time_us) * self._direction > 0:
            self._time_us, self.count, self._others = time_us, 0, set()
        if time_us == self._time_us:
            self.count += 1
            if len(self._others) < LEAST_AT_EDGE:
                self._others.add(object() if shared_value is None else shared_value)

    def add_all(self, times_us: NDArray[np.int64], shared_value: Callable[[int], object]) -> None:
        """Add rows; ``shared_value`` returns the value of the row at a position of ``times_us``."""
        edge_us = int(times_us.max() if self._direction > 0 else times_us.min())
        if self._time_us is None or (edge_us - self._time_us) * self._direction >= 0:
            for position in np.flatnonzero(times_us == edge_us).tolist():
                self.add(edge_us, shared_value(position))

    @property
    def is_cut(self) -> bool:
        """True if at least ten rows, ten of them different, are at the edge."""
        return len(self._others) >= LEAST_AT_EDGE

    @property
    def time_text(self) -> str:
        """Time for the report."""
        return "" if self._time_us is None else iso_utc(self._time_us)


NO_END = "finished jobs without an end were skipped: their nodes look idle"
END_IS_COMPUTED = "finished jobs have no end: start plus running time is used"
COMPUTED_ENDS = "the log has no End: ends are start plus running time (and the time suspended, where the log has it)"
ALL_COMPLETED = (
    "all rows have the state COMPLETED: was the export filtered by state (sacct -s)? Nodes of jobs that failed, timed "
    "out, were cancelled or still run look idle then"
)
NO_START = "jobs with nodes but without a start were skipped: their nodes look idle"
NO_NODES = "jobs that ran, but were given no nodes, were skipped"
BACKWARDS = "jobs that end before they start were skipped: their nodes look idle"
UNKNOWN_STATE = "an unknown state of jobs: such jobs count with their nodes from start to end"
LIST_UNREADABLE = "a node list is cut or unreadable: the job's nodes are assigned by rule, from their number"
NO_LISTS = "the log has no NodeList: which nodes a job held is assigned by rule, from their number"
LIST_MISSING = "jobs with a number of nodes but no list of them: their nodes are assigned by rule"
COUNT_UNREADABLE = "a number of nodes is missing or cannot be read: nothing confirms the list of nodes beside it"
RESTARTS_UNREADABLE = "a number of restarts cannot be read: the cells of the row may not be in their places"
WHOLE_HOURS = "running time and start-to-end differ by whole hours: the time zone may be wrong"
TOO_LONG = "a running time is longer than end minus start: one of the three is wrong"
TOO_SHORT = (
    "a running time is shorter than end minus start: the job was suspended (export Suspended too), or a time is wrong"
)
CUT_STARTS = "many jobs start at the very first second: their starts are cut at the window's edge (sacct -T?)"
CUT_ENDS = "many jobs end at the very last second: their ends are cut at the window's edge (sacct -T?)"
RUNNING_WITH_END = "jobs that are still running have an end: it is cut at the window's edge (sacct -T?)"
OUTSIDE = "what is missing lies outside the log"
OTHERS_MISSING = "the log does not tell how many jobs ended otherwise"
RUNS_MISSING = "requeued jobs lack their earlier runs (sacct without -D?): their nodes look idle then"
CLUSTERS = "jobs of several clusters are in this log: their nodes count as one machine (export one: sacct -M NAME)"
DUMP_TIMES = (
    "running jobs disagree on when the file was written: a running time or a start is wrong, or it is several exports"
)

SLACK_US = US
_DUMP_TAKES_US = 600 * US
_CLUSTER = re.compile(r"[A-Za-z0-9][\w.\-]*", re.ASCII)
_MOST_IDS = 100_000
_MOST_TIMES_LISTED = 10
_NEVER_REQUEUED = RUNNING_STATES | {"COMPLETED"}
_MANY_COMPLETED = 200
_MOST_DUMP_TIMES = 100_000


@dataclass(slots=True)
class JobRow:
    """Job row; ``start`` and ``end`` are the possible times, ``None`` without one; absent cells are ``None``."""

    job: str
    state: str
    start: Candidates | None
    end: Candidates | None
    elapsed_us: int | None
    suspended_us: int | None
    limit_us: int | None
    count: int | None
    nodes: str | None
    cluster: str | None
    restarts: int | None
    submitted: object
    at: RowPlace
    has_count: bool = False  # the table has a column for it
    has_end: bool = True
    submission: Submission = NO_SUBMISSION

    def limit_end_us(self, start_us: int) -> int | None:
        """Return the latest end of a run by its time limit; ``None`` without one."""
        return start_us + self.limit_us if self.limit_us else None


@dataclass(frozen=True, slots=True)
class OrdinaryJobs:
    """Jobs (J) that ended, on known nodes, in the order of their rows, with nothing to report about them.

    Attributes
    ----------
    row
        Row of each job, ``(J,)``.
    intervals
        When it ran, and where; all nodes are listed.
    is_completed
        Whether its state is COMPLETED, ``(J,)``.
    submitted
        Returns when a row was submitted, as in the log.
    has_restarts
        True if the log says that none was restarted.
    """

    row: NDArray[np.int64]
    intervals: JobIntervals
    is_completed: NDArray[np.bool_]
    submitted: Callable[[int], object]
    has_restarts: bool

    def part(self, begin_job: int, end_job: int) -> OrdinaryJobs:
        """Return the jobs from position ``begin_job`` up to ``end_job``."""
        intervals, completion = self.intervals.part(begin_job, end_job), self.is_completed[begin_job:end_job]
        return replace(self, row=self.row[begin_job:end_job], intervals=intervals, is_completed=completion)


class JobRows:
    """Converter of the job rows of all files; ``finish`` adds warnings about all of them."""

    def __init__(self, record: ScheduleRecord, options: ReadOptions) -> None:
        self._record, self._report = record, record.report
        if options.n_nodes is not None:
            record.set_machine_size(options.n_nodes)
        self._lists = NodeLists(record)
        self._clusters: dict[str, None] = {}
        self._first, self._last = Edge(-1), Edge(1)
        self._restarted: dict[str, tuple[int, tuple[str, int | None]]] = {}
        self._interrupted: set[str] = set()
        self._has_earlier_runs = False
        self._dump_times = array("q")
        self._n_completed = self._n_others = self._n_computed_ends = self._n_suspended = 0

    def add(self, job_row: JobRow, clock: SlurmClock) -> None:
        """Count ``job_row``, and keep or skip it with its reason."""
        self._add(job_row, clock)
        if self._report.needs_row_amount:
            self._note_row_amount(job_row)

    def _note_row_amount(self, job_row: JobRow) -> None:
        """Note how much a skipped row concerns, as far as it tells: without an end it may last as long as the log."""
        n_nodes, span_us = job_row.count, job_row.elapsed_us
        if n_nodes is None and job_row.nodes:
            n_nodes = len(or_none(expand_nodes, job_row.nodes) or ())
        if not span_us and job_row.start and job_row.end:
            span_us = max(job_row.end[-1] - job_row.start[0], 0)
        if n_nodes and span_us:
            self._report.set_row_amount(n_nodes, 0, span_us)
        elif n_nodes and job_row.start and not job_row.end:
            self._report.set_row_amount(n_nodes, job_row.start[0], job_row.limit_end_us(job_row.start[0]))

    def _add(self, job_row: JobRow, clock: SlurmClock) -> None:
        report, start_time = self._report, job_row.start
        self._n_completed += job_row.state == "COMPLETED"
        self._n_others += job_row.state != "COMPLETED"
        reason, warning = _reason_for_no_run(job_row)
        if reason == "pending" or (reason == "never started" and job_row.end):
            until_us = job_row.end[-1] if job_row.end and reason != "pending" else None
            identity = self._identity(job_row)
            self._record.add_waited(identity, job_row.submission, until_us, job_row.count or None)
        if warning:
            return report.skip_with_warning(reason, *job_row.at, warning=warning)
        if reason or start_time is None:
            return report.skip(reason, *job_row.at)
        node_ids = self._nodes_of_list(job_row)
        if node_ids is None and job_row.count is None:
            return report.skip_with_warning("neither a list nor a number of nodes", *job_row.at)
        span_us = None if job_row.elapsed_us is None else job_row.elapsed_us + (job_row.suspended_us or 0)
        times_us = clock.resolve(start_time, job_row.end, span_us, job_row.at)
        if times_us is None:
            return report.skip(SKIPPED, *job_row.at)
        start_us, end_us = times_us
        if node_ids is None:
            has_list = job_row.nodes is not None
            sentence = NO_LISTS if not has_list else LIST_UNREADABLE if job_row.nodes else LIST_MISSING
            report.warn(sentence, *job_row.at[:2], job_row.nodes if has_list else job_row.at[2], aside=WHICH_NODES)
        elif job_row.has_count and job_row.count is None:
            report.warn(COUNT_UNREADABLE, *job_row.at)
        if not is_known_state(job_row.state):
            report.warn(UNKNOWN_STATE, *job_row.at[:2], job_row.state)
        self._note_run(job_row)
        if job_row.end is None and job_row.state not in RUNNING_STATES and span_us is not None:
            end_us = start_us + span_us
            self._n_computed_ends += not job_row.has_end
            report.warn(END_IS_COMPUTED, *job_row.at, count=job_row.has_end)
        elif end_us is None:
            if span_us is not None and job_row.state != "SUSPENDED" and len(self._dump_times) < 3 * _MOST_DUMP_TIMES:
                n_nodes = job_row.count or (0 if node_ids is None else len(node_ids))
                self._dump_times.extend((start_us + span_us, start_us, n_nodes))
        else:
            self._check_span(job_row, end_us - start_us, span_us)
            self._last.add(end_us, start_us)
        self._first.add(start_us, job_row.submitted)
        self._record.add_job(
            self._identity(job_row),
            start_us,
            end_us,
            node_ids,
            job_row.count,
            job_row.limit_end_us(start_us),
            *job_row.at[:2],
            submission=job_row.submission,
        )

    def add_ordinary(self, jobs: OrdinaryJobs) -> None:
        """Keep rows as ``add`` would, which has nothing to report about them."""
        n_complete, intervals = int(np.count_nonzero(jobs.is_completed)), jobs.intervals
        self._n_completed += n_complete
        self._n_others += len(intervals) - n_complete
        if jobs.has_restarts and len(self._interrupted) < _MOST_IDS:
            other_jobs = intervals.job_key[~jobs.is_completed].tolist()
            self._interrupted.update(map(str, other_jobs[: _MOST_IDS - len(self._interrupted)]))
        self._first.add_all(intervals.start_us, lambda job_index: jobs.submitted(int(jobs.row[job_index])))
        self._last.add_all(intervals.end_us, lambda job_index: int(intervals.start_us[job_index]))
        self._record.add_listed_jobs(intervals)

    @property
    def first_cluster(self) -> str | None:
        """Cluster of the first job that has one."""
        return next(iter(self._clusters), None)

    def finish(self, log_file: LogFile) -> None:
        """Add warnings about all rows; ``log_file`` is their place in the report."""
        report = self._report
        report.read(0)  # the warnings below are of no single row
        for edge, sentence in ((self._first, CUT_STARTS), (self._last, CUT_ENDS)):
            if edge.is_cut:
                report.warn(sentence, log_file.name, None, edge.time_text, edge.count, aside=OUTSIDE)
        if self._n_completed >= _MANY_COMPLETED and not self._n_others:
            report.warn(ALL_COMPLETED, log_file.name, None, f"{self._n_completed:,} rows", why_no_amount=OTHERS_MISSING)
        if self._n_computed_ends:
            report.facts["ends"] = f"{COMPUTED_ENDS}: {self._n_computed_ends:,}"
        is_complete = self._has_earlier_runs or not self._interrupted.isdisjoint(self._restarted)
        if self._restarted and not is_complete and len(self._interrupted) < _MOST_IDS:
            first_job, (_, first_place) = next(iter(self._restarted.items()))
            report.warn(RUNS_MISSING, *first_place, first_job, len(self._restarted))
        if len(self._clusters) == 1:
            self._record.cluster = self.first_cluster

    def finish_file(self, log_file: LogFile) -> None:
        """Determine from the running jobs of ``log_file`` when it was written."""
        if not self._dump_times:
            return
        dump_times, start_us, node_counts = np.frombuffer(self._dump_times, dtype=np.int64).reshape(-1, 3).T
        # one wrong row must not move the end of the log
        median_time_us = int(np.sort(dump_times)[len(dump_times) // 2])
        self._record.stamp(median_time_us)
        is_off = np.abs(dump_times - median_time_us) > _DUMP_TAKES_US
        node_hours = float((node_counts * np.maximum(median_time_us - start_us, 0))[is_off].sum(dtype=float)) / HOUR_US
        n_off, middle_text = int(is_off.sum()), f"most of them: {iso_utc(median_time_us)}"
        self._report.warn(DUMP_TIMES, log_file.name, None, middle_text, n_off, node_hours=node_hours)
        self._dump_times = array("q")

    def _nodes_of_list(self, job_row: JobRow) -> NDArray[np.int32] | None:
        list_text = job_row.nodes
        if not list_text:
            return None

        def names() -> tuple[str, ...]:
            # no node name, but a count or a time from shifted cells
            node_names = () if list_text.isdigit() else expand_nodes(list_text)
            if job_row.count and len(node_names) > _MOST_TIMES_LISTED * job_row.count:
                raise ValueError("a wrong digit in a range must not add a thousand nodes to the machine")
            return node_names

        node_ids = or_none(self._lists.ids, list_text, names)
        return node_ids if node_ids is not None and len(node_ids) else None

    def _check_span(self, job_row: JobRow, span_us: int, expected_us: int | None) -> None:
        if span_us < 0:
            self._report.warn(BACKWARDS, *job_row.at)
            return
        if job_row.state == "RUNNING":
            self._report.warn(RUNNING_WITH_END, *job_row.at)
        if expected_us is None:
            return
        off_us = span_us - expected_us
        if abs(off_us) <= SLACK_US:
            if job_row.suspended_us:
                self._n_suspended += 1
                self._report.facts["suspended jobs"] = self._n_suspended
            return
        to_hour_us = (off_us + SLACK_US) % HOUR_US
        sentence = WHOLE_HOURS if to_hour_us <= 2 * SLACK_US else TOO_LONG if off_us < 0 else TOO_SHORT
        self._report.warn(sentence, *job_row.at)

    def _note_run(self, job_row: JobRow) -> None:
        """Remember restarted jobs, and jobs whose first run may precede a restart."""
        if job_row.restarts:
            previous = self._restarted.get(job_row.job)
            if previous is not None:
                self._has_earlier_runs |= previous[0] != job_row.restarts
            elif len(self._restarted) < _MOST_IDS:
                self._restarted[job_row.job] = (job_row.restarts, job_row.at[:2])
        elif job_row.restarts == 0 and job_row.state not in _NEVER_REQUEUED and len(self._interrupted) < _MOST_IDS:
            self._interrupted.add(job_row.job)

    def _identity(self, job_row: JobRow) -> str:
        cluster = job_row.cluster
        if not cluster or not _CLUSTER.fullmatch(cluster):
            return job_row.job
        if len(self._clusters) < _MOST_IDS:
            self._clusters.setdefault(cluster)
        if self.first_cluster == cluster:
            return job_row.job
        self._report.warn(CLUSTERS, *job_row.at[:2], cluster)
        return f"{cluster}:{job_row.job}"


def _reason_for_no_run(job_row: JobRow) -> tuple[str, str]:
    """Return why a row is of no run of a job, empty if it is of one, and the warning about it, empty without one."""
    is_waiting, has_end, elapsed_us = job_row.state in WAITING_STATES, job_row.has_end, job_row.elapsed_us
    has_no_nodes = job_row.nodes is not None and job_row.nodes.lower() in ABSENT_NODES
    has_open_end = job_row.end is None and job_row.state not in RUNNING_STATES
    if is_waiting and (job_row.start is None or has_no_nodes or (has_open_end and (has_end or not elapsed_us))):
        return "pending", ""
    if job_row.start is None:
        return ("nodes, but no start", NO_START) if job_row.nodes and not has_no_nodes else ("never started", "")
    if has_no_nodes:
        if job_row.start == job_row.end or (not has_end and elapsed_us == 0):
            return "never started", ""
        is_configuring = job_row.end is None and job_row.state == "CONFIGURING"
        return ("its nodes are not assigned yet", "") if is_configuring else ("ran, but without nodes", NO_NODES)
    # a running time of 0 without a known end has no meaning
    if has_open_end and not elapsed_us and (elapsed_us is None or has_end):
        return "finished, but no end", NO_END
    return "", ""
