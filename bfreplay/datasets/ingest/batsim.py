"""BatsimReader: output of the Batsim simulator, and its workload."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from bfreplay.datasets.ingest.delimited import split
from bfreplay.datasets.ingest.hostlists import MOST_NODES, numbers_in
from bfreplay.datasets.ingest.json_stream import top_level_number
from bfreplay.datasets.ingest.local_times import RowPlace
from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.reader import Export, ReadOptions, or_none
from bfreplay.datasets.times import FIRST_TIME_US, HOUR_US, LAST_TIME_US, seconds_to_us
from bfreplay.errors import InputError

SWITCHED_OFF = (
    "machines slept or were switched on or off during the simulation; the output does not name them, so they look idle"
)
CONTRADICTING = "start, end, running, waiting and turnaround time of a job do not match: its start and end are used"
OTHER_COUNT = "a job got another number of resources than requested: the allocated resources are used"
MACHINES_CHANGE = "the number of machines in out_machine_states.csv changes"
OTHER_NODE_TIME = "the node time of the jobs differs from time_computing in out_schedule.csv"

JOBS, STATES, SCHEDULE, WORKLOAD = "out_jobs.csv", "out_machine_states.csv", "out_schedule.csv", "workload JSON"
EXPORTS = (
    Export(
        "batsim -p PLATFORM.xml -w WORKLOAD.json -e out ...",
        "out_jobs.csv (nodes and times of jobs), out_machine_states.csv, out_schedule.csv; give WORKLOAD.json too: its "
        "nb_res is the number of machines",
    ),
)

_JOB_COLUMNS = frozenset({"job_id", "starting_time", "finish_time", "allocated_resources"})
_STATE_COLUMNS = ("nb_sleeping", "nb_switching_on", "nb_switching_off", "nb_idle", "nb_computing")
_SCHEDULE_COLUMNS = frozenset({"makespan", "nb_jobs", "time_computing"})
_SECONDS = re.compile(r"-?\d{1,12}(?:\.\d{0,18})?(?:[eE][+-]?\d{1,2})?", re.ASCII)
_WHOLE = re.compile(r"\d{1,9}", re.ASCII)
_TIME_ZONE = "seconds from the start of the simulation, put at 1970-01-01: no zone is needed"
_NOT_STARTED = ("", "-1")
_NODE_TIME_SLACK = 1e-6
_SLACK_US = 10  # Batsim rounds each time to six decimals
_SUMS = (  # columns: the first is the second plus the third
    ("finish_time", "starting_time", "execution_time"),
    ("starting_time", "submission_time", "waiting_time"),
    ("finish_time", "submission_time", "turnaround_time"),
)


class BatsimReader:
    """Reader of Batsim's output: times in seconds from the start of the simulation, resources by number.

    Resource 7 is the node ``0007``. The number of machines is ``nb_res`` of the workload, else the sum of the counts of
    ``out_machine_states.csv``, else the machines used by jobs. One simulation at a time.
    """

    name = "batsim"
    title = "Batsim: out_jobs.csv, with out_machine_states.csv, out_schedule.csv and the workload JSON if at hand"
    options = ()
    exports: Sequence[Export] = EXPORTS

    def recognise(self, file: LogFile) -> str | None:
        """Recognise the columns of the first line, or the keys of a workload; see ``LogReader``."""
        kind = _kind(file)
        return None if kind is None else f"it has the format of Batsim's {kind}"

    def read(self, files: Sequence[LogFile], record: ScheduleRecord, options: ReadOptions) -> None:
        """Read one simulation; see ``LogReader``.

        Raises
        ------
        InputError
            Not exactly one ``out_jobs.csv``, another file, or no usable job.
        """
        by_kind: dict[str, list[LogFile]] = {JOBS: [], STATES: [], SCHEDULE: [], WORKLOAD: []}
        for log_file in files:
            kind = _kind(log_file)
            if kind is None:
                raise log_file.wrong_start(
                    "this is not a file of Batsim",
                    expected=f"{JOBS} (columns {', '.join(sorted(_JOB_COLUMNS))} and others), {STATES}, {SCHEDULE} or "
                    "the workload",
                    fix=f"Batsim writes them: {EXPORTS[0].command}",
                )
            by_kind[kind].append(log_file)
        for kind, of_kind in by_kind.items():
            if len(of_kind) > 1 or (kind == JOBS and not of_kind):
                raise InputError(
                    f"there is more than one {kind}" if of_kind else f"there is no {JOBS}",
                    file=of_kind[1].name if of_kind else files[0].name,
                    expected=f"the files of one simulation, with {JOBS}",
                    fix="give one simulation at a time"
                    if of_kind
                    else f"add it; Batsim writes it: {EXPORTS[0].command}",
                )
        record.time_origin = "relative"
        record.outages_known = True  # no outages: a simulated machine without jobs is idle
        record.add_format("batsim")
        record.report.facts["time zone"] = _TIME_ZONE
        n_machines = _read_workload(by_kind[WORKLOAD], record)
        n_without_nodes = _read_states(by_kind[STATES], record)
        sizes = (options.n_nodes, n_machines, n_without_nodes)
        n_machines = next((n_nodes for n_nodes in sizes if n_nodes is not None), None)
        if n_machines is not None:
            record.add_inventory(_name(machine_index) for machine_index in range(n_machines))
            record.set_machine_size(n_machines)
        node_time_us = _read_jobs(by_kind[JOBS][0], n_machines, record)
        if record.jobs.n_rows:
            record.covers(0, record.last_stamp_us, "all of the simulation: from its start to the end of its last job")
        _check_schedule(by_kind[SCHEDULE], node_time_us, record)


def resources(line_text: str) -> tuple[int, ...]:
    """Return the numbers in a set of intervals, ``0-3 7``, each once; empty for an empty text.

    Raises
    ------
    ValueError
        Not such a set, or more than a million numbers.
    """
    return tuple(dict.fromkeys(numbers_in(line_text.split())))


@lru_cache(maxsize=65_536)
def _nodes(line_text: str) -> tuple[tuple[str, ...], int]:
    """Return the names of the nodes of a set, and its largest number."""
    machine_numbers = resources(line_text)
    return tuple(map(_name, machine_numbers)), max(machine_numbers, default=-1)


def _name(machine_number: int) -> str:
    return f"{machine_number:04d}"


def _kind(log_file: LogFile) -> str | None:
    head_bytes = log_file.head().lstrip()
    if head_bytes.startswith(b"{"):
        is_workload = b'"jobs"' in head_bytes and b'"subtime"' in head_bytes and b'"profile"' in head_bytes
        return WORKLOAD if is_workload or (b'"nb_res"' in head_bytes and b'"profiles"' in head_bytes) else None
    head_lines = log_file.head_lines()
    column_names = set(head_lines[0].removeprefix("\ufeff").split(",")) if head_lines else set()
    if column_names >= _JOB_COLUMNS:
        return JOBS
    if column_names >= {"time", *_STATE_COLUMNS}:
        return STATES
    return SCHEDULE if column_names >= _SCHEDULE_COLUMNS else None


def _rows(log_file: LogFile, record: ScheduleRecord) -> Iterator[tuple[RowPlace, dict[str, str]]]:
    """Yield place and fields by column of each row with as many fields as the first line; skip others.

    A row is one line: an open quote spoils its row, not the rest of the file.
    """
    lines = log_file.lines()
    _, header_text = next(lines)
    column_names = header_text.removeprefix("\ufeff").split(",")
    for line_number, line_text in lines:
        if not line_text.strip():
            continue
        record.report.read()
        try:
            cell_texts = split(line_text, ",")
        except csv.Error:
            cell_texts = []
        if len(cell_texts) == len(column_names):
            yield (log_file.name, line_number, line_text), dict(zip(column_names, cell_texts, strict=True))
        else:
            record.report.skip_with_warning("not as many fields as columns", log_file.name, line_number, line_text)


def _seconds_us(line_text: str) -> int | None:
    """Return microseconds; ``None`` unless a number in the range of the calendar."""
    time_us = or_none(seconds_to_us, line_text, exact=False) if _SECONDS.fullmatch(line_text) else None
    return time_us if time_us is not None and FIRST_TIME_US < time_us < LAST_TIME_US else None


def _read_workload(log_files: Sequence[LogFile], record: ScheduleRecord) -> int | None:
    if not log_files:
        return None
    n_machines = top_level_number(log_files[0], "nb_res", EXPORTS[0].command)
    if n_machines is not None and not 0 < n_machines <= MOST_NODES:
        raise log_files[0].error(
            "nb_res is out of range",
            column="nb_res",
            value=n_machines,
            expected=f"1 to {MOST_NODES:,} machines",
            fix="correct the workload, or omit it",
        )
    record.report.facts["workload"] = f"read for the number of machines only: nb_res {n_machines}"
    return n_machines


def _read_states(log_files: Sequence[LogFile], record: ScheduleRecord) -> int | None:
    """Return the number of machines by the counts of states, if they agree."""
    totals: set[int] = set()
    for log_file in log_files:
        since: tuple[int, int, RowPlace] | None = None  # time, machines that are off, and place of the row before
        for row_place, csv_row in _rows(log_file, record):
            counts = [csv_row[state_column] for state_column in _STATE_COLUMNS]
            if not all(map(_WHOLE.fullmatch, counts)):
                record.report.skip_with_warning("a count of machines is not a number", *row_place)
                continue
            record.report.skip("machine states: counts without names", *row_place)
            totals.add(sum(map(int, counts)))
            time_us, n_off = _seconds_us(csv_row["time"]), sum(map(int, counts[:3]))
            if since is not None and since[1] and time_us is not None:
                off_node_hours = since[1] * max(time_us - since[0], 0) / HOUR_US
                record.report.warn(SWITCHED_OFF, *since[2], node_hours=off_node_hours)
            since = None if time_us is None else (time_us, n_off, row_place)
        if since is not None and since[1]:
            record.report.read(0)
            record.report.warn(SWITCHED_OFF, *since[2])
            record.report.set_row_amount(since[1], since[0], None)
        record.report.facts["machine states"] = f"read for the number of machines only: {sorted(totals)}"
        if len(totals) > 1:
            why_no_amount = "which machines were there is not known"
            record.report.warn(MACHINES_CHANGE, log_file.name, None, sorted(totals), why_no_amount=why_no_amount)
    n_machines = max(totals, default=0)
    return n_machines if 0 < n_machines <= MOST_NODES else None


def _read_jobs(log_file: LogFile, n_machines: int | None, record: ScheduleRecord) -> int:
    """Return the node time of all jobs that ended, in microseconds."""
    node_time_us = 0
    for row_place, csv_row in _rows(log_file, record):
        start_text, end_text = csv_row["starting_time"], csv_row["finish_time"]
        start_time, end_time = _seconds_us(start_text), _seconds_us(end_text)
        if start_text in _NOT_STARTED or (start_time is not None and start_time < 0):
            record.report.skip("never started", *row_place)
            continue
        is_running = end_text in _NOT_STARTED or (end_time is not None and end_time < 0)
        try:
            machine_names, largest = _nodes(csv_row["allocated_resources"])
        except ValueError:
            record.report.skip_with_warning("the allocated resources cannot be read", *row_place)
            continue
        if start_time is None or (end_time is None and not is_running):
            record.report.skip_with_warning("a time is not a number", *row_place)
        elif not csv_row["job_id"]:
            record.report.skip_with_warning("no job_id", *row_place)
        elif not machine_names:
            # rejected jobs have no time; a job with a time had resources
            if is_running or end_time == start_time:
                record.report.skip("no resources", *row_place)
            else:
                record.report.skip_with_warning("no resources for a job that ran", *row_place)
        elif n_machines is not None and largest >= n_machines:
            record.report.skip_with_warning("a resource that the machine does not have", *row_place)
        else:
            job_identity = f"{csv_row.get('workload_name', '')}!{csv_row['job_id']}"
            limit_us = _seconds_us(csv_row.get("requested_time", ""))
            limit_end = start_time + limit_us if limit_us is not None and limit_us > 0 else None
            job_nodes = record.node_ids(machine_names)
            _check_row(csv_row, len(machine_names), row_place, record)
            end_us = None if is_running else end_time
            record.add_job(job_identity, start_time, end_us, job_nodes, None, limit_end, *row_place[:2])
            node_time_us += 0 if end_us is None else max(0, end_us - start_time) * len(machine_names)
    if not record.jobs.n_rows:
        raise log_file.error(
            "no job of this simulation can be used",
            value=record.report.counted_skips() or "no rows",
            expected="jobs that started, with their allocated_resources",
            fix=f"check the simulation, and run it again: {EXPORTS[0].command}",
        )
    return node_time_us


def _check_row(csv_row: dict[str, str], n_nodes: int, row_place: RowPlace, record: ScheduleRecord) -> None:
    """Warn of a row that contradicts itself; Batsim writes its times in several ways."""
    times = {column: _seconds_us(csv_row[column]) for columns in _SUMS for column in columns if column in csv_row}
    for columns in _SUMS:
        if all(column in csv_row for column in columns):
            total_us, first, second = (times[column] for column in columns)
            if total_us is None or first is None or second is None or abs(total_us - first - second) > _SLACK_US:
                record.report.warn(CONTRADICTING, *row_place)
                break
    request = csv_row.get("requested_number_of_resources")
    if request is not None and not (_WHOLE.fullmatch(request) and int(request) == n_nodes):
        record.report.warn(OTHER_COUNT, *row_place)


def _check_schedule(log_files: Sequence[LogFile], node_time_us: int, record: ScheduleRecord) -> None:
    """Compare with Batsim's own summary."""
    for log_file in log_files:
        for row_place, csv_row in _rows(log_file, record):
            record.report.skip("summary of the schedule", *row_place)
            computing = _seconds_us(csv_row["time_computing"])
            if computing is None:
                continue
            times_s = {"out_jobs.csv": node_time_us / 1e6, "out_schedule.csv": computing / 1e6}
            record.report.facts["node time of jobs (s)"] = times_s
            if abs(computing - node_time_us) > _NODE_TIME_SLACK * max(computing, node_time_us):
                times_text = f"{node_time_us / 1e6:,.3f} s, time_computing {computing / 1e6:,.3f} s"
                node_hours = abs(computing - node_time_us) / HOUR_US
                record.report.warn(OTHER_NODE_TIME, *row_place[:2], times_text, node_hours=node_hours)
