"""SnapshotsReader: snapshots of all nodes that were kept by hand, one file a poll."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median_low

from bfreplay.datasets.ingest.local_times import LocalClock, wall_clock_us, zone_of_name
from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.reader import Export, ReadOptions, or_none
from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.snapshots.changes import StateChanges, StateRow
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
_FIRST_LINE = re.compile(r"#?[ \t]*([\dT:.Z+-]{9,35})[ \t]*\n", re.ASCII)
_KEEP = 'while sleep 60; do {} > "nodes.$(date +%s).txt"; done'


class SnapshotsReader:
    """Reader of snapshots of all nodes, in files with the time of each in its name."""

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
        kind = kind_of(_without_time(file.head().decode("utf-8", "replace"))[1])
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
        polls = sorted((_time_us(file, record, options.timezone), file.name, file) for file in files)
        period_us = median_low([max(end[0] - start[0], 1) for start, end in pairwise(polls)] or [1])
        changes: StateChanges | None = None
        last_us, refusal = 0, None
        for time_us, _, file in polls:
            report.read()
            try:
                text = b"".join(file.blocks()).decode("utf-8", "replace")
                snapshot = Snapshot(time_us, reader.nodes(_without_time(text)[1], file.name))
                if changes is not None and time_us <= last_us:
                    raise file.error("another snapshot has the same time", value=iso_utc(time_us))
            except InputError as error:
                refusal = refusal or error
                report.skip_with_warning(error.problem, file.name, None, error.value or "", warning=UNUSABLE)
                report.set_row_amount(len(timeline.since), 0, period_us)
                continue
            report.keep("snapshots")
            if changes is None:
                changes = StateChanges.of_first(snapshot)
                timeline.add([(time_us, node, state) for node, state in changes.states.items()], file, time_us)
                record.covers(time_us, time_us, "from the first to the last snapshot")
            else:
                if time_us - last_us > GAP_PERIODS * period_us:
                    timeline.add(changes.lose_sight(last_us + period_us), file, last_us)
                    hours = len(timeline.since) * (time_us - last_us - period_us) / HOUR_US
                    gap = f"{(time_us - last_us) // US} s without a snapshot, usually {period_us // US} s"
                    report.warn(GAPS, file.name, None, gap, node_hours=hours)
                timeline.add(changes.update(snapshot), file, time_us)
                for node in timeline.since.keys() - snapshot.nodes.keys():
                    report.warn(MISSING, file.name, None, node, node_hours=(time_us - last_us) / HOUR_US)
                record.covers(time_us, time_us, "")
            last_us = time_us
        if record.coverage is None or record.coverage.start_us == last_us:
            raise refusal or _single(files[0])
        timeline.finish(last_us)
        for word, raw in states.strange_words.items():
            report.warn(STRANGE, value=f"{word} in {raw}", why_no_amount="a word may stand for any state")
        record.add_format("snapshots of nodes")
        record.states_seen = True
        record.stamp(last_us)


class _Timeline:
    """State of each node and its start; earlier ones go into the record."""

    def __init__(self, record: ScheduleRecord) -> None:
        self._record = record
        self._first_us: int | None = None
        self.since: dict[str, tuple[int, NodeState]] = {}

    def add(self, rows: Sequence[StateRow], file: LogFile, time_us: int) -> None:
        """Add changes; a node that appears after the first snapshot was unknown until then."""
        new = [node for _, node, _ in rows if node not in self.since]
        if new:
            self._record.add_inventory(new)
            first_us = time_us if self._first_us is None else self._first_us
            self._first_us = first_us
            self.since |= dict.fromkeys(new, (first_us, NodeState.UNKNOWN))
        for change_us, node, state in rows:
            self._end(node, change_us, file.name)
            self.since[node] = change_us, state

    def finish(self, time_us: int) -> None:
        """Add the states that last to the end."""
        for node in self.since:
            self._end(node, time_us, "")

    def _end(self, node: str, time_us: int, file_name: str) -> None:
        since_us, state = self.since[node]
        if state != NodeState.IDLE and time_us > since_us:
            self._record.add_outage(state, since_us, time_us, self._record.node_ids([node]), file_name)


def _without_time(text: str) -> tuple[int | None, str]:
    """Return the time in the first line, if the line is nothing else, and the text without it."""
    match = _FIRST_LINE.match(text)
    time_us = None if match is None else or_none(parse_time_us, match[1])
    return (None, text) if match is None or time_us is None else (time_us, text[match.end() :])


def _time_us(file: LogFile, record: ScheduleRecord, zone_name: str | None) -> int:
    """Return the time of a snapshot: from the name of its file, else from its first line, else its last change."""
    stamp = _IN_NAME.search(file.short_name)
    if stamp is not None and (wall_us := wall_clock_us("{}-{}-{} {}:{}:{}".format(*stamp.groups()[:6]))) is not None:
        if stamp[7]:
            return wall_us
        possible = () if zone_name is None else LocalClock(zone_of_name(zone_name)).utc_us(wall_us)
        if len(possible) != 1:
            problem, fix = "a local time in a file's name", "name files by seconds: nodes.$(date +%s).txt"
            why = "has no zone (--tz)" if zone_name is None else f"is not one moment in {zone_name}"
            raise file.error(f"{problem} {why}", value=file.short_name, expected="one moment in UTC", fix=fix)
        return possible[0]
    if (epoch := _EPOCH.search(file.short_name)) is not None:
        return parse_time_us(epoch[1])
    time_us = _without_time(file.head().decode("utf-8", "replace"))[0]
    if time_us is not None:
        return time_us
    if Path(file.name) != file.path:
        expected, fix = "seconds or year-month-day in it", "name files by seconds: nodes.$(date +%s).txt"
        raise file.error("a file in an archive has no time in its name", value=file.name, expected=expected, fix=fix)
    record.report.warn(BY_FILE_TIME, file.name, why_no_amount="by how much times are wrong is not known")
    return file.path.stat().st_mtime_ns // 1_000


def _single(file: LogFile) -> InputError:
    kind = kind_of(_without_time(file.head().decode("utf-8", "replace"))[1]) or LINES
    return file.wrong_start(
        f"this is the output of {kind}, once: it shows one moment, not who held which nodes when",
        expected="at least two snapshots, in files of their own",
        fix=f"keep one a minute: {SnapshotsReader.exports['pbs' in kind].command}",
    )
