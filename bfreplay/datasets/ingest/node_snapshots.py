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
from bfreplay.datasets.ingest.sampled_states import SampledStates
from bfreplay.datasets.snapshots.changes import StateChanges
from bfreplay.datasets.snapshots.readings import Snapshot
from bfreplay.datasets.snapshots.state_table import StateTable
from bfreplay.datasets.snapshots.texts import LINES, SnapshotReader, kind_of
from bfreplay.datasets.times import iso_utc, parse_time_us
from bfreplay.errors import InputError

KEPT = "snapshots"
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
        reader, report = SnapshotReader(states, zone), record.report
        times_us = {file.name: _times_us(file, record, options.timezone) for file in files}
        ordered_us = sorted(chain.from_iterable(times_us.values()))
        period_us = median_low([end - start for start, end in pairwise(ordered_us) if end > start] or [1])
        changes: StateChanges | None = None
        timeline, last_us = SampledStates(record, period_us), 0
        refusal: InputError | None = None
        for file in sorted(files, key=lambda file: (min(times_us[file.name]), file.name)):
            for time_us, (_, text) in zip(times_us[file.name], _texts(file), strict=True):
                report.read()
                try:
                    snapshot = Snapshot(time_us, reader.nodes(text, file.name))
                    if changes is not None and time_us <= last_us:
                        raise file.error("a snapshot is not later than the one before it", value=iso_utc(time_us))
                except InputError as error:
                    refusal = refusal or error
                    report.skip_with_warning(error.problem, file.name, None, error.value or "", warning=UNUSABLE)
                    report.set_row_amount(len(record.nodes), 0, period_us)
                    continue
                if changes is None:
                    changes = StateChanges.of_first(snapshot)
                    rows = [(time_us, node, state) for node, state in changes.states.items()]
                else:
                    if timeline.is_gap_before(time_us):
                        changes.lose_sight(timeline.last_known_us)
                    rows = changes.update(snapshot)
                timeline.add(time_us, snapshot.nodes, rows, file.name)
                report.keep(KEPT)
                last_us = time_us
        if report.kept.get(KEPT, 0) < 2:
            raise refusal if refusal is not None and len(ordered_us) > 1 else _single(files[0])
        timeline.finish("from the first to the last snapshot", is_open=True)
        record.states_seen = True
        for word, raw in states.strange_words.items():
            report.warn(STRANGE, value=f"{word} in {raw}", why_no_amount="a word may stand for any state")
        record.add_format("snapshots of nodes")


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
