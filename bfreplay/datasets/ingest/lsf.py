"""LsfReader: LSF's accounting (lsb.acct), and closed hosts (lsb.events)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bfreplay.datasets.ingest.delimited import Place
from bfreplay.datasets.ingest.hostlists import each_a_name
from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.schedule import NodeLists, ScheduleRecord
from bfreplay.datasets.ingest.occupancy.submissions import Submission
from bfreplay.datasets.ingest.reader import Export, ReadOptions
from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.times import US

MOST_LINES = 10_000
"""Most lines of a string; more mean a lost quote."""

RECORD_START = re.compile(r'"([A-Z][A-Z0-9_]*)" "([\d.]+)" (\d{1,11})(?!\S)', re.ASCII)
_RECORD = re.compile(r'(?>"[^"]*(?:""[^"]*)*+"|[^\s"]++)(?: +(?>"[^"]*(?:""[^"]*)*+"|[^\s"]++))*+ *')
_FIELD = re.compile(r'"[^"]*(?:""[^"]*)*"|[^\s"]+')
_WHOLE = re.compile(r"\d{1,18}", re.ASCII)
_DECIMAL = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+\-]?\d+)?", re.ASCII)
_COUNTED = re.compile(r"(\d{1,9})\*(.+)", re.ASCII)

_TYPE_NAMES = (
    "JOB_FINISH JOB_RESIZE EVENT_ADRSV_FINISH JOB_NEW JOB_START JOB_START_ACCEPT JOB_STATUS JOB_SWITCH JOB_MOVE "
    "JOB_MODIFY JOB_MODIFY2 JOB_SIGNAL JOB_EXECUTE JOB_REQUEUE JOB_CLEAN JOB_EXCEPTION JOB_EXT_MSG JOB_ATTA_DATA "
    "JOB_CHUNK JOB_FORCE JOB_FORWARD JOB_ACCEPT JOB_ATTR_SET JOB_MSG JOB_MSG_ACK JOB_SIGACT JOB_OCCUPY_REQ JOB_VACATED "
    "JOB_RESIZE_NOTIFY_START JOB_RESIZE_NOTIFY_ACCEPT JOB_RESIZE_NOTIFY_DONE JOB_RESIZE_RELEASE JOB_RESIZE_CANCEL "
    "JOB_PROV_HOST JOB_REFRESH_HOST JOB_ARRAY_ELEMENT SBD_JOB_STATUS SBD_UNREPORTED_STATUS PRE_EXEC_START STATUS_ACK "
    "QUEUE_CTRL HOST_CTRL HOST_POWER_STATUS HOST_PROV_STATUS HGHOST_ADD HGHOST_REMOVE HOST_CREATE HOST_REMOVE "
    "MBD_START MBD_DIE UNFULFILL LOAD_INDEX LOG_SWITCH CHKPNT MIG CAL_NEW CAL_MODIFY CAL_DELETE GRP_ADD GRP_MOD "
    "ADRSV_ADD ADRSV_DELETE ADRSV_MODIFY CPUPROFILE_STATUS DATALOGGING"
)
KNOWN_TYPES = frozenset(_TYPE_NAMES.split())
"""Types of records that LSF writes into lsb.acct and lsb.events, as far as known."""

_JOB, _SUBMIT, _START, _QUEUE, _ASKED = 3, 7, 10, 12, 22
_SLACK_S = 86_400
_AFTER_STATUS_TO_INDEX = 29  # status, factor, name and command of the job, 19 of its usage, 6 more: then its index


@dataclass(frozen=True, slots=True)
class Finish:
    """Occupancy of a JOB_FINISH record; ``start_s`` 0: the job never started."""

    job: str
    submit_s: int
    start_s: int
    end_s: int
    hosts: tuple[str, ...]
    queue: str


@dataclass(frozen=True, slots=True)
class HostControl:
    """HOST_CTRL record: ``code`` 1 opens the host for jobs, 2 closes it."""

    time_s: int
    code: int
    host: str


def record_texts(log_file: LogFile) -> Iterator[tuple[int, str, bool]]:
    """Join the lines of records with line ends in strings: first line, text, and whether no quote in it is open.

    Comments and blank lines are skipped.
    """
    first_line, line_texts, open_quotes = 0, [""], False
    for line_number, line_text in log_file.lines(RECORD_START):
        if open_quotes and (RECORD_START.match(line_text) or len(line_texts) >= MOST_LINES):
            yield first_line, line_texts[0], False
            open_quotes = False
        if not open_quotes:
            if not line_text.strip() or line_text.startswith("#"):
                continue
            first_line, line_texts = line_number, []
        line_texts.append(line_text)
        open_quotes ^= line_text.count('"') % 2 == 1
        if not open_quotes:
            yield first_line, "\n".join(line_texts), True
    if open_quotes:
        yield first_line, line_texts[0], False


def fields_of(line_text: str) -> list[str] | None:
    """Return the raw fields, with their quotes; ``None`` if it is not a record."""
    record_fields = _FIELD.findall(line_text)
    return record_fields if " ".join(record_fields) == line_text or _RECORD.fullmatch(line_text) else None


def finish_of(fields: Sequence[str]) -> Finish:
    """Read a JOB_FINISH.

    Fields by position: 0 type, 1 version, 2 event time, 3 job, ... 10 start, ... 22 number of hosts requested, these
    hosts, number of hosts used, these hosts, status, ...

    Raises
    ------
    ValueError
        A needed field is invalid; the text names it.
    """
    if len(fields) <= _ASKED:
        raise ValueError("the record is cut")
    end_s, job = _whole(fields, 2, "event time"), _whole(fields, _JOB, "job id")
    start_s = _whole(fields, _START, "start", has_unknown=True)
    if not fields[_START + 1].startswith('"'):
        raise ValueError("the user is not a string: a field is missing before")
    if start_s > end_s:
        raise ValueError("the job ends before it starts")
    submit_s = _whole(fields, _SUBMIT, "submission") if start_s else 0
    if submit_s > start_s + _SLACK_S:
        raise ValueError("the job starts before it was submitted")
    count_position = _ASKED + 1 + _whole(fields, _ASKED, "number of hosts asked for")
    n_hosts = _whole(fields, count_position, "number of hosts")
    status_position = count_position + 1 + n_hosts
    if status_position + 1 >= len(fields):
        raise ValueError("the record is cut, or a number of hosts is wrong")
    _whole(fields, status_position, "job status")
    if not _DECIMAL.fullmatch(fields[status_position + 1]):
        raise ValueError("the host factor is not a number: a number of hosts is wrong")
    if n_hosts and fields[_START] == "-1":
        raise ValueError("the job has hosts and no start")
    array_index = _whole(fields, status_position + _AFTER_STATUS_TO_INDEX, "array index", has_unknown=True)
    host_names = tuple(dict.fromkeys(_host(field) for field in fields[count_position + 1 : status_position]))
    identity, queue = f"{job}[{array_index}]" if array_index else str(job), fields[_QUEUE].strip('"')
    return Finish(identity, submit_s, start_s, end_s, host_names, queue)


def host_control_of(fields: Sequence[str]) -> HostControl:
    """Read a HOST_CTRL: 2 event time, 3 operation, 4 host, 5 user id, 6 user.

    Raises
    ------
    ValueError
        A needed field is invalid.
    """
    time_s, operation = _whole(fields, 2, "event time"), _whole(fields, 3, "operation")
    if len(fields) < 5:
        raise ValueError("the record is cut")
    if not time_s:
        raise ValueError("the event time is 0")
    return HostControl(time_s, operation, unquote(fields[4]))


def unquote(record_field: str) -> str:
    """Return the text of a string field.

    Raises
    ------
    ValueError
        The field is a number.
    """
    if not record_field.startswith('"'):
        raise ValueError(f"{record_field!r} is not a string")
    return record_field[1:-1].replace('""', '"')


def _whole(fields: Sequence[str], position: int, meaning: str, *, has_unknown: bool = False) -> int:
    """Return a whole number; with ``has_unknown``, LSF's -1 for none counts as 0."""
    if position >= len(fields):
        raise ValueError("the record is cut, or a number of hosts is wrong")
    if has_unknown and fields[position] == "-1":
        return 0
    if not _WHOLE.fullmatch(fields[position]):
        raise ValueError(f"the {meaning} is not a whole number")
    return int(fields[position])


def _host(record_field: str) -> str:
    """Return the host of ``"host1"`` (once per slot) or ``"16*host1"`` (sixteen slots)."""
    host_name = unquote(record_field)
    count_match = _COUNTED.fullmatch(host_name)
    return host_name if count_match is None else count_match[2]


EXPORT = (
    'cd "$(sed -n \'s/^LSB_SHAREDIR=//p\' "$LSF_ENVDIR/lsf.conf")"/*/logdir'
    " && ls | grep -E '^lsb[.](acct|events)([.][0-9]+)?$' | tar czf ~/lsf-logs.tar.gz -T -"
)

_OPEN, _CLOSE = 1, 2
_EXPECTED = 'records "JOB_FINISH" "10.1" 1612345678 ... in the order of lsb.acct'
_TYPES_OF_LSF = ("JOB_", "HOST_", "EVENT_ADRSV", "MBD_", "QUEUE_CTRL")
_UNKNOWN_WARNING = "records of unknown types were skipped: they may be damaged, and their nodes look idle"
_RESIZE_WARNING = "jobs were resized while they ran: they count with their final nodes from the start"
_ORDER_WARNING = "event times go back by more than an hour: rows are damaged, or files were joined in another order"
_EARLY_WARNING = "jobs start before they were submitted: one of the times is wrong"
_NOT_OURS = "hosts of this cluster do not depend on it"
_ELSEWHERE_WARNING = "hosts of another cluster, host@cluster, were skipped"
_RESERVED_WARNING = "advance reservations are not read from LSF: hosts that were reserved and not used look idle"
_RUNNING = "lsb.acct has finished jobs only: hosts look idle where jobs were still running when it was copied"
_OPENINGS = "hosts closed and opened in the log (HOST_CTRL); hosts that were down are not in it"
_NO_OPENINGS = "not in lsb.acct: hosts that were closed or down look idle; lsb.events has closed hosts"


class LsfReader:
    """Reader of LSF's lsb.acct, and of host control in lsb.events; all files of each, in any order."""

    name = "lsf"
    title = "IBM Spectrum LSF: lsb.acct, HOST_CTRL of lsb.events"
    options = ("reservations",)
    exports: Sequence[Export] = (
        Export(EXPORT, "all of lsb.acct and lsb.events (as the LSF administrator, with LSF's profile loaded)"),
    )

    def recognise(self, file: LogFile) -> str | None:
        """Return why ``file`` looks like LSF's, ``None`` if it does not."""
        types = _types_in_head(file)
        lines = (line_text for line_text in file.first_rows() if not line_text.startswith("#"))
        if not types or not RECORD_START.match(next(lines, "")):
            return None
        return f"its records begin as LSF's do: type, version, event time; the types are {', '.join(types[:3])}"

    def read(self, files: Sequence[LogFile], record: ScheduleRecord, options: ReadOptions) -> None:
        """Read lsb.acct and lsb.events files into ``record``.

        Memory grows with host control records, not with jobs.

        Raises
        ------
        InputError
            A file is something else, or there is no finished job with hosts.
        """
        for log_file in files:
            if not _types_in_head(log_file):
                raise log_file.wrong_start(
                    "this is neither LSF's lsb.acct nor its lsb.events",
                    value=next(iter(log_file.first_rows()), "")[:120],
                    expected=_EXPECTED,
                    fix=f"omit this file, or run this on your cluster: {EXPORT}",
                )
        reading = _Reading(record, options)
        n_before = record.report.kept.get("job intervals", 0)
        for log_file in files:
            reading.read(log_file)
        if record.report.kept.get("job intervals", 0) == n_before:
            raise record.report.no_runs(
                "records of hosts only",
                file=files[0].name,
                expected=_EXPECTED,
                fix=f"only lsb.acct has the hosts of each job; run this on your cluster: {EXPORT}",
            )
        has_control = reading.close_hosts()
        record.add_format("lsf lsb.acct")
        if has_control:
            record.add_format("lsf lsb.events")
        facts = record.report.facts
        facts["time zone"] = "epoch seconds: no zone needed"
        facts["outages"] = _OPENINGS if has_control else _NO_OPENINGS
        facts["running jobs"] = _RUNNING


class _Reading:
    """State of an import: caches of node lists, and host control."""

    def __init__(self, record: ScheduleRecord, options: ReadOptions) -> None:
        self._record = record
        self._report = record.report
        self._wants_reservations = options.reservations == "reserved"
        self._lists = NodeLists(record)
        self._controls: list[tuple[HostControl, Place]] = []

    def read(self, log_file: LogFile) -> None:
        """Read a file; HOST_CTRL waits for ``close_hosts``."""
        last_s = 0
        for line_number, record_text, is_whole in record_texts(log_file):
            self._report.read()
            row_place = log_file.name, line_number
            start_match = RECORD_START.match(record_text)
            record_fields = fields_of(record_text) if start_match and is_whole else None
            if start_match is None or record_fields is None:
                self._report.skip_with_warning("no record, or a quote in it is not closed", *row_place, record_text)
                continue
            record_type, time_s = start_match[1], int(start_match[3])
            if time_s < last_s - 3_600 and record_type in ("JOB_FINISH", "HOST_CTRL"):
                why_no_amount = "" if record_type == "JOB_FINISH" else "which outages it moves is not known"
                self._report.warn(_ORDER_WARNING, *row_place, time_s, why_no_amount=why_no_amount)
            last_s = time_s
            try:
                if record_type == "JOB_FINISH":
                    self._finish(record_fields, row_place)
                elif record_type == "HOST_CTRL":
                    self._controls.append((host_control_of(record_fields), row_place))
                else:
                    self._other(record_type, row_place)
            except ValueError as error:
                self._report.skip_with_warning("fields that cannot be read", *row_place, f"{record_type}: {error}")

    def _finish(self, record_fields: Sequence[str], row_place: Place) -> None:
        job = finish_of(record_fields)
        if job.start_s == 0:
            self._report.set_row_amount(0, 0, 0)
            return self._report.skip("never started", *row_place, job.job)
        host_names = tuple(host_name for host_name in job.hosts if "@" not in host_name)
        if len(host_names) < len(job.hosts):
            self._report.warn(_ELSEWHERE_WARNING, *row_place, job.job, aside=_NOT_OURS)
            if not host_names:
                self._report.set_row_amount(len(job.hosts), job.start_s * US, job.end_s * US)
                return self._report.skip("ran in another cluster", *row_place, job.job)
        node_ids = self._lists.ids("\0".join(host_names), lambda: each_a_name(host_names, "host"))
        if job.start_s < job.submit_s:
            self._report.warn(_EARLY_WARNING, *row_place, job.job)
        submission = Submission(job.submit_s * US or None, job.queue)
        interval = job.start_s * US, job.end_s * US
        self._record.add_job(job.job, *interval, node_ids, None, None, *row_place, submission=submission)

    def _other(self, record_type: str, row_place: Place) -> None:
        if record_type == "JOB_RESIZE":
            self._report.skip_with_warning("resize of a job", *row_place, warning=_RESIZE_WARNING)
        elif record_type == "EVENT_ADRSV_FINISH":
            self._report.skip("advance reservation", *row_place)
            if self._wants_reservations:
                self._report.warn(_RESERVED_WARNING, *row_place, why_no_amount="reservations are not read from LSF")
        else:
            self._report.skip("other record type", *row_place, record_type)
            if record_type not in KNOWN_TYPES:
                self._report.warn(_UNKNOWN_WARNING, *row_place, record_type)

    def close_hosts(self) -> bool:
        """Add outages for closed hosts: they take no new jobs, running ones go on.

        Returns whether there was any host control.
        """
        self._report.read(0)  # outages from several rows each
        closures: dict[str, tuple[int, Place]] = {}
        previous_controls: set[HostControl] = set()
        for control, row_place in sorted(self._controls, key=lambda control_and_place: control_and_place[0].time_s):
            host_name, host_text = control.host, control.host
            if control in previous_controls:
                skip_reason = "host control that was read twice"
            elif control.code == _CLOSE and host_name not in closures:
                closures[host_name] = control.time_s, row_place
                skip_reason = ""
            elif control.code == _CLOSE:
                skip_reason = "host closed that was closed"
            elif control.code == _OPEN and host_name in closures:
                self._close(host_name, *closures.pop(host_name), control.time_s)
                skip_reason = "host opened, its outage is known from when it was closed"
            elif control.code == _OPEN:
                skip_reason = "host opened that was not closed in this log"
            else:
                skip_reason, host_text = "host control other than open and close", f"{control.code} {host_name}"
            self._report.skip(skip_reason, *row_place, host_text, count=bool(skip_reason))
            previous_controls.add(control)
        for host_name, (start_s, row_place) in closures.items():
            self._close(host_name, start_s, row_place, None)
        return bool(self._controls)

    def _close(self, host_name: str, start_s: int, row_place: Place, until_s: int | None) -> None:
        try:
            node_ids = self._record.node_ids(each_a_name((host_name,), "host"))
        except ValueError as error:
            reason, value = "fields that cannot be read", f"HOST_CTRL: {error}"
            return self._report.skip_with_warning(reason, *row_place, value, why_no_amount="its host cannot be read")
        end_us = None if until_s is None else until_s * US
        self._record.add_outage(NodeState.DRAIN, start_s * US, end_us, node_ids, *row_place)


def _types_in_head(log_file: LogFile) -> list[str]:
    """Return the types of LSF's records at the start of ``log_file``, each once."""
    matches = [start_match for start_match in map(RECORD_START.match, log_file.head_lines()) if start_match]
    record_types = list(dict.fromkeys(start_match[1] for start_match in matches))
    return record_types if any(record_type.startswith(_TYPES_OF_LSF) for record_type in record_types) else []
