"""GridEngineReader: accounting of Grid Engine (SGE and its successors, Univa, Altair, Gridware), as text and JSON."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import islice
from typing import Annotated, NamedTuple

import msgspec

from bfreplay.datasets.ingest.delimited import Place
from bfreplay.datasets.ingest.hostlists import each_a_name
from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.schedule import NodeLists, ScheduleRecord
from bfreplay.datasets.ingest.occupancy.submissions import Submission
from bfreplay.datasets.ingest.reader import Export, ReadOptions, or_none
from bfreplay.datasets.times import HOUR_US, US

EXPORT = '(cd "$SGE_ROOT/$SGE_CELL/common" && tar czf - accounting*) > accounting.tar.gz'
_EXPECTED = (
    "records qname:hostname:group:owner:job_name:job_number:account:..., or one JSON object a line with these keys"
)
_LOOKED_AT = 100

_NUMBER = r"-?(?:\d+(?:\.\d*)?(?:e[+\-]?\d+)?|nan|inf)"
# priority, three times, failed, exit_status, 18 of usage, project, department, PE, slots, task, 3 of usage, the rest
_BLOCK = re.compile(
    rf"(?=:-?\d+:(\d{{1,17}}):(\d{{1,17}}):(\d{{1,17}}):-?\d+:-?\d+:({_NUMBER})(?::{_NUMBER}){{17}}"
    rf":[^:]*:[^:]*:[^:]*:(\d{{1,10}}):(\d{{1,9}})(?::{_NUMBER}){{3}}:(.*))",
    re.ASCII | re.IGNORECASE,
)
# iow, pe_taskid, maxvmem, and since SGE 6.2 arid, ar_submission_time and whatever Univa adds
_AFTER_CATEGORY = re.compile(
    rf":{_NUMBER}:(?:none|(\d+\.(?![\d.]+:)[^:]+)|)(?=:{_NUMBER}(?::\d+:\d+(?::|\Z)|\Z))", re.ASCII | re.IGNORECASE
)
_JOB_NUMBER = re.compile(r"[1-9]\d{0,9}", re.ASCII)
_REPORTING = re.compile(r"\d{9,17}:[a-z_]+:", re.ASCII)

_MS_FROM, _US_FROM = 10**11, 10**14  # of times: as seconds the year 5138, as milliseconds the same
_CLOCKS_US = 300 * US  # by which the clocks of hosts may differ
_ROUNDING_US = 2 * US
MOST_HELD = 50_000
"""Lines of parallel jobs that are remembered until the others of their job are read."""

FURTHER = "further line of a parallel job, whose host is held with it"
_NOT_ACCOUNTING = "record of the reporting file"
_ONE_HOST_WARNING = (
    "jobs with several slots and one host in the log: further hosts of theirs are unknown and look idle; "
    "--procs-per-node N (slots of a node) says how many they had"
)
_ALONE_WARNING = "lines of parallel tasks without the line of their job: their hosts are held while one of them runs"
_NO_END_WARNING = "jobs with a start and no end were skipped: their nodes look idle"
_EARLY_WARNING = "jobs start before they were submitted: one of the times is wrong"
_ELAPSED_WARNING = "the running time in the log is not the end minus the start; start and end are used"
_RUNNING = "accounting has finished jobs only: hosts look idle where jobs were still running when it was copied"
_OUTAGES = "not in accounting: hosts that were down look idle; give them with --outages FILE (node, start, end, state)"


class Line(NamedTuple):
    """Accounting record; ``task`` is empty but for a task of a parallel job on one of its hosts."""

    job: str
    queue: str
    host: str
    task: str
    slots: int
    place: Place
    elapsed_s: float = 0.0
    submit_us: int = 0
    start_us: int = 0
    end_us: int = 0


_Number = Annotated[int, msgspec.Meta(ge=0, lt=10**17)]


class _JsonLine(msgspec.Struct):
    job_number: Annotated[int, msgspec.Meta(ge=1, lt=10**10)]
    qname: str
    hostname: str
    start_time: _Number
    end_time: _Number
    task_number: _Number = 0
    submission_time: _Number = 0
    slots: Annotated[int, msgspec.Meta(ge=0, lt=10**9)] = 1
    pe_taskid: str | None = None
    pe_task_id: str | None = None  # as the manual spells it
    type: str = ""


_JSON_LINES = msgspec.json.Decoder(_JsonLine)


def line_of(line_text: str, place: Place) -> Line | None:
    """Read a record; ``None`` for one of the reporting file.

    Raises
    ------
    ValueError
        It is no record, is cut, contradicts itself, or colons inside its names leave several ways to read it.
    """
    if line_text.startswith("{"):
        return _json_line(line_text, place)
    if _REPORTING.match(line_text):
        return None
    blocks = list(islice(_BLOCK.finditer(line_text), 2))
    if len(blocks) != 1:
        raise ValueError("colons leave several ways to read it" if blocks else "it lacks the numbers of a record")
    submit, start, end, elapsed, slots, task_number, after = blocks[0].groups()
    fields = line_text[: blocks[0].start()].split(":")
    tasks = {match[1] or "" for match in _AFTER_CATEGORY.finditer(after)}
    if len(tasks) != 1:
        raise ValueError("colons leave several ways to read it" if tasks else "it is cut behind its category")
    numbers = list(filter(_JOB_NUMBER.fullmatch, fields[5:-1]))  # a job name and an account may have colons
    if not numbers:
        raise ValueError("it has no job number")
    job = numbers[0] if len(numbers) == 1 else ":".join(fields[4:])  # which is as unique as the number in it
    line = Line(job, fields[0], fields[1], tasks.pop(), int(slots), place, float(elapsed))
    return _completed(line, int(task_number), (int(submit), int(start), int(end)))


def _json_line(line_text: str, place: Place) -> Line | None:
    try:
        record = _JSON_LINES.decode(line_text.encode("utf-8", "surrogateescape"))
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    if record.type:
        return None
    task = (record.pe_taskid or record.pe_task_id or "").replace("NONE", "")
    line = Line(str(record.job_number), record.qname, record.hostname, task, record.slots, place)
    return _completed(line, record.task_number, (record.submission_time, record.start_time, record.end_time))


def _completed(line: Line, task_number: int, times: Sequence[int]) -> Line:
    """Return the line with its times; their size tells seconds, milliseconds (Univa) and microseconds (JSON)."""
    units = [US if time < _MS_FROM else 1_000 if time < _US_FROM else 1 for time in times]
    submit_us, start_us, end_us = (time * unit for time, unit in zip(times, units, strict=True))
    if start_us and end_us:
        if end_us < start_us or units[1] != units[2]:
            raise ValueError("the job ends before it starts, or these times have two units")
        each_a_name((line.host,), "host")
    job = f"{line.job}.{task_number}" if task_number else line.job
    return line._replace(job=job, submit_us=submit_us, start_us=start_us, end_us=end_us)


class GridEngineReader:
    """Reader of Grid Engine's accounting files, in any order.

    Lines of one parallel job are joined: the job holds the hosts of all of them, for the time of its own line. What
    waits for other lines is bounded by ``MOST_HELD``.
    """

    name = "grid-engine"
    title = "Grid Engine (SGE, Son of Grid Engine, Univa, Altair, Gridware): accounting, accounting.jsonl"
    options = ("procs_per_node",)
    exports: Sequence[Export] = (
        Export(EXPORT, "all accounting files, rotated ones too: finished jobs with their hosts"),
        Export("qconf -sel > nodes.txt", "the names of all execution hosts, for --inventory nodes.txt"),
    )

    def recognise(self, file: LogFile) -> str | None:
        """Return why ``file`` looks like Grid Engine's accounting, ``None`` if it does not."""
        n_lines, n_records = _count_records(file)
        if not n_records or 2 * n_records < n_lines:
            return None
        return f"{n_records} of the first {n_lines} lines are accounting records of Grid Engine: qname, hostname, ..."

    def read(self, files: Sequence[LogFile], record: ScheduleRecord, options: ReadOptions) -> None:
        """Read accounting files into ``record``.

        Raises
        ------
        InputError
            A file is something else, or there is no finished job with a host.
        """
        fix = f"run this on your cluster: {EXPORT}"
        for log_file in files:
            if not _count_records(log_file)[1]:
                value = next(iter(log_file.first_rows()), "")[:120]
                problem, fix = "this is not Grid Engine's accounting", f"omit this file, or {fix}"
                raise log_file.wrong_start(problem, value=value, expected=_EXPECTED, fix=fix)
        report = record.report
        runs = _Runs(record, options.procs_per_node)
        n_before = report.kept.get("job intervals", 0)
        for log_file in files:
            for line_number, line_text in log_file.lines():
                if not _is_comment(line_text):
                    runs.read(line_text, (log_file.name, line_number))
        runs.finish()
        if report.kept.get("job intervals", 0) == n_before:
            raise report.no_runs("comments only", file=files[0].name, expected=_EXPECTED, fix=fix)
        record.add_format("grid engine accounting")
        report.facts.update({"time zone": "epoch times: no zone needed", "outages": _OUTAGES, "running jobs": _RUNNING})
        is_unused = options.procs_per_node is not None and not runs.are_parallel
        report.note_no_effect("--procs-per-node", "no job has several slots", is_unused)


def _count_records(log_file: LogFile) -> tuple[int, int]:
    """Return how many of the first lines there are, without comments, and how many of them are records."""
    lines = [line for line in log_file.first_rows(_LOOKED_AT) if not _is_comment(line)]
    return len(lines), sum(or_none(line_of, line, (log_file.name, 0)) is not None for line in lines)


def _is_comment(line_text: str) -> bool:
    """Return whether a line is a comment, or so short that qacct ignores it."""
    return line_text.startswith("#") or len(line_text.strip()) <= 1


def _overlapping(tasks: Sequence[Line]) -> list[list[Line]]:
    """Return tasks without the line of their job by run: those that overlap, in the first line from start to end."""
    runs: list[list[Line]] = []
    for task in sorted(tasks, key=lambda line: line.start_us):
        if runs and task.start_us <= runs[-1][0].end_us:
            runs[-1].append(task)
            runs[-1][0] = runs[-1][0]._replace(end_us=max(runs[-1][0].end_us, task.end_us))
        else:
            runs.append([task])
    return runs


class _Runs:
    """Runs of jobs; lines of parallel jobs wait for the others of their job."""

    def __init__(self, record: ScheduleRecord, slots_of_node: int | None) -> None:
        self._record, self._report = record, record.report
        self._slots_of_node = slots_of_node
        self._lists = NodeLists(record)
        self._held: dict[str, list[Line]] = {}
        self._n_held = 0
        self.are_parallel = False

    def read(self, line_text: str, place: Place) -> None:
        """Read a line."""
        self._report.read()
        try:
            line = line_of(line_text, place)
        except ValueError as error:
            return self._report.skip_with_warning("fields that cannot be read", *place, f"{error}: {line_text[:200]}")
        if line is None:
            return self._report.skip(_NOT_ACCOUNTING, *place, line_text[:80])
        if not line.start_us:
            return self._report.skip("never started", *place, line.job)
        if not line.end_us:
            return self._report.skip_with_warning("no end", *place, line.job, warning=_NO_END_WARNING)
        if line.slots <= 1 and not line.task:
            return self._add([line])
        self.are_parallel = True
        self._record.node_ids((line.host,))  # the jobs below name all hosts that may have been idle
        self._held.setdefault(line.job, []).append(line)
        self._n_held += 1
        while self._n_held > MOST_HELD:
            self._join(self._held.pop(next(iter(self._held))))

    def finish(self) -> None:
        """Add the jobs of the lines that wait."""
        for lines in self._held.values():
            self._join(lines)

    def _join(self, lines: Sequence[Line]) -> None:
        """Add the runs of a job: tasks belong to the run during which they started."""
        self._n_held -= len(lines)
        runs: dict[int, list[Line]] = {}
        for line in lines:
            if not line.task:
                runs.setdefault(line.start_us, []).append(line)
        starts, alone = sorted(runs), list[Line]()
        for line in lines:
            if line.task:
                after = bisect_right(starts, line.start_us)
                near = [runs[start] for start in starts[max(after - 1, 0) : after + 1]]
                off_us = [max(run[0].start_us - line.start_us, line.start_us - run[0].end_us, 0) for run in near]
                nearest = off_us.index(min(off_us)) if min(off_us, default=_CLOCKS_US) < _CLOCKS_US else None
                (alone if nearest is None else near[nearest]).append(line)
        for run in [*runs.values(), *_overlapping(alone)]:
            self._add(run)

    def _add(self, lines: Sequence[Line]) -> None:
        """Add a run; its first line is that of its job, or a task alone."""
        line, hosts = lines[0], tuple(dict.fromkeys(line.host for line in lines))
        for further in lines[1:]:
            self._report.skip(FURTHER, *further.place, further.job)
        self._report.read(0)
        job, span_us, node_count = line.job, line.end_us - line.start_us, None
        if line.submit_us > line.start_us + _CLOCKS_US:
            self._report.warn(_EARLY_WARNING, *line.place, job)
        if line.elapsed_s > 0 and abs(line.elapsed_s * US - span_us) > _ROUNDING_US:
            self._report.warn(_ELAPSED_WARNING, *line.place, f"{job}: {line.elapsed_s:g} s")
        if line.task:
            job = f"{job} task {line.task}"
            self._report.warn(_ALONE_WARNING, *line.place, job)
        elif line.slots > 1 and self._slots_of_node is not None:
            node_count = max(len(hosts), -(-line.slots // self._slots_of_node))
        elif line.slots > 1 and len(hosts) == 1:
            hours = (min(line.slots, len(self._record.nodes)) - 1) * span_us / HOUR_US
            self._report.warn(_ONE_HOST_WARNING, *line.place, f"{job}: {line.slots} slots", node_hours=hours)
        node_ids = self._lists.ids("\0".join(hosts), lambda: hosts)
        self._record.add_job(
            job,
            line.start_us,
            line.end_us,
            node_ids,
            node_count,
            None,
            *line.place,
            is_cut=True,
            submission=Submission(line.submit_us or None, line.queue),
        )
