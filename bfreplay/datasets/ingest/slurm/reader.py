"""SlurmReader: recognition of Slurm's outputs, reading of all of them, and ``sacct --json``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bfreplay.datasets.ingest.json_stream import records
from bfreplay.datasets.ingest.local_times import Candidates, RowPlace
from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.node_table import tres_counts
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.occupancy.submissions import Submission
from bfreplay.datasets.ingest.occupancy.units import Held
from bfreplay.datasets.ingest.reader import Export, ReadOptions, or_none
from bfreplay.datasets.ingest.slurm import node_states, sacct
from bfreplay.datasets.ingest.slurm.command_tables import find_header, header_of
from bfreplay.datasets.ingest.slurm.sacct_rows import NO_LISTS, JobRow, JobRows
from bfreplay.datasets.ingest.slurm.slurm_cells import HOW, RUNNING_STATES, is_known_state, job_state, short, whole
from bfreplay.datasets.ingest.slurm.slurm_times import OWN_FORMAT, RELATIVE, UNSET, SlurmClock, ZoneEvidence
from bfreplay.datasets.times import US
from bfreplay.documents import Json
from bfreplay.errors import InputError
from bfreplay.wording import count

JSON_COMMAND = "sacct -a -X -D -S 2024-01-01 -E now --json > jobs.json"
"""Command to run on the cluster."""

_NO_VALUES = frozenset({4294967294, 4294967295, 18446744073709551614, 18446744073709551615})
"""Plain numbers of old versions that mean no limit."""
_LARGEST = 10**12


class _UnreadableError(ValueError):
    """A needed member is invalid."""


def read_sacct_json(
    log_file: LogFile, record: ScheduleRecord, options: ReadOptions, rows: JobRows, evidence: ZoneEvidence
) -> None:
    """Read one ``sacct --json`` document (or several, one after the other) into ``rows``.

    Raises
    ------
    InputError
        Cut or invalid JSON.
    """
    record.add_format("slurm sacct --json")
    report = record.report
    clock = SlurmClock(log_file.name, options, evidence, JSON_COMMAND)
    for record_number, job_document in records(log_file, "jobs", JSON_COMMAND, are_several=True):
        report.read()
        job_id = job_document.get("job_id") if isinstance(job_document, dict) else None
        row_place = log_file.name, None, f"jobs[{record_number - 1}] job_id {job_id}"
        try:
            job_row = _row(job_document, row_place)
        except _UnreadableError as error:
            report.skip_with_warning(str(error), *row_place)
            continue
        evidence.counts["epoch"] += job_row.start is not None
        rows.add(job_row, clock)
    rows.finish_file(log_file)


def _row(job_document: Any, row_place: RowPlace) -> JobRow:
    if not isinstance(job_document, dict):
        raise _UnreadableError("a job that is not a JSON object")
    identity = _number(job_document.get("job_id"))
    if identity is None or identity <= 0:
        raise _UnreadableError("unreadable job_id")
    het = job_document.get("het")
    job_offset = _optional(het.get("job_offset")) if isinstance(het, dict) and _optional(het.get("job_id")) else None
    time_members = job_document.get("time")
    if not isinstance(time_members, dict):
        raise _UnreadableError("a job without times")
    nodes_text = job_document.get("nodes")
    if nodes_text is not None and not isinstance(nodes_text, str):
        raise _UnreadableError("unreadable nodes")
    cluster = job_document.get("cluster")
    return JobRow(
        str(identity) if job_offset is None else f"{identity}+{job_offset}",
        _state(job_document.get("state")),
        _time(time_members, "start"),
        _time(time_members, "end"),
        _span_us(time_members.get("elapsed"), US),
        _span_us(time_members.get("suspended"), US),
        _span_us(time_members.get("limit"), 60 * US),
        _optional(job_document.get("allocation_nodes")) or _wanted_nodes(job_document.get("tres")),
        nodes_text,
        cluster if isinstance(cluster, str) else None,
        _optional(job_document.get("restart_cnt")),
        _optional(time_members.get("submission")),
        row_place,
        submission=_submission(job_document, time_members),
    )


def _submission(job_document: dict[str, Any], time_members: dict[str, Json]) -> Submission:
    seconds = _optional(time_members.get("eligible" if "eligible" in time_members else "submission"))
    partition, qos = (job_document.get(member) for member in ("partition", "qos"))
    return Submission(
        seconds * US if seconds else None,
        partition if isinstance(partition, str) else "",
        qos if isinstance(qos, str) else "",
        _held(job_document.get("tres")),
    )


def _resources(tres: Any, which: str) -> list[dict[str, Any]]:
    """Return the resources with type, name and count that ``tres`` has as ``allocated`` or ``requested``."""
    resources = tres.get(which) if isinstance(tres, dict) else None
    return [part for part in resources if isinstance(part, dict)] if isinstance(resources, list) else []


def _wanted_nodes(tres: Any) -> int | None:
    """Return the number of nodes that a job asked for; ``None`` without one."""
    counts = (part.get("count") for part in _resources(tres, "requested") if part.get("type") == "node")
    return next(map(_optional, counts), None)


def _held(tres: Any) -> Held:
    """Return what a job holds, from ``tres.allocated``."""
    parts = _resources(tres, "allocated")
    texts = ("/".join(str(part[member]) for member in ("type", "name") if part.get(member)) for part in parts)
    return Held(*tres_counts(",".join(f"{text}={part.get('count')}" for text, part in zip(texts, parts, strict=True))))


def _span_us(member_value: Any, unit_us: int) -> int | None:
    n_units = _optional(member_value)
    return None if n_units is None else n_units * unit_us


def _time(time_members: dict[str, Json], member_name: str) -> Candidates | None:
    if member_name not in time_members:
        raise _UnreadableError(f"a job without time.{member_name}")
    seconds = _number(time_members[member_name])
    if seconds is None or seconds == 0:
        return None
    if seconds < 0:
        raise _UnreadableError(f"unreadable time.{member_name}")
    return (seconds * US,)


def _state(state_value: Any) -> str:
    """Return the most informative state: a running one, if any, else the first."""
    if isinstance(state_value, dict):
        state_value = state_value.get("current")
    words = [state_value] if isinstance(state_value, str) else state_value
    if not isinstance(words, list) or not words or not all(isinstance(state_word, str) for state_word in words):
        raise _UnreadableError("unreadable state")
    states = [job_state(state_word) for state_word in words]
    running = [state for state in states if state in RUNNING_STATES]
    valid_states = [state for state in states if is_known_state(state)]
    return (running or valid_states or states)[0]


def _number(member_value: Any) -> int | None:
    """Return a whole number, plain, as text or as ``{"set", "infinite", "number"}``; ``None`` if not set.

    Raises
    ------
    _UnreadableError
        Another form.
    """
    if isinstance(member_value, dict):
        if member_value.get("infinite") is True or member_value.get("set") is False:
            return None
        member_value = member_value.get("number")
    if isinstance(member_value, float) and abs(member_value) < _LARGEST and member_value.is_integer():
        member_value = int(member_value)
    if isinstance(member_value, str):
        member_value = whole(member_value)
    if isinstance(member_value, bool) or not isinstance(member_value, int):
        raise _UnreadableError("a number that cannot be read")
    if member_value in _NO_VALUES:
        return None
    if not -_LARGEST < member_value < _LARGEST:
        raise _UnreadableError("a number that cannot be read")
    return member_value


def _optional(member_value: Any) -> int | None:
    """Return an optional number; junk counts as missing."""
    number = or_none(_number, member_value)
    return number if number is not None and number >= 0 else None


_LEAST_SHARE = 0.9  # of samples among the first lines, to claim a file
_LEAST_SHARE_WHEN_ASKED = 0.5  # to read a file given as Slurm's
_JSON_MEMBERS = ('"job_id"', '"allocation_nodes"', '"time"', '"state"', '"association"', '"steps"', '"nodes"')
_QUEUE_MEMBERS = ('"job_state"', '"start_time"')


class SlurmReader:
    """Reader of Slurm's outputs about jobs and nodes."""

    name = "slurm"
    title = "Slurm: sacct -P, sacct --json, sacctmgr show event, sacctmgr show reservation, samples of sinfo"
    options = ("timezone", "dst_fold", "columns", "delimiter", "reservations", "unit")
    exports: Sequence[Export] = (
        Export(sacct.COMMAND, "who held which nodes when, one row a run of a job, in UTC"),
        Export(JSON_COMMAND, "the same as JSON (much larger)"),
        Export(node_states.EVENT_COMMAND, "when nodes were down or draining"),
        Export(node_states.RESERVATION_COMMAND, "when nodes were reserved, for maintenance among others"),
        Export(node_states.SAMPLES_COMMAND, "the state of every node once a minute, while it runs"),
    )

    def recognise(self, file: LogFile) -> str | None:
        """Return why ``file`` looks like Slurm's, ``None`` if it does not."""
        kind_and_evidence = _kind_of(file, ReadOptions())
        if kind_and_evidence is None:
            head_lines = file.head_lines()
            layout = header_of(head_lines[0], "|") if head_lines else None
            is_part = layout is not None and sacct.is_part_of_header(layout.names)
            return "line 1 has columns of sacct, though not all that are needed" if is_part else None
        if kind_and_evidence[0] == "events" and "," in file.head_lines()[0]:
            return None  # sacctmgr separates by |: commas mean another table
        return kind_and_evidence[1]

    def read(self, files: Sequence[LogFile], record: ScheduleRecord, options: ReadOptions) -> None:
        """Read ``files``, of any of Slurm's kinds, into ``record``.

        Raises
        ------
        InputError
            A file is not Slurm's, or cut; local times without a zone; or no usable row.
        """
        n_kept_before, read_before = sum(record.report.kept.values()), record.report.rows_read
        kinds: dict[str, list[LogFile]] = {"sacct": [], "json": [], "events": [], "sinfo": []}
        for log_file in files:
            kinds[_kind_or_error(log_file, options)].append(log_file)
        evidence = ZoneEvidence(record.report)
        job_rows = JobRows(record, options)
        for log_file in kinds["sacct"]:
            sacct.read_sacct(log_file, record, options, job_rows, evidence)
        for log_file in kinds["json"]:
            read_sacct_json(log_file, record, options, job_rows, evidence)
        job_files = kinds["sacct"] + kinds["json"]
        if job_files:
            job_rows.finish(job_files[0])
        events = node_states.NodeEvents(record, options, evidence)
        for log_file in kinds["events"]:
            events.read(log_file)
        events.finish()
        for name in ("delimiter", "columns") if not kinds["sacct"] and not kinds["events"] else ():
            record.report.note_no_effect(f"--{name}", "no file is a table", getattr(options, name) is not None)
        is_without_local = options.timezone is not None and not evidence.counts["local"]
        record.report.note_no_effect("--tz", "no time is local", is_without_local)
        if kinds["sinfo"]:
            node_states.read_sinfo(kinds["sinfo"], record, is_alone=not job_files)
        has_size = record.machine_size is not None or record.inventory_known or record.nodes
        if NO_LISTS in record.report.warnings and record.n_counted and not has_size:
            raise job_files[0].error(
                "the column NodeList is missing",
                expected="the names of each job's nodes",
                fix=f"export it too: {sacct.COMMAND}; if that cannot be, --nodes N, and a rule chooses the nodes",
            )
        if sentence := evidence.sentence():
            record.report.facts["time zone"] = sentence
            record.timezone = evidence.zone or "UTC"
        is_without_jobs = not job_files and not kinds["sinfo"]
        if files and (is_without_jobs or sum(record.report.kept.values()) == n_kept_before):
            raise _nothing_usable(files[0], record, record.report.rows_read - read_before, kinds)


def _kind_of(log_file: LogFile, options: ReadOptions) -> tuple[str, str] | None:
    """Return the kind of a file, and the evidence; ``None`` if not Slurm's."""
    head_bytes = log_file.head()
    if head_bytes.lstrip()[:1] in (b"{", b"["):
        return _json_kind(head_bytes.decode("utf-8", "replace"))
    if (layout := find_header(log_file, options.delimiter, sacct.is_header)) is not None:
        return "sacct", f"a header line of sacct: {_columns_text(layout.names)}"
    if (layout := find_header(log_file, options.delimiter, node_states.is_header)) is not None:
        table_kind = "reservation" if node_states.is_reservation_header(layout) else "event"
        return "events", f"a header line of sacctmgr show {table_kind}: {_columns_text(layout.names)}"
    if node_states.share_of_samples(log_file) >= _LEAST_SHARE:
        return "sinfo", "lines EPOCH|NODE|STATE with states of Slurm's nodes"
    if (row_layout := sacct.recognise_rows(log_file)) is not None:
        return "sacct", f"rows with the {len(row_layout[1].columns)} columns of {row_layout[1].command}"
    return None


def _json_kind(head_text: str) -> tuple[str, str] | None:
    if '"jobs"' not in head_text or any(member_name in head_text for member_name in _QUEUE_MEMBERS):
        return None
    member_names = [member_name for member_name in _JSON_MEMBERS if member_name in head_text]
    if '"job_id"' in member_names and '"time"' in member_names and len(member_names) >= 5:
        return "json", f"JSON with jobs that have {', '.join(member_names)}"
    return None


def _kind_or_error(log_file: LogFile, options: ReadOptions) -> str:
    kind_and_evidence = _kind_of(log_file, options)
    if kind_and_evidence is not None:
        return kind_and_evidence[0]
    head_lines = log_file.first_rows()
    if not head_lines:
        raise log_file.error("the file has no lines", expected="a log of Slurm", fix=f"on the cluster: {sacct.COMMAND}")
    first_text = head_lines[0]
    if first_text.lstrip()[:1] in ("{", "["):
        if b'"jobs"' in log_file.head():
            return "json"  # an empty or cut list of jobs: reading it tells which
        raise log_file.error(
            "this JSON has no jobs", expected="the output of sacct --json", fix=f"on the cluster: {JSON_COMMAND}"
        )
    if node_states.share_of_samples(log_file) >= _LEAST_SHARE_WHEN_ASKED:
        return "sinfo"
    _refuse_other_columns(log_file, options, first_text)
    sacct.layout_of(log_file, options)  # raises if the columns cannot be found
    return "sacct"


def _refuse_other_columns(log_file: LogFile, options: ReadOptions, first_text: str) -> None:
    """Raise ``InputError`` if the first line is the header of some other table."""
    layout = header_of(first_text, options.delimiter)
    names = () if layout is None else layout.names
    if options.columns is None and names and all(name.replace("_", "").replace(" ", "").isalpha() for name in names):
        if sacct.is_part_of_header(names):
            raise sacct.refuse_missing(sacct.missing_columns(names), names, log_file)
        raise log_file.wrong_start(
            f"these are not columns of sacct: {_columns_text(names)}",
            value=short(first_text),
            expected=sacct.EXPECTED,
            fix=f"a table with names of its own is read by `bfreplay ingest table`; else {HOW}",
        )


def _nothing_usable(
    log_file: LogFile, record: ScheduleRecord, n_rows: int, kinds: dict[str, list[LogFile]]
) -> InputError:
    commands = (sacct.COMMAND, JSON_COMMAND, node_states.EVENT_COMMAND, node_states.SAMPLES_COMMAND)
    if not kinds["sacct"] and not kinds["json"] and not kinds["sinfo"]:
        return log_file.error(
            f"the files have no jobs, only {count(n_rows, 'row')} of node events or reservations",
            expected="jobs too: outages alone do not show idle nodes",
            fix=f"give the jobs beside it, from this on your cluster: {sacct.COMMAND}",
        )
    command = next(command for command, files in zip(commands, kinds.values(), strict=True) if files)
    fix_text = f"check the period and the columns; run this on your cluster: {command}"
    if any(skip_reason in (RELATIVE, OWN_FORMAT) for skip_reason in record.report.skipped):
        fix_text = f"{UNSET}: unset SLURM_TIME_FORMAT; {command}"
    if n_rows == 0:
        return log_file.error("the log has no rows", expected="at least one row that holds nodes", fix=fix_text)
    reasons, example = record.report.largest_skips()
    return InputError(
        f"no row of this log can be used ({reasons})",
        file=example.file if example is not None and example.file else log_file.name,
        row=example.row if example else None,
        value="" if example is None else short(example.value),
        expected="rows of jobs that ran, with their nodes and times",
        fix=fix_text,
    )


def _columns_text(column_names: Sequence[str]) -> str:
    first_names = ", ".join(column_names[:12])
    return first_names if len(column_names) <= 12 else f"{first_names}, ... ({len(column_names)} columns)"
