"""Lines of a PBS accounting file: ``MM/DD/YYYY HH:MM:SS;TYPE;ID;key=value key=value ...``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise

from bfreplay.datasets.ingest.clock import wall_clock_us
from bfreplay.datasets.ingest.hostlists import NO_NODES, each_a_name
from bfreplay.datasets.ingest.occupancy.import_report import ImportReport
from bfreplay.datasets.times import DAY_US, EPOCH, US

_STAMP_LENGTH = len("MM/DD/YYYY HH:MM:SS")
RECORD_START = re.compile(r"[01]\d/[0-3]\d/\d{4} [0-2]\d:[0-5]\d:[0-6]\d;[A-Za-z];[^;]*(?:;|$)", re.ASCII)
SERVER_LOG_START = re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d(?:\.\d+)?;[0-9a-f]{4};", re.ASCII)
_JOB = re.compile(r"\d+(?:\[\d*\]|-\d+)?(?:\.[\w.\-@:]+)?", re.ASCII)
_ATTRIBUTE = re.compile(r"""(?<!\S)([A-Za-z][\w.\-]*)=("[^"]*"(?!\S)|'[^']*'(?!\S)|\S*)""", re.ASCII)
_EPOCH = re.compile(r"\d{1,11}", re.ASCII)
_SPAN = re.compile(r"(?:(?:(\d{1,5}):)?(\d{1,7}):)?(\d{1,2}):(\d{1,2})|(\d{1,10})", re.ASCII)
_SLOTS = re.compile(r"[\d,\-]*(?:\*\d+)?", re.ASCII)
_VNODE = re.compile(r"([^:\[\]]+)(?:\[\d+\])?(?::.*)?")

_USED = ("start", "end", "exec_host", "exec_vnode", "unique_node_count", "ctime")

MISSING_DAYS_WARNING = (
    "days between the first and the last file have no file: jobs that started in them are missing, and jobs that ended "
    "in them seem to go on"
)


_LEAST_FILES = 3
_LONGEST_FILE = 400  # days
_MOST_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Line:
    """Record with its place; ``stamp_us`` is its text stamp on the server's clock, as if that were UTC."""

    file: str
    number: int
    stamp_us: int
    kind: str
    job: str
    text: str


def parsed_line(text: str, file: str, number: int) -> Line | None:
    """Split a line at its first three semicolons; ``None`` if it is not a record."""
    parts = text.split(";", 3)
    if len(parts) < 3 or len(parts[1]) != 1 or not parts[1].isascii() or not parts[1].isalpha():
        return None
    stamp_us = stamp_of(parts[0])
    if stamp_us is None:
        return None
    return Line(file, number, stamp_us, parts[1], parts[2], parts[3] if len(parts) == 4 else "")


def stamp_of(text: str) -> int | None:
    """Return the microseconds since 1970-01-01 00:00 of ``MM/DD/YYYY HH:MM:SS`` on the same clock; else ``None``."""
    if len(text) != _STAMP_LENGTH or text[2] != "/" or text[5] != "/" or text[10] != " ":
        return None
    return wall_clock_us(f"{text[6:10]}-{text[:2]}-{text[3:5]}{text[10:]}")


def is_job(text: str) -> bool:
    """Return whether a text is the id of a job, of a job array (``12[].server``) or of one of its members."""
    return _JOB.fullmatch(text) is not None


def attributes(text: str) -> Mapping[str, str]:
    """Return the attributes of a record. Values in quotes may contain spaces.

    Raises
    ------
    ValueError
        An attribute for nodes or times has two values.
    """
    pairs = _ATTRIBUTE.findall(text)
    found = dict(pairs)
    if len(found) != len(pairs):
        for key in _USED:
            if len({value for name, value in pairs if name == key}) > 1:
                raise ValueError(f"{key} occurs twice in the record")
    return found


def epoch_us(found: Mapping[str, str], key: str) -> int | None:
    """Return the microseconds of an attribute in epoch seconds; ``None`` if missing or 0 (not yet).

    Raises
    ------
    ValueError
        Not a whole number of seconds.
    """
    text = found.get(key)
    if text is None:
        return None
    if not _EPOCH.fullmatch(text):
        raise ValueError(f"{key} is not a time in epoch seconds")
    return int(text) * US or None


def count_of(found: Mapping[str, str]) -> int | None:
    """Return TORQUE's number of allocated nodes; ``None`` without one.

    PBS Pro's ``Resource_List.nodect`` counts chunks, several of which may share a node.
    """
    text = found.get("unique_node_count", "")
    return int(text) if _EPOCH.fullmatch(text) else None


def walltime_us(found: Mapping[str, str]) -> int | None:
    """Return the microseconds of the time limit, ``[[D:]H:]MM:SS`` or seconds; ``None`` if absent or unreadable."""
    match = _SPAN.fullmatch(found.get("Resource_List.walltime", "").strip("\"'"))
    if match is None:
        return None
    if match[5]:
        return int(match[5]) * US
    days, hours = int(match[1] or 0), int(match[2] or 0)
    return days * DAY_US + (hours * 3600 + int(match[3]) * 60 + int(match[4])) * US


def is_followed(text: str, found: Mapping[str, str]) -> bool:
    """Return whether attributes follow the node list in a record: otherwise it may have been cut.

    Raises
    ------
    ValueError
        The following text is not an attribute: a blank broke the list.
    """
    key = "exec_host" if found.get("exec_host") else "exec_vnode"
    value = f"{key}={found.get(key, '')}"
    rest = text[text.find(value) + len(value) :].lstrip()
    if rest and not _ATTRIBUTE.match(rest):
        raise ValueError(f"{rest[:40]!r} follows the list of nodes")
    return bool(rest)


def node_names(found: Mapping[str, str]) -> tuple[str, ...]:
    """Return the distinct nodes of ``exec_host``, else of ``exec_vnode``; empty without names.

    Raises
    ------
    ValueError
        The list is invalid or cut.
    """
    hosts = found.get("exec_host", "").strip("\"'")
    if hosts.lower() not in NO_NODES:
        return _hosts(hosts)
    vnodes = found.get("exec_vnode", "").strip("\"'")
    return () if vnodes.lower() in NO_NODES else vnode_hosts(vnodes)


def _hosts(text: str) -> tuple[str, ...]:
    """Return nodes of ``n1/0+n1/1``, ``c1/0-31+c2/0-7``, ``c3/24-27,30``, ``c1/0*13``: the part before the slash."""
    names: dict[str, None] = {}
    has_slots = "/" in text
    for part in text.split("+"):
        if has_slots and "/" not in part:
            raise ValueError(f"{part!r} has no slots, unlike others in the list")
        name, _, slots = part.partition("/")
        if not _SLOTS.fullmatch(slots):
            raise ValueError(f"{part!r} is not part of a list of hosts")
        names[name.partition(":")[0]] = None
    return each_a_name(names)


def vnode_hosts(text: str) -> tuple[str, ...]:
    """Return the hosts of ``(n1:ncpus=4:mem=1gb)+(n2:ncpus=4+n2[1]:ncpus=2)``: virtual nodes are parts of hosts.

    Raises
    ------
    ValueError
        The list is invalid or cut.
    """
    if text.count("(") != text.count(")"):
        raise ValueError("a bracket is open: the list may have been cut")
    names: dict[str, None] = {}
    for part in text.replace("(", "").replace(")", "").split("+"):
        match = _VNODE.fullmatch(part)
        if match is None:
            raise ValueError(f"{part!r} is not part of a list of virtual nodes")
        names[match[1]] = None
    return each_a_name(names)


class FileDays:
    """Days covered by the files, from the first and last text stamp of each, on the server's clock."""

    def __init__(self) -> None:
        self._covered: set[int] = set()
        self._n_files = self._n_daily = 0

    def add(self, first_us: int, last_us: int) -> None:
        """Add the days of a file."""
        first, last = first_us // DAY_US, last_us // DAY_US
        self._n_files += 1
        self._n_daily += first == last
        self._covered.add(first)
        if last - first <= _LONGEST_FILE:  # a wrong stamp far away is no evidence for the days between
            self._covered.update(range(first, last + 1))

    def finish(self, report: ImportReport, n_nodes: int) -> None:
        """Warn of missing days of a machine of so many nodes, if the log has one file per day."""
        if self._n_files < _LEAST_FILES or 2 * self._n_daily <= self._n_files:
            return
        days = sorted(self._covered)
        gaps = [(before + 1, after) for before, after in pairwise(days) if after - before > 1]
        n_missing = sum(after - first for first, after in gaps)
        shown = ", ".join(_words(first, after - 1) for first, after in gaps[:_MOST_SHOWN])
        more = ", ..." if len(gaps) > _MOST_SHOWN else ""
        report.warn(MISSING_DAYS_WARNING, value=shown + more, n=n_missing, node_hours=24.0 * n_missing * n_nodes)


def _words(first: int, last: int) -> str:
    """Format days: ``2024-10-20``, or ``2024-10-20 to 2024-10-22``."""
    days = [f"{EPOCH + timedelta(days=day):%Y-%m-%d}" for day in dict.fromkeys((first, last))]
    return " to ".join(days)
