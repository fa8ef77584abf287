"""Lines of a PBS accounting file, ``MM/DD/YYYY HH:MM:SS;TYPE;ID;key=value key=value ...``, and their times in UTC."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise

import numpy as np

from bfreplay.datasets.ingest.hostlists import NO_NODES, each_a_name, numbers_in
from bfreplay.datasets.ingest.local_times import TIMES_MOVE, Clock, RowPlace, wall_clock_us
from bfreplay.datasets.ingest.occupancy.import_report import ImportReport
from bfreplay.datasets.ingest.occupancy.units import Held
from bfreplay.datasets.ingest.reader import ReadOptions, or_none
from bfreplay.datasets.times import DAY_US, EPOCH, US, iso_utc
from bfreplay.errors import InputError

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

    @property
    def place(self) -> RowPlace:
        """Place for the report, with the job."""
        return self.file, self.number, self.job

    def error(self, problem: str, *, value: str, expected: str, fix: str) -> InputError:
        """Return an error about this record; ``value`` follows its type and job."""
        text = f"{self.kind};{self.job}{value}"
        return InputError(problem, file=self.file, row=f"line {self.number}", value=text, expected=expected, fix=fix)


def parse_line(line_text: str, file_name: str, line_number: int) -> Line | None:
    """Split a line at its first three semicolons; ``None`` if it is not a record."""
    parts = line_text.split(";", 3)
    if len(parts) < 3 or len(parts[1]) != 1 or not parts[1].isascii() or not parts[1].isalpha():
        return None
    stamp_us = stamp_of(parts[0])
    if stamp_us is None:
        return None
    return Line(file_name, line_number, stamp_us, parts[1], parts[2], parts[3] if len(parts) == 4 else "")


def stamp_of(line_text: str) -> int | None:
    """Return the microseconds since 1970-01-01 00:00 of ``MM/DD/YYYY HH:MM:SS`` on the same clock; else ``None``."""
    if len(line_text) != _STAMP_LENGTH or line_text[2] != "/" or line_text[5] != "/" or line_text[10] != " ":
        return None
    return wall_clock_us(f"{line_text[6:10]}-{line_text[:2]}-{line_text[3:5]}{line_text[10:]}")


def is_job(line_text: str) -> bool:
    """Return whether a text is the id of a job, of a job array (``12[].server``) or of one of its members."""
    return _JOB.fullmatch(line_text) is not None


def attributes(line_text: str) -> Mapping[str, str]:
    """Return the attributes of a record. Values in quotes may contain spaces.

    Raises
    ------
    ValueError
        An attribute for nodes or times has two values.
    """
    pairs = _ATTRIBUTE.findall(line_text)
    value_of_name = dict(pairs)
    if len(value_of_name) != len(pairs):
        for used_name in _USED:
            if len({attribute_value for attribute_name, attribute_value in pairs if attribute_name == used_name}) > 1:
                raise ValueError(f"{used_name} occurs twice in the record")
    return value_of_name


def epoch_us(values: Mapping[str, str], attribute_name: str) -> int | None:
    """Return the microseconds of an attribute in epoch seconds; ``None`` if missing or 0 (not yet).

    Raises
    ------
    ValueError
        Not a whole number of seconds.
    """
    epoch_text = values.get(attribute_name)
    if epoch_text is None:
        return None
    if not _EPOCH.fullmatch(epoch_text):
        raise ValueError(f"{attribute_name} is not a time in epoch seconds")
    return int(epoch_text) * US or None


def count_of(values: Mapping[str, str]) -> int | None:
    """Return TORQUE's number of allocated nodes; ``None`` without one.

    PBS Pro's ``Resource_List.nodect`` counts chunks, several of which may share a node.
    """
    return _count(values.get("unique_node_count", ""))


def walltime_us(values: Mapping[str, str]) -> int | None:
    """Return the microseconds of the time limit, ``[[D:]H:]MM:SS`` or seconds; ``None`` if absent or unreadable."""
    span_match = _SPAN.fullmatch(values.get("Resource_List.walltime", "").strip("\"'"))
    if span_match is None:
        return None
    if span_match[5]:
        return int(span_match[5]) * US
    limit_days, limit_hours = int(span_match[1] or 0), int(span_match[2] or 0)
    return limit_days * DAY_US + (limit_hours * 3600 + int(span_match[3]) * 60 + int(span_match[4])) * US


def has_following_text(line_text: str, values: Mapping[str, str]) -> bool:
    """Return whether attributes follow the node list in a record: otherwise it may have been cut.

    Raises
    ------
    ValueError
        The following text is not an attribute: a blank broke the list.
    """
    list_name = "exec_host" if values.get("exec_host") else "exec_vnode"
    list_attribute = f"{list_name}={values.get(list_name, '')}"
    remainder = line_text[line_text.find(list_attribute) + len(list_attribute) :].lstrip()
    if remainder and not _ATTRIBUTE.match(remainder):
        raise ValueError(f"{remainder[:40]!r} follows the list of nodes")
    return bool(remainder)


def node_names(values: Mapping[str, str]) -> tuple[str, ...]:
    """Return the distinct nodes of ``exec_host``, else of ``exec_vnode``; empty without names.

    Raises
    ------
    ValueError
        The list is invalid or cut.
    """
    host_list = values.get("exec_host", "").strip("\"'")
    if host_list.lower() not in NO_NODES:
        return _hosts(host_list)
    vnode_list = values.get("exec_vnode", "").strip("\"'")
    return () if vnode_list.lower() in NO_NODES else vnode_hosts(vnode_list)


def _hosts(line_text: str) -> tuple[str, ...]:
    """Return nodes of ``n1/0+n1/1``, ``c1/0-31+c2/0-7``, ``c3/24-27,30``, ``c1/0*13``: the part before the slash."""
    host_names: dict[str, None] = {}
    has_slots = "/" in line_text
    for list_part in line_text.split("+"):
        if has_slots and "/" not in list_part:
            raise ValueError(f"{list_part!r} has no slots, unlike others in the list")
        host_name, _, slot_text = list_part.partition("/")
        if not _SLOTS.fullmatch(slot_text):
            raise ValueError(f"{list_part!r} is not part of a list of hosts")
        host_names[host_name.partition(":")[0]] = None
    return each_a_name(host_names)


def vnode_hosts(line_text: str) -> tuple[str, ...]:
    """Return the hosts of ``(n1:ncpus=4:mem=1gb)+(n2:ncpus=4+n2[1]:ncpus=2)``: virtual nodes are parts of hosts.

    Raises
    ------
    ValueError
        The list is invalid or cut.
    """
    if line_text.count("(") != line_text.count(")"):
        raise ValueError("a bracket is open: the list may have been cut")
    host_names: dict[str, None] = {}
    for list_part in line_text.replace("(", "").replace(")", "").split("+"):
        vnode_match = _VNODE.fullmatch(list_part)
        if vnode_match is None:
            raise ValueError(f"{list_part!r} is not part of a list of virtual nodes")
        host_names[vnode_match[1]] = None
    return each_a_name(host_names)


def held(values: Mapping[str, str], host_names: Sequence[str]) -> Held:
    """Return what a job holds on each of its hosts: ``ncpus`` and ``ngpus`` of ``exec_vnode``.

    Where that does not name the same hosts: the slots of ``exec_host``, and ``Resource_List.ngpus`` of all together.
    """
    is_whole = not {"excl", "exclhost"}.isdisjoint(values.get("Resource_List.place", "").split(":"))
    cores, gpus = (dict.fromkeys(host_names, 0) for _ in range(2))
    vnodes = values.get("exec_vnode", "").strip("\"'").replace("(", "").replace(")", "")
    if set(or_none(vnode_hosts, vnodes) or ()) == set(host_names):
        for host_name, *resources in (list_part.split(":") for list_part in vnodes.split("+")):
            amounts = dict(resource.split("=", 1) for resource in resources if "=" in resource)
            for counts, resource_name in ((cores, "ncpus"), (gpus, "ngpus")):
                counts[host_name.partition("[")[0]] += _count(amounts.get(resource_name, "")) or 0
        return Held(np.array([*gpus.values()]), np.array([*cores.values()]), is_whole)
    for list_part in values.get("exec_host", "").strip("\"'").split("+"):
        host_name, _, slot_text = list_part.partition("/")
        slots, _, times = slot_text.partition("*")
        n_slots = len(numbers_in(slots.split(","))) if slots else 0
        cores[host_name.partition(":")[0]] += n_slots * (_count(times or "1") or 0)
    n_cores = np.array([*cores.values()])
    return Held(_count(values.get("Resource_List.ngpus", "")), n_cores if n_cores.all() else None, is_whole)


def _count(text: str) -> int | None:
    return int(text) if _EPOCH.fullmatch(text) else None


class FileDays:
    """Days covered by the files, from the first and last text stamp of each, on the server's clock."""

    def __init__(self) -> None:
        self._covered: set[int] = set()
        self._n_files = self._n_daily = 0

    def add(self, first_us: int, last_us: int) -> None:
        """Add the days of a file."""
        first_day, last_day = first_us // DAY_US, last_us // DAY_US
        self._n_files += 1
        self._n_daily += first_day == last_day
        self._covered.add(first_day)
        if last_day - first_day <= _LONGEST_FILE:  # a wrong stamp far away is no evidence for the days between
            self._covered.update(range(first_day, last_day + 1))

    def finish(self, report: ImportReport, n_nodes: int) -> None:
        """Warn of missing days of a machine of so many nodes, if the log has one file per day."""
        if self._n_files < _LEAST_FILES or 2 * self._n_daily <= self._n_files:
            return
        covered_days = sorted(self._covered)
        gaps = [(day + 1, next_day) for day, next_day in pairwise(covered_days) if next_day - day > 1]
        n_missing = sum(next_day - first_day for first_day, next_day in gaps)
        gap_texts = [_words(first_day, next_day - 1) for first_day, next_day in gaps[:_MOST_SHOWN]]
        gaps_text = ", ".join([*gap_texts, "..."] if len(gaps) > _MOST_SHOWN else gap_texts)
        node_hours = 24.0 * n_missing * n_nodes
        report.warn(MISSING_DAYS_WARNING, value=gaps_text, count=n_missing, node_hours=node_hours)


def _words(first_day: int, last_day: int) -> str:
    """Format days: ``2024-10-20``, or ``2024-10-20 to 2024-10-22``."""
    day_texts = [f"{EPOCH + timedelta(days=day):%Y-%m-%d}" for day in dict.fromkeys((first_day, last_day))]
    return " to ".join(day_texts)


_QUARTER_US = 900 * US  # zones differ from UTC by multiples of 15 minutes
_AGREE_US = 10 * US  # a record is written at once: times further apart are of different moments
_SLACK_US = 60 * US
FARTHEST_US = 15 * 3600 * US
"""Largest offset from UTC: +14:00, and an hour to spare."""

_MOST_CHANGES = 24
_IMPOSSIBLE = "a text stamp that contradicts the records around it or does not exist in the time zone"
_IMPOSSIBLE_WARNING = (
    "text stamps do not exist in the time zone, or contradict the records around them: check --tz;"
    " their runs were skipped"
)
_OTHER_ZONE_WARNING = "the text stamps are not in the given time zone: check --tz"
_FOLD_WARNING = "text stamps in the hour that is repeated when summer time ends were resolved by --dst-fold"


@dataclass(slots=True)
class _Waiting:
    """Text stamp to resolve: not before ``floor_us``; the clock's offset and the latest time known before it."""

    line: Line
    floor_us: int
    offset_us: int | None
    before_us: int | None
    then: Callable[[int], None]


class StampClock(Clock):
    """Clock that converts text stamps to UTC.

    A record with a text stamp and an epoch time of the same moment shows the offset of the server's clock. Without a
    zone from ``options``, a stamp takes the offset shown before and after it: if they differ, the clock was changed in
    between (summer time), and the offset that keeps the records in order is right.
    """

    folded_warning = _FOLD_WARNING

    def __init__(self, options: ReadOptions, report: ImportReport) -> None:
        super().__init__(options.timezone, options.dst_fold, report)
        self._waiting: list[_Waiting] = []
        self._offset_us: int | None = None
        self.latest_us: int | None = None  # latest epoch time that the log's stamps confirm
        self._changes: list[tuple[int, int]] = []
        self._agreed = self._disagreed = 0

    def witness(self, stamp_us: int, epoch_us: int) -> bool:
        """Process a record with both kinds of time; return whether they can be of one moment."""
        apart = stamp_us - epoch_us
        offset_us = (apart + _QUARTER_US // 2) // _QUARTER_US * _QUARTER_US
        if abs(apart - offset_us) > _AGREE_US or abs(offset_us) > FARTHEST_US:
            return False
        if self._local is not None:
            agrees = any(abs(moment_us - epoch_us) <= _AGREE_US for moment_us in self._local.utc_us(stamp_us))
            self._agreed += agrees
            self._disagreed += not agrees
        if offset_us != self._offset_us:
            self._changes.append((epoch_us, offset_us))
            del self._changes[_MOST_CHANGES + 1 : -1]
        self._resolve_waiting(offset_us, epoch_us)
        self._offset_us = offset_us
        self.latest_us = epoch_us if self.latest_us is None else max(epoch_us, self.latest_us)
        return True

    def resolve(self, line: Line, floor_us: int, then: Callable[[int], None]) -> None:
        """Call ``then`` with the UTC time of a record's text stamp, now or as soon as later records resolve it."""
        if self._local is not None:
            fitting_us = [moment_us for moment_us in self._local.utc_us(line.stamp_us) if moment_us >= floor_us]
            if len(fitting_us) == 1:
                self.counts["settled"] += 1
                return then(fitting_us[0])
        self._waiting.append(_Waiting(line, floor_us, self._offset_us, self.latest_us, then))

    def finish(self) -> None:
        """Resolve the remaining stamps, and report the offsets."""
        self._resolve_waiting(None, None)
        if self._disagreed > self._agreed:
            zone_text = f"{self.zone}; {self._offsets_text()}"
            self._report.warn(_OTHER_ZONE_WARNING, value=zone_text, why_no_amount=TIMES_MOVE)
        self._report.facts["time zone"] = self._sentence()

    def moment(self, stamp_us: int) -> int | None:
        """Return the UTC time of a stamp if it is clear without its neighbours."""
        if self._local is not None:
            moments = self._local.utc_us(stamp_us)
            return moments[0] if len(moments) == 1 else None
        return None if self._offset_us is None else stamp_us - self._offset_us

    def _resolve_waiting(self, offset_us: int | None, after_us: int | None) -> None:
        waiting, self._waiting = self._waiting, []
        for waiting_stamp in waiting:
            moment_us = self._moment_in_order(waiting_stamp, offset_us, after_us)
            if moment_us is None:
                self._report.skip_with_warning(_IMPOSSIBLE, *waiting_stamp.line.place, warning=_IMPOSSIBLE_WARNING)
            else:
                self.counts["settled"] += 1
                waiting_stamp.then(moment_us)

    def _moment_in_order(self, waiting_stamp: _Waiting, offset_us: int | None, after_us: int | None) -> int | None:
        stamp_us = waiting_stamp.line.stamp_us
        if self._local is not None:
            moments_us = self._local.utc_us(stamp_us)
        else:
            offsets = {zone_offset for zone_offset in (waiting_stamp.offset_us, offset_us) if zone_offset is not None}
            if not offsets:
                raise _no_zone(waiting_stamp.line)
            moments_us = tuple(sorted(stamp_us - zone_offset for zone_offset in offsets))
        moments_us = tuple(moment for moment in moments_us if moment >= waiting_stamp.floor_us)
        earliest, latest = waiting_stamp.before_us, after_us
        if earliest is not None and latest is not None and earliest > latest:  # the clock went back
            earliest = latest = None
        in_order = [
            moment
            for moment in moments_us
            if (earliest is None or moment >= earliest - _SLACK_US) and (latest is None or moment <= latest + _SLACK_US)
        ]
        fitting_us = in_order or list(moments_us)
        if len(fitting_us) < 2:
            return fitting_us[0] if fitting_us else None
        if self._fold == "reject":
            raise _ambiguous(waiting_stamp.line, fitting_us, self.zone)
        return self.by_fold(fitting_us, waiting_stamp.line.place)

    def _sentence(self) -> str:
        sentence_parts = ["start and end are epoch seconds: no zone needed"]
        if self.zone is not None:
            agreement = f"{self._agreed:,} text stamps agree with it, {self._disagreed:,} do not"
            sentence_parts += [f"given as {self.zone} for text stamps", agreement]
        if self._changes:
            sentence_parts.append(self._offsets_text())
        if self.counts["settled"]:
            sentence_parts.append(f"{self.counts['settled']:,} ends come from text stamps")
        return "; ".join(sentence_parts)

    def _offsets_text(self) -> str:
        """Return ``text stamps are -04:00 of UTC until 2017-11-05T05:59:12Z, -05:00 after``."""
        change_texts = ", ".join(
            f"{_offset_text(offset_us)} of UTC until {iso_utc(following)}"
            for (_, offset_us), (following, _) in zip(self._changes, self._changes[1:], strict=False)
        )
        last_text = f"{_offset_text(self._changes[-1][1])} " + ("after" if change_texts else "of UTC")
        return "text stamps are " + (f"{change_texts}, {last_text}" if change_texts else last_text)


def _offset_text(offset_us: int) -> str:
    minutes = abs(offset_us) // (60 * US)
    return f"{'-' if offset_us < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"


def _no_zone(line: Line) -> InputError:
    return line.error(
        "a run ends by a record that has only a text stamp, and no record in this log shows the zone of the stamps",
        value="",
        expected="the zone of the server that wrote the log",
        fix="give it: --tz America/Chicago (`timedatectl` on the server shows it)",
    )


def _ambiguous(line: Line, moments: list[int], time_zone: str | None) -> InputError:
    return line.error(
        "a text stamp lies in the hour that the clock shows twice, and nothing in the log resolves it",
        value=": " + " or ".join(map(iso_utc, moments)),
        expected="a time that occurred once",
        fix="choose: --dst-fold earlier or --dst-fold later" + (f"; or --tz {time_zone} is wrong" if time_zone else ""),
    )
