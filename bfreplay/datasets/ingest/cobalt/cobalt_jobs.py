"""Cobalt jobs: rows, their times (stamps without a zone, UTC unless an option says otherwise), and their nodes."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from bfreplay.datasets.ingest.delimited import Place
from bfreplay.datasets.ingest.hostlists import MOST_NODES
from bfreplay.datasets.ingest.local_times import TIMES_MOVE, LocalClock
from bfreplay.datasets.ingest.occupancy.import_report import NOT_OURS, WHICH_NODES, ImportReport, Tally
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.reader import ReadOptions, or_none
from bfreplay.datasets.ingest.table.table_cells import count_in, is_missing, limit_us, span_us
from bfreplay.datasets.ingest.table.table_jobs import ELAPSED_DIFFERS, Identities
from bfreplay.datasets.ingest.table.table_times import SKIPPED, TableClock, Wall, is_interval
from bfreplay.datasets.times import HOUR_US, US

ZONE_UNLIKELY = "the hours at which maintenance begins speak for another zone than the one in which stamps were read"
_FEWEST = 20
_CLEARER = 1.1

MACHINE_SIZES = {"mira": 49_152, "theta": 4_392, "cooley": 126, "thetagpu": 24, "polaris": 560, "aurora": 10_624}
"""Nodes of each machine according to ALCF, by its name in the tables in lower case."""

SITE_ZONE = "America/Chicago"
"""Time zone of ALCF, in which maintenance begins at the same hour all year."""


class CobaltClock(TableClock):
    """Clock for stamps in one zone: that of ``--tz``, else UTC."""

    def __init__(self, options: ReadOptions, report: ImportReport, export: str) -> None:
        in_zone = ReadOptions(timezone=options.timezone or "UTC", dst_fold=options.dst_fold)
        super().__init__(in_zone, report, export)
        self._is_given = options.timezone is not None
        self._maintenance: Counter[int] = Counter()  # starts by the quarter of an hour, as written

    def read(self, cell_value: Any, unit: str | None = None) -> Wall | None:
        """Read a stamp as written; ``None`` for an empty one.

        Raises
        ------
        ValueError
            Not a stamp.
        """
        if is_missing(cell_value):
            return None
        wall_time = super().read(cell_value, unit)
        if not isinstance(wall_time, Wall):
            raise ValueError("no stamp such as 2014-12-31 23:26:29")
        return wall_time

    def saw_maintenance(self, start_time: Wall) -> None:
        """Remember the start of a maintenance period, as evidence."""
        self._maintenance[start_time.us // (HOUR_US // 4)] += 1

    def evidence(self) -> str:
        """Describe the zone of the stamps and its reason. Warns if the starts of maintenance contradict it."""
        zone_reason = "as given" if self._is_given else "the zone of ALCF's tables (--tz for another zone)"
        zone_text = f"the stamps have no zone; read as {self.zone}, {zone_reason}"
        count = sum(self._maintenance.values())
        if count < _FEWEST:
            return zone_text
        zone = str(self.zone)
        zones = dict.fromkeys([zone, "UTC", SITE_ZONE])
        hour_and_share = {zone: self._hour_of_most(zone) for zone in zones}
        readings = [
            f"as {zone}, {share:,} of {count:,} maintenance periods begin at {hour:02d}:00 to {hour:02d}:59 in Chicago"
            for zone, (hour, share) in hour_and_share.items()
        ]
        best = max(share for _, share in hour_and_share.values())
        if best > _CLEARER * hour_and_share[zone][1]:
            self._report.warn(ZONE_UNLIKELY, value="; ".join(readings), why_no_amount=TIMES_MOVE)
        return "; ".join([zone_text, *readings])

    def _hour_of_most(self, time_zone: str) -> tuple[int, int]:
        """Return the hour in Chicago in which most maintenance begins if stamps are in ``time_zone``, and the count."""
        read, site = LocalClock(ZoneInfo(time_zone)), ZoneInfo(SITE_ZONE)
        by_hour: Counter[int] = Counter()
        for quarter, n_starts in self._maintenance.items():
            utc_times = read.utc_us(quarter * (HOUR_US // 4))
            if utc_times:
                by_hour[datetime.fromtimestamp(utc_times[0] // US, site).hour] += n_starts
        return max(by_hour.items(), key=lambda item: (item[1], -item[0]), default=(0, 0))


LOCATION_UNREADABLE = "locations cannot be read: their nodes are assigned by rule"
BLOCK_DIFFERS = "the name of the block gives another number of nodes than the row; the greater number is used"
OTHER_MACHINE = "jobs of another machine are in the log; only one machine is read"
NO_LOCATION = "the table names no nodes of jobs: they are assigned by rule"
WHERE_MISSING = "jobs lack the location that others have: their nodes are assigned by rule"
NO_END = "jobs have a running time but no end: their end is start plus running time"
TOO_LARGE = "jobs with more nodes than the machine has were skipped: their nodes look idle"

_BLOCK = re.compile(r"[A-Z]{2,5}-[0-9A-F]{5}-[0-9A-F]{5}(?:-\d+)*-(\d{1,6})", re.ASCII)
_XNAME = re.compile(r"x\d+c\d+s\d+b\d+n\d+", re.ASCII)
_XNAMES = re.compile(r"x\d+c\d+s\d+b\d+n\d+(?:,x\d+c\d+s\d+b\d+n\d+)*", re.ASCII)
_XNAME_BEGUN = re.compile(r"x(?:\d+(?:c(?:\d+(?:s(?:\d+(?:b(?:\d+n?)?)?)?)?)?)?)?", re.ASCII)
_NUMBERS = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?", re.ASCII)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.\-]*\d", re.ASCII)
_LETTERS = re.compile(r"[A-Za-z0-9_.\-]*")
_NOWHERE = frozenset({"", "none", "null", "nan", "unknown", "n/a", "-"})


class CobaltJobs:
    """Converter of job rows to intervals.

    Parameters
    ----------
    machine, machine_size
        Machine to read, in lower case, and its nodes; ``None`` if not known.
    open_outages
        Starts of outages without an end, ascending: the first start of a job after each is kept in ``next_start``.
    """

    def __init__(
        self,
        record: ScheduleRecord,
        clock: CobaltClock,
        identities: Identities,
        machine: str | None,
        machine_size: int | None,
        open_outages: list[int],
    ) -> None:
        self._record, self._report, self._clock, self._identities = record, record.report, clock, identities
        self._machine, self._size = machine, machine_size
        self._open = open_outages
        self.next_start: list[int | None] = [None] * len(open_outages)
        self._has_locations = False
        self._nowhere = Tally(aside=WHICH_NODES)

    def add(self, cells: Mapping[str, str], row_place: Place) -> None:
        """Add the interval of a row, or count the reason to skip it."""
        self._add(cells, row_place)
        if self._report.needs_row_amount:
            self._note_row_amount(cells)

    def _note_row_amount(self, cells: Mapping[str, str]) -> None:
        """Note how much a skipped row concerns, if its nodes and its running time can be read."""
        span_us = _elapsed_us(cells)
        try:
            node_count = _count(cells)
            start_time, end_time = map(self._clock.read, (cells["START_TIMESTAMP"], cells["END_TIMESTAMP"]))
        except ValueError:
            return  # it counts as the mean job
        if start_time is not None and end_time is not None:
            span_us = end_time.us - start_time.us
        if node_count is not None and span_us is not None:
            self._report.set_row_amount(node_count, 0, span_us)

    def _add(self, cells: Mapping[str, str], row_place: Place) -> None:
        machine = cells.get("MACHINE_NAME", "").strip().lower()
        if self._machine is not None and machine and machine != self._machine:
            self._report.skip("a job of another machine", *row_place, machine)
            return self._report.warn(OTHER_MACHINE, *row_place, machine, aside=NOT_OURS)
        times_text = f"{cells['START_TIMESTAMP']} to {cells['END_TIMESTAMP']}"
        try:
            start_time, end_time = map(self._clock.read, (cells["START_TIMESTAMP"], cells["END_TIMESTAMP"]))
        except ValueError:
            return self._report.skip_with_warning("a time that cannot be read", *row_place, times_text)
        if start_time is None:
            return self._report.skip("never started", *row_place, times_text)
        try:
            node_count = _count(cells)
        except ValueError:
            count_text = cells.get("NODES_USED", cells.get("USED_NODES"))
            return self._report.skip_with_warning("a number of nodes that cannot be read", *row_place, count_text)
        span_time_us = _elapsed_us(cells)
        interval = self._clock.interval(start_time, end_time, span_time_us, row_place)
        if interval is None:
            return self._report.skip(SKIPPED, *row_place, times_text)
        start_us, end_us = interval
        if end_us is None and span_time_us:
            end_us = start_us + span_time_us
            self._report.warn(NO_END, *row_place, times_text)
        job = _job(cells) or f"{row_place[0]} line {row_place[1]}"
        if not is_interval(start_us, end_us):
            return self._record.add_job(job, start_us, end_us, None, 1, None, *row_place)  # which counts the reason
        if end_us is not None and span_time_us is not None and abs(end_us - start_us - span_time_us) > 1_000_000:
            self._report.warn(ELAPSED_DIFFERS, *row_place, f"{times_text}, {cells['RUNTIME_SECONDS']} s")
        self._keep(cells, job, start_us, end_us, node_count, row_place)

    def finish(self) -> None:
        """Warn of jobs without a location, if others have one."""
        if self._has_locations and self._nowhere.count:
            self._report.warnings[WHERE_MISSING] = self._nowhere

    def _keep(
        self,
        cells: Mapping[str, str],
        job_id: str,
        start_us: int,
        end_us: int | None,
        node_count: int | None,
        row_place: Place,
    ) -> None:
        location_text = cells.get("LOCATION") or cells.get("MACHINE_PARTITION") or ""
        location = or_none(location_of, location_text, node_count)
        if location is None:
            self._report.warn(LOCATION_UNREADABLE, *row_place, location_text, aside=WHICH_NODES)
        node_names, is_cut, block_size = location or Location((), False, None)
        if block_size is not None:
            if node_count is not None and node_count != block_size:
                self._report.warn(BLOCK_DIFFERS, *row_place, f"{node_count} nodes in {location_text}")
            node_count = max(node_count or 0, block_size)
        has_location = bool(node_names) or block_size is not None
        self._has_locations |= has_location
        n_nodes = max(node_count or 0, len(node_names))
        if not n_nodes:
            return self._report.skip("a job without nodes", *row_place, job_id)
        if self._size is not None and n_nodes > self._size:
            skip_reason, size_text = "more nodes than the machine has", f"{n_nodes} nodes"
            self._report.skip_with_warning(skip_reason, *row_place, size_text, warning=TOO_LARGE)
            return self._report.set_row_amount(n_nodes, start_us, end_us)
        if location is not None and not has_location:
            self._nowhere.add(*row_place, "", 1)
            self._nowhere.add_amount(n_nodes, start_us, end_us)
        walltime = limit_us(cells.get("WALLTIME_SECONDS"))
        limit_end = None if walltime is None else start_us + walltime
        identity = self._identities.of(job_id, start_us, location_text if node_names else "", *row_place)
        node_ids = self._record.node_ids(node_names) if node_names else None
        self._record.add_job(identity, start_us, end_us, node_ids, node_count, limit_end, *row_place, is_cut)
        for outage_index in reversed(range(bisect_left(self._open, start_us))):
            first_start_us = self.next_start[outage_index]
            if first_start_us is not None and first_start_us <= start_us:
                break
            self.next_start[outage_index] = start_us


def _count(cells: Mapping[str, str]) -> int | None:
    count_text = cells.get("NODES_USED", cells.get("USED_NODES", ""))
    return None if is_missing(count_text) else count_in(count_text)


def _elapsed_us(cells: Mapping[str, str]) -> int | None:
    return or_none(span_us, cells.get("RUNTIME_SECONDS"))


def _job(cells: Mapping[str, str]) -> str:
    """Return the number of the job, with its name if that is needed (tasks of an array share a number)."""
    job_number = cells.get("COBALT_JOBID", cells.get("JOBID", ""))
    job_name = cells.get("JOB_NAME", "")
    if is_missing(job_name) or job_name.split(".")[0] == job_number:
        return "" if is_missing(job_number) else job_number
    return job_name if is_missing(job_number) else f"{job_number} {job_name}"


class Location(NamedTuple):
    """Listed nodes; whether the list was cut; nodes in the block, if it names one."""

    nodes: tuple[str, ...]
    is_cut: bool
    block_size: int | None


def location_of(location_text: str, node_count: int | None) -> Location:
    """Read a location.

    Parameters
    ----------
    location_text
        Names separated by commas or colons (``x3005c0s19b1n0,...``, ``cc001:cc002``), numbers of nodes and ranges of
        them (``0-3,17``; they become ``nid00000``, ...), blocks (``MIR-00C00-33F71-1-1024``), or nothing.
    node_count
        Nodes that the job used: a shorter list was cut at the width of the column, and the name at the cut is skipped
        unless it is whole.

    Raises
    ------
    ValueError
        Another form.
    """
    if _XNAMES.fullmatch(location_text):
        node_names = dict.fromkeys(location_text.split(","))
        return Location(tuple(node_names), node_count is not None and len(node_names) < node_count, None)
    if location_text.strip().lower() in _NOWHERE:
        return Location((), False, None)
    tokens = re.split(r"[,:]", location_text)
    blocks = [_BLOCK.fullmatch(list_token) for list_token in tokens]
    if any(blocks):
        sizes = [int(block_match[1]) for block_match in blocks if block_match is not None]
        if len(sizes) < len(tokens):
            raise ValueError("a part of the list is not a block")
        return Location((), False, sum(sizes))
    node_names = {}
    for position, list_token in enumerate(tokens, 1):
        token_names = _names(list_token)
        n_nodes = len(node_names) + len(token_names or ())
        may_be_cut = 1 < position == len(tokens) and node_count is not None and n_nodes < node_count
        # the first letters of a name, or a name that may go on
        if may_be_cut and (_LETTERS.fullmatch(list_token) if token_names is None else not _is_whole(tokens)):
            return Location(tuple(node_names), True, None)
        if token_names is None:
            raise ValueError(f"{list_token!r} is not a node")
        node_names.update(dict.fromkeys(token_names))
        if len(node_names) > MOST_NODES:
            raise ValueError(f"a list of more than {MOST_NODES:,} nodes")
    return Location(tuple(node_names), node_count is not None and len(node_names) < node_count, None)


def _names(list_token: str) -> list[str] | None:
    if _XNAME.fullmatch(list_token):
        return [list_token]
    range_match = _NUMBERS.fullmatch(list_token)
    if range_match is not None:
        first, last = int(range_match[1]), int(range_match[2] or range_match[1])
        return [f"nid{node_number:05d}" for node_number in range(first, last + 1)] if first <= last else None
    return [list_token] if _NAME.fullmatch(list_token) and not _XNAME_BEGUN.fullmatch(list_token) else None


def _is_whole(tokens: list[str]) -> bool:
    """Return whether the name at the cut is whole: a complete xname, or as long as every other name."""
    last_token = tokens[-1]
    if _XNAME.fullmatch(last_token):
        return True
    return not _NUMBERS.fullmatch(last_token) and {len(list_token) for list_token in tokens[:-1]} == {len(last_token)}
