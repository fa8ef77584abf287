"""Samples of ``sinfo``: lines ``EPOCH|NODE|STATE[|REASON]``, the state of every node again and again.

A state holds from its sample to the next. States are unknown between samples that are much further apart than usual;
a node that is missing from a sample is unknown until it is back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median_low

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.ingest.delimited import text_lines
from bfreplay.datasets.ingest.hostlists import expand_nodes
from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.slurm.cells import node_state, stronger
from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.times import HOUR_US, US

COMMAND = 'while sleep 60; do sinfo -a -N -h -o "$(date +%s)|%N|%T"; done >> states.txt'
"""Command to run on the cluster for the length of the log."""

KEPT = "samples of node states"
GAPS = "samples are missing: all nodes are unknown there"
MISSING = "nodes are missing from samples: they are unknown there"
BACKWARDS = "samples out of the order of time were skipped"
GAP_PERIODS = 3

_LINE = re.compile(r"([1-9]\d{8,9})(?:\.(\d{1,9}))?\|([^|]+)\|([^|]*)(?:\|.*)?", re.ASCII)
_MOST_HEAD_LINES = 200


def share_of_samples(file: LogFile) -> float:
    """Return the share of the first lines that are samples."""
    lines = [line for line in file.head_lines()[:_MOST_HEAD_LINES] if line.strip()]
    matches = [_LINE.fullmatch(line) for line in lines]
    found = sum(match is not None and node_state(match[4]) is not None for match in matches)
    return found / len(lines) if lines else 0.0


def read_sinfo(files: Sequence[LogFile], record: ScheduleRecord, is_alone: bool) -> None:
    """Read all files of samples as one series.

    Parameters
    ----------
    is_alone
        True if no jobs are read: the samples then determine the time that the log covers.
    """
    record.add_format("slurm sinfo samples")
    record.report.facts["sinfo times"] = "epoch seconds: no zone needed"
    files = sorted(files, key=_first_time_us)
    period_us = _median_period_us(files)
    timeline = _Timeline(record, GAP_PERIODS * period_us, period_us)
    for sample in _samples(files, record, period_us):
        timeline.add(sample)
    timeline.finish(is_alone)


def _median_period_us(files: Sequence[LogFile]) -> int:
    """Return the median time from one sample to the next (the lower of two), 0 for a single sample."""
    periods: list[int] = []
    before: int | None = None
    for file in files:
        # a first reading, not counted in the progress bar
        for _, text in LogFile(file.path, file.name).lines():
            match = _LINE.fullmatch(text)
            if match is None or node_state(match[4]) is None:
                continue
            time_us = _time_us(match)
            if before is not None and time_us > before:
                periods.append(time_us - before)
            before = time_us
    return median_low(periods) if periods else 0


def _time_us(match: re.Match[str]) -> int:
    return int(match[1]) * US + int((match[2] or "0").ljust(6, "0")[:6])


def _first_time_us(file: LogFile) -> int:
    return next((_time_us(match) for line in file.head_lines() if (match := _LINE.fullmatch(line))), 0)


@dataclass(slots=True)
class _Sample:
    """States of nodes at one time, and the line where it begins."""

    time_us: int
    file: LogFile
    line: int
    states: dict[str, NodeState] = field(default_factory=dict)
    n_rows: int = 0

    def add(self, names: Sequence[str], state: NodeState) -> None:
        """Add a row; for a node in several partitions the strongest state counts."""
        self.n_rows += 1
        for name in names:
            self.states[name] = stronger(state, self.states.get(name, NodeState.IDLE))


def _samples(files: Sequence[LogFile], record: ScheduleRecord, period_us: int) -> Iterator[_Sample]:
    """Yield all samples in order of time; rows out of order are skipped.

    A sample is yielded when the next but one begins: if time runs backwards after a single row, that row was wrong and
    the sample before it goes on; otherwise the row that runs backwards is wrong.
    """
    report = record.report
    before: _Sample | None = None
    now: _Sample | None = None
    for file in files:
        for number, text in text_lines(file, report):
            report.read()
            match = _LINE.fullmatch(text)
            state = None if match is None else node_state(match[4])
            try:
                names = () if match is None else expand_nodes(match[3])
            except ValueError:
                names = ()
            if match is None or state is None or not names:
                report.skip_with_warning("unreadable sample", file.name, number, text)
                report.hold(1, 0, period_us)
                continue
            time_us = _time_us(match)
            if now is not None and time_us < now.time_us:
                is_single = now.n_rows == 1 and (before is None or time_us >= before.time_us)
                wrong, line = (now.file, now.line) if is_single else (file, number)
                report.skip_with_warning("a sample out of the order of time", wrong.name, line, text, warning=BACKWARDS)
                report.hold(1, 0, period_us)
                if not is_single:
                    continue
                now, before = before, None
            if now is None or time_us > now.time_us:
                if before is not None:
                    report.keep(KEPT, before.n_rows)
                    yield before
                before, now = now, _Sample(time_us, file, number)
            now.add(names, state)
    for sample in (before, now):
        if sample is not None:
            report.keep(KEPT, sample.n_rows)
            yield sample


class _Timeline:
    """Current state of each node and its start; earlier ones go into the record."""

    def __init__(self, record: ScheduleRecord, longest_us: int, period_us: int) -> None:
        self._record, self._longest_us, self._period_us = record, longest_us, period_us
        self._state: dict[str, NodeState] = {}
        self._since_us: dict[str, int] = {}
        self._ids: dict[str, NDArray[np.int32]] = {}
        self._missing: set[str] = set()
        self._first_us: int | None = None
        self._last_us = 0
        self._file, self._line = "", 0

    def add(self, sample: _Sample) -> None:
        """Add the next sample."""
        record, time_us, states, file, line = self._record, sample.time_us, sample.states, sample.file, sample.line
        self._file, self._line = file.name, line
        if self._first_us is None:
            self._first_us = self._last_us = time_us
        if time_us - self._last_us > self._longest_us:
            known_to_us = self._last_us + self._period_us
            self._end_all(known_to_us)
            record.add_outage(NodeState.UNKNOWN, known_to_us, time_us, None, file.name, line)
            gap = f"{(time_us - self._last_us) // US} s without a sample, usually {self._period_us // US} s"
            hours = len(self._ids) * (time_us - known_to_us) / HOUR_US
            record.report.warn(GAPS, file.name, line, gap, node_hours=hours)
            self._since_us = dict.fromkeys(self._state, time_us)
        new = [name for name in states if name not in self._ids]
        if new:
            record.add_inventory(new)
            for name in new:
                self._ids[name] = record.node_ids([name])
                if time_us > self._first_us:
                    self._state[name], self._since_us[name] = NodeState.UNKNOWN, self._first_us
                    self._missing.add(name)
        for name, state in states.items():
            self._turn(name, state, time_us)
        if len(states) < len(self._ids):
            for name in [name for name in self._ids if name not in states]:
                is_new = self._state[name] != NodeState.UNKNOWN
                self._turn(name, NodeState.UNKNOWN, time_us)
                if is_new:
                    self._missing.add(name)
        self._last_us = time_us

    def finish(self, is_alone: bool) -> None:
        """Close the states that are open at the last sample."""
        if self._first_us is None:
            return
        self._end_all(self._last_us)
        self._record.stamp(self._last_us)
        if is_alone and self._last_us > self._first_us:
            self._record.covers(self._first_us, self._last_us, "from the first to the last sample of sinfo")

    def _turn(self, name: str, state: NodeState, time_us: int) -> None:
        old = self._state.get(name)
        if old != state:
            if old is not None:
                self._end(name, old, time_us)
            self._state[name], self._since_us[name] = state, time_us

    def _end_all(self, time_us: int) -> None:
        for name, state in self._state.items():
            self._end(name, state, time_us)

    def _end(self, name: str, state: NodeState, time_us: int) -> None:
        since_us = self._since_us[name]
        if name in self._missing:
            self._missing.remove(name)
            hours = (time_us - since_us) / HOUR_US
            self._record.report.warn(MISSING, self._file, self._line, name, node_hours=hours)
        # an idle node is not an outage; a node first seen in this sample had no state before
        if state != NodeState.IDLE and time_us > since_us:
            self._record.add_outage(state, since_us, time_us, self._ids[name], self._file, self._line)
