"""Records of LSF's log files: fields between blanks, strings in quotes, quotes in strings doubled."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bfreplay.datasets.ingest.log_file import LogFile

MOST_LINES = 10_000
"""Most lines of a string; more mean a lost quote."""

RECORD_START = re.compile(r'"([A-Z][A-Z0-9_]*)" "([\d.]+)" (\d{1,11})(?!\S)', re.ASCII)
_RECORD = re.compile(r'(?>"[^"]*(?:""[^"]*)*+"|[^\s"]++)(?: +(?>"[^"]*(?:""[^"]*)*+"|[^\s"]++))*+ *')
_FIELD = re.compile(r'"[^"]*(?:""[^"]*)*"|[^\s"]+')
_WHOLE = re.compile(r"\d{1,18}", re.ASCII)
_DECIMAL = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+\-]?\d+)?", re.ASCII)
_COUNTED = re.compile(r"(\d{1,9})\*(.+)", re.ASCII)

KNOWN_TYPES = frozenset(
    {
        *("JOB_FINISH", "JOB_RESIZE", "EVENT_ADRSV_FINISH", "JOB_NEW", "JOB_START", "JOB_START_ACCEPT", "JOB_STATUS"),
        *("JOB_SWITCH", "JOB_MOVE", "JOB_MODIFY", "JOB_MODIFY2", "JOB_SIGNAL", "JOB_EXECUTE", "JOB_REQUEUE"),
        *("JOB_CLEAN", "JOB_EXCEPTION", "JOB_EXT_MSG", "JOB_ATTA_DATA", "JOB_CHUNK", "JOB_FORCE", "JOB_FORWARD"),
        *("JOB_ACCEPT", "JOB_ATTR_SET", "JOB_MSG", "JOB_MSG_ACK", "JOB_SIGACT", "JOB_OCCUPY_REQ", "JOB_VACATED"),
        *("JOB_RESIZE_NOTIFY_START", "JOB_RESIZE_NOTIFY_ACCEPT", "JOB_RESIZE_NOTIFY_DONE", "JOB_RESIZE_RELEASE"),
        *("JOB_RESIZE_CANCEL", "JOB_PROV_HOST", "JOB_REFRESH_HOST", "JOB_ARRAY_ELEMENT", "SBD_JOB_STATUS"),
        *("SBD_UNREPORTED_STATUS", "PRE_EXEC_START", "STATUS_ACK", "QUEUE_CTRL", "HOST_CTRL", "HOST_POWER_STATUS"),
        *("HOST_PROV_STATUS", "HGHOST_ADD", "HGHOST_REMOVE", "HOST_CREATE", "HOST_REMOVE", "MBD_START", "MBD_DIE"),
        *("UNFULFILL", "LOAD_INDEX", "LOG_SWITCH", "CHKPNT", "MIG", "CAL_NEW", "CAL_MODIFY", "CAL_DELETE"),
        *("GRP_ADD", "GRP_MOD", "ADRSV_ADD", "ADRSV_DELETE", "ADRSV_MODIFY", "CPUPROFILE_STATUS", "DATALOGGING"),
    }
)
"""Types of records that LSF writes into lsb.acct and lsb.events, as far as known."""

_JOB, _SUBMIT, _START, _ASKED = 3, 7, 10, 22
_SLACK_S = 86_400
_AFTER_STATUS_TO_INDEX = 29  # status, factor, name and command of the job, 19 of its usage, 6 more: then its index


@dataclass(frozen=True, slots=True)
class Text:
    """Text of a record and its first line; ``is_whole`` unless a quote in it is open."""

    number: int
    text: str
    is_whole: bool


@dataclass(frozen=True, slots=True)
class Finish:
    """Occupancy of a JOB_FINISH record; ``start_s`` 0: the job never started."""

    job: str
    submit_s: int
    start_s: int
    end_s: int
    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HostControl:
    """HOST_CTRL record: ``code`` 1 opens the host for jobs, 2 closes it."""

    time_s: int
    code: int
    host: str


def record_texts(file: LogFile) -> Iterator[Text]:
    """Join the lines of records with line ends in strings. Comments and blank lines are skipped."""
    first, parts, open_quotes = 0, [""], False
    for number, line in file.lines(RECORD_START):
        if open_quotes and (RECORD_START.match(line) or len(parts) >= MOST_LINES):
            yield Text(first, parts[0], False)
            open_quotes = False
        if not open_quotes:
            if not line.strip() or line.startswith("#"):
                continue
            first, parts = number, []
        parts.append(line)
        open_quotes ^= line.count('"') % 2 == 1
        if not open_quotes:
            yield Text(first, "\n".join(parts), True)
    if open_quotes:
        yield Text(first, parts[0], False)


def fields_of(text: str) -> list[str] | None:
    """Return the raw fields, with their quotes; ``None`` if it is not a record."""
    fields = _FIELD.findall(text)
    return fields if " ".join(fields) == text or _RECORD.fullmatch(text) else None


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
    end_s, job, start_s = (
        _whole(fields, 2, "event time"),
        _whole(fields, _JOB, "job id"),
        _whole(fields, _START, "start", has_unknown=True),
    )
    if not fields[_START + 1].startswith('"'):
        raise ValueError("the user is not a string: a field is missing before")
    if start_s > end_s:
        raise ValueError("the job ends before it starts")
    submit_s = _whole(fields, _SUBMIT, "submission") if start_s else 0
    if submit_s > start_s + _SLACK_S:
        raise ValueError("the job starts before it was submitted")
    at = _ASKED + 1 + _whole(fields, _ASKED, "number of hosts asked for")
    count = _whole(fields, at, "number of hosts")
    status = at + 1 + count
    if status + 1 >= len(fields):
        raise ValueError("the record is cut, or a number of hosts is wrong")
    _whole(fields, status, "job status")
    if not _DECIMAL.fullmatch(fields[status + 1]):
        raise ValueError("the host factor is not a number: a number of hosts is wrong")
    if count and fields[_START] == "-1":
        raise ValueError("the job has hosts and no start")
    index = _whole(fields, status + _AFTER_STATUS_TO_INDEX, "array index", has_unknown=True)
    hosts = tuple(dict.fromkeys(_host(field) for field in fields[at + 1 : status]))
    return Finish(f"{job}[{index}]" if index else str(job), submit_s, start_s, end_s, hosts)


def host_control_of(fields: Sequence[str]) -> HostControl:
    """Read a HOST_CTRL: 2 event time, 3 operation, 4 host, 5 user id, 6 user.

    Raises
    ------
    ValueError
        A needed field is invalid.
    """
    time_s, code = _whole(fields, 2, "event time"), _whole(fields, 3, "operation")
    if len(fields) < 5:
        raise ValueError("the record is cut")
    if not time_s:
        raise ValueError("the event time is 0")
    return HostControl(time_s, code, unquote(fields[4]))


def unquote(field: str) -> str:
    """Return the text of a string field.

    Raises
    ------
    ValueError
        The field is a number.
    """
    if not field.startswith('"'):
        raise ValueError(f"{field!r} is not a string")
    return field[1:-1].replace('""', '"')


def _whole(fields: Sequence[str], at: int, what: str, *, has_unknown: bool = False) -> int:
    """Return a whole number; with ``has_unknown``, LSF's -1 for none counts as 0."""
    if at >= len(fields):
        raise ValueError("the record is cut, or a number of hosts is wrong")
    if has_unknown and fields[at] == "-1":
        return 0
    if not _WHOLE.fullmatch(fields[at]):
        raise ValueError(f"the {what} is not a whole number")
    return int(fields[at])


def _host(field: str) -> str:
    """Return the host of ``"host1"`` (once per slot) or ``"16*host1"`` (sixteen slots)."""
    name = unquote(field)
    match = _COUNTED.fullmatch(name)
    return name if match is None else match[2]
