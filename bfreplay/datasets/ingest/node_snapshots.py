"""SnapshotsReader: snapshots of all nodes that were kept by hand, in files of their own or one after the other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from statistics import median_low

from bfreplay.datasets.ingest.local_times import LocalClock, wall_clock_us, zone_of_name
from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.reader import Export, ReadOptions, or_none
from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.snapshots.changes import StateChanges
from bfreplay.datasets.snapshots.readings import Snapshot
from bfreplay.datasets.snapshots.state_table import StateTable
from bfreplay.datasets.snapshots.texts import LINES, SnapshotReader, kind_of
from bfreplay.datasets.times import HOUR_US, US, iso_utc, parse_time_us
from bfreplay.errors import InputError

GAP_PERIODS = 3
GAPS = "snapshots are missing: all nodes are unknown there"
MISSING = "nodes are missing from snapshots: they are unknown there"
UNUSABLE = "snapshots that cannot be used were skipped"
STRANGE = "states of nodes have a word that is in no row of the table of states (--states): such nodes are unknown"
BY_FILE_TIME = "files have no time in their names: the time of their last change was used, which copying may alter"

_IN_NAME = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)[T_ -]?(\d\d)[:.-]?(\d\d)[:.-]?(\d\d)(Z?)(?!\d)", re.ASCII)
_EPOCH = re.compile(r"(?<!\d)([1-9]\d{8,9}(?:\.\d{1,6})?)(?!\d)", re.ASCII)
_TIME_LINE = re.compile(r"(?:#[ \t]*)?([1-9][\dT:.Z+-]{8,35})[ \t]*", re.ASCII)
_JOINED_TIME = re.compile(r"#[ \t]*[1-9]\d{8,9}(?:\.\d{1,6})?[ \t]*$", re.ASCII)
_LONGEST_TIME_LINE = 60
_LARGEST = 1 << 28
_TIMES_FIX = "give each snapshot a file of its own, or a line with its time before it: date +%s"
_NAMES_FIX = "name files by seconds: nodes.$(date +%s).txt"
_KEEP = 'while sleep 60; do {} > "nodes.$(date +%s).txt"; done'


class SnapshotsReader:
    """Reader of snapshots of all nodes, in files with times in their names, or each below a line with its time."""

    name = "snapshots"
    title = f"Snapshots of nodes, one file a poll: scontrol show node, sinfo --json, pbsnodes -a, {LINES}"
    options = ("timezone", "states")
    exports: Sequence[Export] = (
        Export(
            _KEEP.format("SLURM_TIME_FORMAT=%s scontrol show node -o"), "Slurm: the state of every node, while it runs"
        ),
        Export(_KEEP.format("pbsnodes -a"), "PBS Pro, OpenPBS, TORQUE: the same"),
    )

    def recognise(self, file: LogFile) -> str | None:
        """Return why ``file`` looks like a snapshot, ``None`` if it does not, or has only lines of node and state."""
        kind = _kind_of(file)
        return None if kind is None else f"it begins like the output of {kind}"

    def read(self, files: Sequence[LogFile], record: ScheduleRecord, options: ReadOptions) -> None:
        """Read snapshots into ``record``, as outages of the nodes that are not idle.

        Raises
        ------
        InputError
            Fewer than two usable snapshots, a file without a time, or a local time of an unknown zone.
        """
        zone = None if options.timezone is None else zone_of_name(options.timezone)
        states = StateTable.default() if options.states is None else StateTable.load(options.states)
        reader, report, timeline = SnapshotReader(states, zone), record.report, _Timeline(record)
        times_us = {file.name: _times_us(file, record, options.timezone) for file in files}
        ordered_us = sorted(chain.from_iterable(times_us.values()))
        timeline.period_us = median_low([end - start for start, end in pairwise(ordered_us) if end > start] or [1])
        refusal: InputError | None = None
        for file in sorted(files, key=lambda file: (min(times_us[file.name]), file.name)):
            for time_us, (_, text) in zip(times_us[file.name], _texts(file), strict=True):
                report.read()
                try:
                    timeline.add(Snapshot(time_us, reader.nodes(text, file.name)), file)
                except InputError as error:
                    refusal = refusal or error
                    report.skip_with_warning(error.problem, file.name, None, error.value or "", warning=UNUSABLE)
                    report.set_row_amount(len(record.nodes), 0, timeline.period_us)
        if report.kept.get("snapshots", 0) < 2:
            raise refusal if refusal is not None and len(ordered_us) > 1 else _single(files[0])
        timeline.finish()
        for word, raw in states.strange_words.items():
            report.warn(STRANGE, value=f"{word} in {raw}", why_no_amount="a word may stand for any state")
        record.add_format("snapshots of nodes")


class _Timeline:
    """State of each node and its start, from snapshot to snapshot; earlier ones go into the record."""

    def __init__(self, record: ScheduleRecord) -> None:
        self.period_us = 1
        self._record = record
        self._changes: StateChanges | None = None
        self._first_us = self._last_us = 0
        self._since: dict[str, tuple[int, NodeState]] = {}

    def add(self, snapshot: Snapshot, file: LogFile) -> None:
        """Add the next snapshot."""
        time_us, report = snapshot.time_us, self._record.report
        if self._changes is None:
            self._changes, self._first_us = StateChanges.of_first(snapshot), time_us
            rows = [(time_us, node, state) for node, state in self._changes.states.items()]
        else:
            before_us = time_us - self._last_us
            if before_us <= 0:
                problem, expected = "a snapshot is not later than the one before it", "snapshots in order of time"
                raise file.error(problem, value=iso_utc(time_us), expected=expected)
            rows = []
            if before_us > GAP_PERIODS * self.period_us:
                rows = self._changes.lose_sight(self._last_us + self.period_us)
                hours = len(self._since) * (before_us - self.period_us) / HOUR_US
                gap = f"{before_us // US} s without a snapshot, usually {self.period_us // US} s"
                report.warn(GAPS, file.name, None, gap, node_hours=hours)
            rows += self._changes.update(snapshot)
            for node in sorted(self._since.keys() - snapshot.nodes.keys()):
                report.warn(MISSING, file.name, None, node, node_hours=before_us / HOUR_US)
        new = [node for _, node, _ in rows if node not in self._since]
        self._record.add_inventory(new)
        for node in new:
            self._since[node] = self._first_us, NodeState.UNKNOWN
            if time_us > self._first_us:
                report.warn(MISSING, file.name, None, node, node_hours=(time_us - self._first_us) / HOUR_US)
        for change_us, node, state in rows:
            self._end(node, change_us, file.name)
            self._since[node] = change_us, state
        self._last_us = time_us
        report.keep("snapshots")

    def finish(self) -> None:
        """Add the states that last to the last snapshot."""
        for node in self._since:
            self._end(node, None, "")
        self._record.covers(self._first_us, self._last_us, "from the first to the last snapshot")
        self._record.states_seen = True
        self._record.stamp(self._last_us)

    def _end(self, node: str, time_us: int | None, file_name: str) -> None:
        since_us, state = self._since[node]
        if state != NodeState.IDLE and (time_us is None or time_us > since_us):
            self._record.add_outage(state, since_us, time_us, self._record.node_ids([node]), file_name)


def _kind_of(file: LogFile) -> str | None:
    """Return the command whose output a file begins with, after the time of the snapshot."""
    lines = file.head_lines()
    while lines and (not lines[0].strip() or _time_of_line(lines[0]) is not None):
        lines.pop(0)
    return kind_of("\n".join(lines))


def _texts(file: LogFile) -> Iterator[tuple[int | None, str]]:
    """Yield the time in the line before each snapshot, ``None`` without such a line, and its text."""
    time_us: int | None = None
    lines: list[str] = []
    n_characters = 0
    for _, line, is_whole in file.lines_with_ends(_JOINED_TIME):
        line_us = _time_of_line(line)
        if line_us is None:
            lines.append(f"{line}\n" if is_whole else line)
            n_characters += len(line)
            if n_characters > _LARGEST:
                raise file.error("a snapshot is too large", value=f"over {_LARGEST:,} characters", fix=_TIMES_FIX)
        else:
            if time_us is not None or any(map(str.strip, lines)):
                yield time_us, "".join(lines)
            time_us, lines, n_characters = line_us, [], 0
    yield time_us, "".join(lines)


def _time_of_line(line: str) -> int | None:
    """Return the time of a line that has nothing else, as ``date`` writes it; ``None`` for others."""
    match = _TIME_LINE.fullmatch(line) if len(line) < _LONGEST_TIME_LINE else None
    return None if match is None else or_none(parse_time_us, match[1])


def _times_us(file: LogFile, record: ScheduleRecord, zone_name: str | None) -> list[int]:
    """Return the time of each snapshot in a file: from the line before it, else that of the file."""
    # a first reading, not counted in the progress bar
    times_us = [time_us for time_us, _ in _texts(LogFile(file.path, file.name))]
    return [_file_time_us(file, record, zone_name) if time_us is None else time_us for time_us in times_us]


def _file_time_us(file: LogFile, record: ScheduleRecord, zone_name: str | None) -> int:
    """Return the time in the name of a file, else that of its last change."""
    stamp = _IN_NAME.search(file.short_name)
    if stamp is not None and (wall_us := wall_clock_us("{}-{}-{} {}:{}:{}".format(*stamp.groups()[:6]))) is not None:
        if stamp[7]:
            return wall_us
        possible = () if zone_name is None else LocalClock(zone_of_name(zone_name)).utc_us(wall_us)
        if len(possible) == 1:
            return possible[0]
        why = "has no zone (--tz)" if zone_name is None else f"is not one moment in {zone_name}"
        problem, value = f"a local time in a file's name {why}", file.short_name
        raise file.error(problem, value=value, expected="one moment in UTC", fix=_NAMES_FIX)
    if (epoch := _EPOCH.search(file.short_name)) is not None:
        return parse_time_us(epoch[1])
    if file.name != str(file.path):
        problem, expected = "a file in an archive has no time in its name", "seconds, or date and time, in it"
        raise file.error(problem, value=file.short_name, expected=expected, fix=_NAMES_FIX)
    record.report.warn(BY_FILE_TIME, file.name, why_no_amount="by how much times are wrong is not known")
    return file.path.stat().st_mtime_ns // 1_000


def _single(file: LogFile) -> InputError:
    kind = _kind_of(file) or LINES
    return file.wrong_start(
        f"this is the output of {kind}, once: it shows one moment, not who held which nodes when",
        expected="at least two snapshots",
        fix=f"keep one a minute: {SnapshotsReader.exports['pbs' in kind].command}",
    )
