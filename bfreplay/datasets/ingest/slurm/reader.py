"""SlurmReader: recognition of Slurm's outputs, and reading of all of them."""

from __future__ import annotations

from collections.abc import Sequence

from bfreplay.datasets.ingest.delimited import find_header, header_of
from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.reader import Export, ReadOptions
from bfreplay.datasets.ingest.slurm import node_events, sacct, sacct_json, sinfo
from bfreplay.datasets.ingest.slurm.cells import HOW, short
from bfreplay.datasets.ingest.slurm.clock import OWN_FORMAT, RELATIVE, UNSET, ZoneEvidence
from bfreplay.datasets.ingest.slurm.job_rows import NO_LISTS, JobRows
from bfreplay.errors import InputError
from bfreplay.wording import count

_LEAST_SHARE = 0.9  # of samples among the first lines, to claim a file
_LEAST_SHARE_WHEN_ASKED = 0.5  # to read a file given as Slurm's
_JSON_MEMBERS = ('"job_id"', '"allocation_nodes"', '"time"', '"state"', '"association"', '"steps"', '"nodes"')
_QUEUE_MEMBERS = ('"job_state"', '"start_time"')
_SHOWN_REASONS = 3


class SlurmReader:
    """Reader of Slurm's outputs about jobs and nodes."""

    name = "slurm"
    title = "Slurm: sacct -P, sacct --json, sacctmgr show event, sacctmgr show reservation, samples of sinfo"
    options = ("timezone", "dst_fold", "columns", "delimiter", "reservations")
    exports: Sequence[Export] = (
        Export(sacct.COMMAND, "who held which nodes when, one row a run of a job, in UTC"),
        Export(sacct_json.COMMAND, "the same as JSON (much larger)"),
        Export(node_events.EVENT_COMMAND, "when nodes were down or draining"),
        Export(node_events.RESERVATION_COMMAND, "when nodes were reserved, for maintenance among others"),
        Export(sinfo.COMMAND, "the state of every node once a minute, while it runs"),
    )

    def recognise(self, file: LogFile) -> str | None:
        """Return why ``file`` looks like Slurm's, ``None`` if it does not."""
        kind = _kind_of(file, ReadOptions())
        if kind is None:
            lines = file.head_lines()
            layout = header_of(lines[0], "|") if lines else None
            is_part = layout is not None and sacct.is_part_of_header(layout.names)
            return "line 1 has columns of sacct, though not all that are needed" if is_part else None
        if kind[0] == "events" and "," in file.head_lines()[0]:
            return None  # sacctmgr separates by |: commas mean another table
        return kind[1]

    def read(self, files: Sequence[LogFile], record: ScheduleRecord, options: ReadOptions) -> None:
        """Read ``files``, of any of Slurm's kinds, into ``record``.

        Raises
        ------
        InputError
            A file is not Slurm's, or cut; local times without a zone; or no usable row.
        """
        kept_before, read_before = sum(record.report.kept.values()), record.report.rows_read
        kinds: dict[str, list[LogFile]] = {"sacct": [], "json": [], "events": [], "sinfo": []}
        for file in files:
            kinds[_kind_or_error(file, options)].append(file)
        evidence = ZoneEvidence(record.report)
        rows = JobRows(record, options)
        for file in kinds["sacct"]:
            sacct.read_sacct(file, record, options, rows, evidence)
        for file in kinds["json"]:
            sacct_json.read_sacct_json(file, record, options, rows, evidence)
        job_files = kinds["sacct"] + kinds["json"]
        if job_files:
            rows.finish(job_files[0])
        events = node_events.NodeEvents(record, options, evidence)
        for file in kinds["events"]:
            events.read(file)
        events.finish()
        if not kinds["sacct"] and not kinds["events"]:
            for flag in (f"--{name}" for name in ("delimiter", "columns") if getattr(options, name) is not None):
                record.report.facts[flag] = "has no effect: no file is a table"
        if options.timezone is not None and not evidence.counts["local"]:
            record.report.facts["--tz"] = "has no effect: no time is local"
        if kinds["sinfo"]:
            sinfo.read_sinfo(kinds["sinfo"], record, is_alone=not job_files)
        is_sized = record.machine_size is not None or record.inventory_known or record.nodes
        if NO_LISTS in record.report.warnings and record.n_counted and not is_sized:
            raise job_files[0].error(
                "the column NodeList is missing",
                expected="the names of each job's nodes",
                fix=f"export it too: {sacct.COMMAND}; if that cannot be, --nodes N, and a rule chooses the nodes",
            )
        if sentence := evidence.sentence():
            record.report.facts["time zone"] = sentence
            record.timezone = evidence.zone or "UTC"
        is_without_jobs = not job_files and not kinds["sinfo"]
        if files and (is_without_jobs or sum(record.report.kept.values()) == kept_before):
            raise _nothing_usable(files[0], record, record.report.rows_read - read_before, kinds)


def _kind_of(file: LogFile, options: ReadOptions) -> tuple[str, str] | None:
    """Return the kind of a file, and the evidence; ``None`` if not Slurm's."""
    head = file.head()
    if head.lstrip()[:1] in (b"{", b"["):
        return _json_kind(head.decode("utf-8", "replace"))
    if (layout := find_header(file, options.delimiter, sacct.is_header)) is not None:
        return "sacct", f"a header line of sacct: {_columns_text(layout.names)}"
    if (layout := find_header(file, options.delimiter, node_events.is_header)) is not None:
        what = "reservation" if node_events.is_reservation_header(layout) else "event"
        return "events", f"a header line of sacctmgr show {what}: {_columns_text(layout.names)}"
    if sinfo.share_of_samples(file) >= _LEAST_SHARE:
        return "sinfo", "lines EPOCH|NODE|STATE with states of Slurm's nodes"
    if (known := sacct.known_rows(file)) is not None:
        return "sacct", f"rows with the {len(known[1].columns)} columns of {known[1].command}"
    return None


def _json_kind(head: str) -> tuple[str, str] | None:
    if '"jobs"' not in head or any(member in head for member in _QUEUE_MEMBERS):
        return None
    found = [member for member in _JSON_MEMBERS if member in head]
    if '"job_id"' in found and '"time"' in found and len(found) >= 5:
        return "json", f"JSON with jobs that have {', '.join(found)}"
    return None


def _kind_or_error(file: LogFile, options: ReadOptions) -> str:
    kind = _kind_of(file, options)
    if kind is not None:
        return kind[0]
    lines = [line for line in file.head_lines() if line.strip()]
    if not lines:
        raise file.error("the file has no lines", expected="a log of Slurm", fix=f"on the cluster: {sacct.COMMAND}")
    first = lines[0]
    if first.lstrip()[:1] in ("{", "["):
        if b'"jobs"' in file.head():
            return "json"  # an empty or cut list of jobs: reading it tells which
        raise file.error(
            "this JSON has no jobs", expected="the output of sacct --json", fix=f"on the cluster: {sacct_json.COMMAND}"
        )
    if sinfo.share_of_samples(file) >= _LEAST_SHARE_WHEN_ASKED:
        return "sinfo"
    _refuse_other_columns(file, options, first)
    sacct.layout_of(file, options)  # raises if the columns cannot be found
    return "sacct"


def _refuse_other_columns(file: LogFile, options: ReadOptions, first: str) -> None:
    """Raise ``InputError`` if the first line is the header of some other table."""
    layout = header_of(first, options.delimiter)
    names = () if layout is None else layout.names
    if options.columns is None and names and all(name.replace("_", "").replace(" ", "").isalpha() for name in names):
        if sacct.is_part_of_header(names):
            raise sacct.refuse_missing(sacct.missing_columns(names), names, file)
        raise file.wrong_start(
            f"these are not columns of sacct: {_columns_text(names)}",
            value=short(first),
            expected=sacct.EXPECTED,
            fix=f"a table with names of its own is read by `bfreplay ingest table`; else {HOW}",
        )


def _nothing_usable(file: LogFile, record: ScheduleRecord, n_rows: int, kinds: dict[str, list[LogFile]]) -> InputError:
    commands = {
        "sacct": sacct.COMMAND,
        "json": sacct_json.COMMAND,
        "events": node_events.EVENT_COMMAND,
        "sinfo": sinfo.COMMAND,
    }
    if not kinds["sacct"] and not kinds["json"] and not kinds["sinfo"]:
        return file.error(
            f"the files have no jobs, only {count(n_rows, 'row')} of node events or reservations",
            expected="jobs too: outages alone do not show idle nodes",
            fix=f"give the jobs beside it, from this on your cluster: {sacct.COMMAND}",
        )
    command = next(text for kind, text in commands.items() if kinds[kind])
    fix = f"check the period and the columns; run this on your cluster: {command}"
    if any(reason in (RELATIVE, OWN_FORMAT) for reason in record.report.skipped):
        fix = f"{UNSET}: unset SLURM_TIME_FORMAT; {command}"
    if n_rows == 0:
        return file.error("the log has no rows", expected="at least one row that holds nodes", fix=fix)
    largest = sorted(record.report.skipped.items(), key=lambda item: -item[1].count)[:_SHOWN_REASONS]
    example = next((tally.examples[0] for _, tally in largest if tally.examples), None)
    found = "; ".join(f"{reason}: {tally.count:,}" for reason, tally in largest)
    return InputError(
        f"no row of this log can be used ({found})",
        file=example.file if example is not None and example.file else file.name,
        row=example.row if example else None,
        value="" if example is None else short(example.value),
        expected="rows of jobs that ran, with their nodes and times",
        fix=fix,
    )


def _columns_text(names: Sequence[str]) -> str:
    shown = ", ".join(names[:12])
    return shown if len(names) <= 12 else f"{shown}, ... ({len(names)} columns)"
