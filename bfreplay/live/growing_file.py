"""GrowingFile: the feed of a log that another program extends."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from time import time_ns

from bfreplay.checks import is_name
from bfreplay.datasets.log.states import STATE_WORDS, NodeState
from bfreplay.datasets.times import DAY_US, parse_time_us
from bfreplay.errors import InputError
from bfreplay.live.feed import Beginning, Feed, Portion, Row

REPLACED = "the file was cut or replaced; it was read from its beginning, without rows up to the last one before"
DISORDER = "rows are not in the order of their times; those that are late by more than the hold-back count at its end"
_MOST_BYTES = 1 << 24
"""Bytes read at one poll: a long log is caught up with over several."""


class GrowingFile(Feed):
    """Feed of a CSV of events (time, node, state) that another program extends, line by line.

    Time is that of the rows: the log is known up to its last row. A line that is not complete yet waits. A file that
    was replaced or cut is read from its beginning, without the rows up to the last one; one that is away is waited for.
    """

    name = "file"

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file
        self._offset = 0
        self._row = 0
        self._inode = 0
        self._columns: list[int] = []
        self._after_us: int | None = None  # rows up to there are known already
        self._states: dict[str, NodeState] = {}

    @property
    def states(self) -> Mapping[str, NodeState]:
        """State of each node after the last row."""
        return self._states

    def begin(self) -> Beginning:
        """Return the rows of the first time: the states of all nodes then."""
        try:
            rows = self._new_rows()
        except OSError as error:
            raise InputError(f"the log cannot be read: {error.strerror}", file=self._file) from error
        if not rows:
            raise InputError(
                "the log has no rows yet", file=self._file, expected="the states of all nodes, first of all"
            )
        start_us = rows[0][0]
        first = {node: state for time_us, node, state in rows if time_us == start_us}
        nodes = tuple(sorted(first))
        self._offset, self._row, self._after_us = 0, 0, start_us
        self.last_us, self._states = start_us, first
        return Beginning(nodes, tuple(first[node] for node in nodes), start_us)

    def resume(self, states: Mapping[str, NodeState], until_us: int) -> None:
        """Skip the rows of a log that is there already."""
        self._after_us, self.last_us = until_us - 1, until_us
        self._states = dict(states)

    def poll(self) -> Portion | None:
        """Return the rows that are new."""
        self.n_polls += 1
        try:
            rows = self._new_rows()
        except OSError as error:
            self.n_unanswered += 1
            self.problem = f"{self._file}: {error.strerror}"
            return None
        self.problem = ""
        after_us = self._after_us
        # a node that is new at a time that is over was not written yet when that was read
        rows = [row for row in rows if after_us is None or row[0] > after_us or row[1] not in self._states]
        if not rows:
            return None
        if any(time_us < before_us for before_us, time_us in pairwise([self.last_us, *(row[0] for row in rows)])):
            self._note(DISORDER)
        rows.sort(key=lambda row: row[0])
        self._states |= {node: state for _, node, state in rows}
        self.last_us = max(self.last_us, rows[-1][0])
        return Portion(rows, self.last_us)

    def _note(self, words: str) -> None:
        if words not in self.notes:
            self.notes.append(words)

    def _new_rows(self) -> list[Row]:
        with self._file.open("rb") as stream:
            facts = os.fstat(stream.fileno())
            if facts.st_size < self._offset or facts.st_ino != (self._inode or facts.st_ino):
                self._offset, self._row, self._columns, self._after_us = 0, 0, [], self.last_us
                self._note(REPLACED)
            self._inode = facts.st_ino
            stream.seek(self._offset)
            text = stream.read(_MOST_BYTES)
        text = text[: text.rfind(b"\n") + 1]
        try:
            lines = list(csv.reader(text.decode("utf-8").splitlines()))
        except (UnicodeDecodeError, csv.Error) as error:
            raise InputError("the log is not CSV in UTF-8", file=self._file, row=self._row + 1) from error
        if lines and self._offset == 0:
            self._columns = self._columns_of(lines.pop(0))
        latest_us = time_ns() // 1000 + DAY_US
        rows = [
            self._event(self._row + number, line, latest_us)
            for number, line in enumerate(lines, 1)
            if "".join(line).strip()
        ]
        self._offset += len(text)
        self._row += len(lines)
        return rows

    def _columns_of(self, names: list[str]) -> list[int]:
        wanted = ["time", "node", "state"]
        if not set(wanted) <= set(names):
            raise InputError(
                "these are not the columns of a log", file=self._file, value=names, expected=", ".join(wanted)
            )
        return [names.index(name) for name in wanted]

    def _event(self, row: int, cells: list[str], latest_us: int) -> Row:
        expected = "time,node,state"
        try:
            time_text, node, word = (cells[column] for column in self._columns)
            time_us, state = parse_time_us(time_text), NodeState(STATE_WORDS.index(word))
            if is_name(node) and time_us <= latest_us:
                return time_us, node, state
            expected = "a name of a node, and a time up to tomorrow: earlier rows could not be followed after it"
            raise ValueError(expected)
        except (ValueError, IndexError) as error:
            value = ",".join(cells)
            raise InputError("a row is no event", file=self._file, row=row, value=value, expected=expected) from error
